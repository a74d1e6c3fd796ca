"""Completion of an accepted attempt: its merge and the completed task."""

from collections.abc import Sequence
from functools import partial

from mimir.attempts.results import Judged
from mimir.attempts.services import AttemptServices, Bodies, seal_records
from mimir.domain.agent import ASK_TOOL
from mimir.domain.clock import stamp
from mimir.domain.criteria_counts import count_criteria
from mimir.domain.event import EventKind
from mimir.domain.task_states import Cause, TaskStatus
from mimir.domain.turn_hook import give_way
from mimir.qc.evidence.payloads import run_body, verdict_body
from mimir.scheduling.completion.integration import MergeCandidate, MergeConflict, TaskIntegration
from mimir.scheduling.completion.transition import ClaimJournal, HeadUpdate
from mimir.scheduling.run_services import RunServices
from mimir.store.protocol import WriteOps
from mimir.store.questions import question_rows
from mimir.store.records.attempt_changes import AttemptResultChange
from mimir.store.records.record_codec import PackedJson
from mimir.store.records.task_changes import CompletionChange, CriteriaCountsChange


async def complete_task(
    run_services: RunServices, services: AttemptServices, state: Judged, journal: ClaimJournal
) -> MergeConflict | None:
    """Complete a task with its accepted attempt; return a conflict if it needs a retry.

    Raises:
        LeaseLost: Another process holds the task.
        Paused: The run must stop; the accepted verdict is kept.
    """

    async def publish(merged: MergeCandidate) -> bool:
        late = list[str]()
        saved = await _save(services, state, journal, merged, late)
        if late:
            raise _CorrectedWorkError(late)
        return saved

    try:
        # Without changes there is nothing to merge.
        if not state.work.commit:
            await publish(MergeCandidate(commit="", tree="", onto=""))
            return None
        # Git and the sandbox work now, so another attempt can use the CPU.
        give_way()
        await run_services.pace.before_merge(services.task.id, services.number)
        async with run_services.integrating:
            return await TaskIntegration(run_services, services, state, publish).integrate()
    except _CorrectedWorkError as error:
        return MergeConflict(cause=Cause.REJECTED, issues=tuple(error.corrections))


class _CorrectedWorkError(Exception):
    """The user has answered otherwise than the attempt assumed."""

    def __init__(self, corrections: Sequence[str]) -> None:
        super().__init__(*corrections)
        self.corrections = corrections


def _find_corrections(services: AttemptServices, ops: WriteOps, late: list[str]) -> bool:
    """Find the corrections that the attempt was not given, in the transaction of its end."""
    late[:] = (
        one
        for one in question_rows.list_corrections(ops, services.facts.id, services.task.id)
        if one not in services.start.required_fixes
    )
    return bool(late)


async def _save(
    services: AttemptServices,
    state: Judged,
    journal: ClaimJournal,
    merged: MergeCandidate,
    late: list[str],
) -> bool:
    """Move the head and the status together; False if another process moved the head.

    Corrections that the attempt was not given are put into `late`; then nothing is written either.
    """
    work, final = state.work, merged.verdict or state.verdict
    commit, number = merged.commit or None, services.number
    now = stamp(services.clock.now())
    completion = CompletionChange(
        qc_score=float(final.score),
        qc_feedback=final.verdict.feedback,
        verified_at=now,
        total_attempts=number,
        qc_passed_on_attempt=number,
        retries_needed=number - 1,
        files_changed=work.changed,
        integrated_at=now,
        integrated_commit=commit,
        integrated_tree=merged.tree or None,
        accepted_attempt=number,
        passed_checks=tuple(o.check for o in state.outcomes if o.state == "passed"),
    )
    counts = count_criteria((c.state, c.basis) for c in final.criteria)
    asks = ASK_TOOL in services.task.tools
    head = HeadUpdate(expect=merged.onto, head=merged.commit, tree=merged.tree)
    bodies: Bodies = [("check", run_body(run, task=task)) for task, run in merged.runs]
    if merged.verdict:
        body = verdict_body(merged.verdict, merged.tree, work.answer)
        bodies = [*bodies, ("verdict", body)]
    return await journal.transition(
        TaskStatus.COMPLETED,
        EventKind.TASK_COMPLETED,
        task=(completion, CriteriaCountsChange.of_counts(counts)),
        attempt=(AttemptResultChange(verdict=PackedJson.pack(final), integrated_commit=commit),),
        data={
            "score": float(final.score),
            "commit": merged.commit,
            "changed": list(work.changed)[:200],
            "merged": bool(merged.runs),
        },
        records=seal_records(services, bodies),
        verdict=merged.verdict,
        publish=head if merged.commit else None,
        refuse=partial(_find_corrections, services, late=late) if asks else None,
    )
