"""Check node: the task's checks run on clean checkouts, and their outcomes are sealed."""

from mimir.attempts.results import Checking, Judging
from mimir.attempts.services import AttemptServices, Bodies, seal_records
from mimir.domain.clock import stamp
from mimir.domain.event import EventKind
from mimir.domain.task_states import TaskStatus
from mimir.qc.checks.check_target import CheckTarget
from mimir.qc.evidence.payloads import check_bodies, deliverable_body
from mimir.qc.scope.test_owners import find_pending_tests
from mimir.store.records.attempt_changes import AttemptResultChange
from mimir.store.records.record_codec import PackedJson
from mimir.store.records.task_changes import ChecksCompletedChange


async def run_checks(services: AttemptServices, state: Checking) -> Judging:
    """Run the task's checks and seal the deliverable and their outcomes."""
    work, facts, task = state.work, services.facts, services.task
    target = CheckTarget(
        task=task,
        # A retry starts from a changed tree, on which a check may pass before any work.
        first_base=services.start.first_base_tree,
        own_base=services.start.base_tree,
        tree=work.tree,
        changed=work.changed,
        answer=work.answer,
        green_runs=facts.green_runs,
        pending=find_pending_tests(
            facts.plan, task, facts.graph.upstream(task.id), facts.base_tree
        ),
    )
    outcomes = await services.checks.outcomes(target)
    bodies: Bodies = [
        ("deliverable", deliverable_body(work.tree, work.base_tree, work.answer, work.changed)),
        *(("check", body) for outcome in outcomes for body in check_bodies(outcome)),
    ]
    now = stamp(services.clock.now())
    await services.journal.transition(
        TaskStatus.QC_EXECUTING,
        EventKind.JUDGING_STARTED,
        task=(
            ChecksCompletedChange(
                checks_completed_at=now, qc_start_time=now, qc_attempt_number=services.number
            ),
        ),
        attempt=(AttemptResultChange(check_outcomes=PackedJson.pack(outcomes)),),
        data={"checks": {outcome.check: outcome.state for outcome in outcomes}},
        records=seal_records(services, bodies),
        defer=True,  # QC's first model call is the next write
    )
    return Judging(work=work, outcomes=outcomes)
