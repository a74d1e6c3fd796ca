"""Check node: the task's checks run on clean checkouts, and their outcomes are sealed."""

from mimir.attempts.anticipation import build_check_target, stop_background
from mimir.attempts.results import Checking, Judging
from mimir.attempts.services import AttemptServices, Bodies, seal_records
from mimir.domain.clock import stamp
from mimir.domain.event import EventKind
from mimir.domain.task_states import TaskStatus
from mimir.qc.evidence.payloads import check_bodies, deliverable_body
from mimir.store.records.attempt_changes import AttemptResultChange
from mimir.store.records.record_codec import PackedJson
from mimir.store.records.task_changes import ChecksCompletedChange


async def run_checks(services: AttemptServices, state: Checking) -> Judging:
    """Run the task's checks and seal the deliverable and their outcomes."""
    try:
        return await _run_checks(services, state)
    finally:
        await stop_background(services)


async def _run_checks(services: AttemptServices, state: Checking) -> Judging:
    work = state.work
    target = build_check_target(services, work.tree, work.changed, work.answer)
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
