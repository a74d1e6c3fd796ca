"""An accepted attempt becomes part of the run's line: objects first, then one transaction moves `Run.head` with the status.

Optimistic twice, then under the integration lease. If the line moved since the attempt's base, the merge is proved again: every check
of this task, of the tasks whose files it touches, and QC's judgement where a file was changed on both sides.
"""

from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass, replace
from typing import Literal

from mimir.attempts.results import Deliverable
from mimir.domain.evidence import CheckRun
from mimir.domain.globs import matches
from mimir.domain.plan import Task
from mimir.domain.task_states import Cause
from mimir.domain.verdict import Verdict
from mimir.qc.checks.regression import AcceptedTask
from mimir.qc.integrity.check_files import configures_runner, find_check_files
from mimir.scheduling.completion.final_gate import (
    RunCheck,
    await_all,
    counts,
    describe_restored_files,
)
from mimir.store.schema import well_formed
from mimir.workspace.git.history import GitHistory

OPTIMISTIC_TRIES = 2
MOVED: Literal["moved"] = "moved"


@dataclass(frozen=True, slots=True, kw_only=True)
class RunBranch:
    """Where the run's line stands."""

    head: str
    tree: str
    completed: tuple[AcceptedTask, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class MergeCandidate:
    """A commit that may become the line's head."""

    commit: str
    tree: str
    onto: str
    """The head that it was made for."""
    runs: tuple[tuple[str, CheckRun], ...] = ()
    """(task, run) of the checks that proved the merge; empty where the attempt's base is still the head."""
    judgement: Verdict | None = None
    """QC's second judgement, where a file was changed on both sides."""


@dataclass(frozen=True, slots=True, kw_only=True)
class MergeConflict:
    """Why an accepted attempt cannot be merged as it is."""

    cause: Cause
    """`integration`, or what QC's second judgement ended in (`qc_unavailable`, `unverifiable`)."""
    issues: tuple[str, ...]
    onto: str = ""
    """The head that it was tried on."""
    runs: tuple[tuple[str, CheckRun], ...] = ()


Judge = Callable[[str, Sequence[str]], Awaitable[Verdict | Cause]]
"""(merged tree, files changed on both sides) → QC's judgement on the merged tree, or the cause why there is none."""


@dataclass(frozen=True, slots=True, kw_only=True)
class IntegrationServices:
    """What integration needs of others."""

    history: GitHistory
    run_check: RunCheck
    judge: Judge
    line: Callable[[], Awaitable[RunBranch]]
    publish: Callable[[MergeCandidate], Awaitable[bool]]
    """Moves the head and completes the task in one transaction; False if the head has moved meanwhile."""
    lease: Callable[[], Awaitable[bool]]
    """Takes the integration lease, waiting for it."""
    release: Callable[[], Awaitable[None]]


async def integrate(
    task: Task, work: Deliverable, accepted: AcceptedTask, use: IntegrationServices
) -> MergeConflict | None:
    """Bring an accepted deliverable onto the line.

    Returns:
        None when the task is completed; else why it has to be tried again.
    """
    for _ in range(OPTIMISTIC_TRIES):
        end = await _once(task, work, accepted, use)
        if end != MOVED:
            return end
    await use.lease()
    try:
        while True:
            end = await _once(task, work, accepted, use)
            if end != MOVED:
                return end
    finally:
        await use.release()


async def _once(
    task: Task, work: Deliverable, accepted: AcceptedTask, use: IntegrationServices
) -> MergeConflict | Literal["moved"] | None:
    """Try once; "moved": the head is another one by now, try again."""
    line = await use.line()
    merged = await _merge(task, work, accepted, line, use)
    if isinstance(merged, MergeConflict):
        return replace(merged, onto=line.head)
    return None if await use.publish(merged) else MOVED


async def _merge(
    task: Task, work: Deliverable, accepted: AcceptedTask, line: RunBranch, use: IntegrationServices
) -> MergeCandidate | MergeConflict:
    if line.head == work.base_commit:
        return MergeCandidate(commit=work.commit, tree=work.tree, onto=line.head)
    merge = await use.history.merge(line.head, work.commit)
    if merge.conflicts:
        return MergeConflict(
            cause=Cause.INTEGRATION,
            issues=tuple(f"Another task changed the same lines of {p!r}." for p in merge.conflicts),
        )
    runs, red = await _prove(task, work, accepted, line, merge.tree, use)
    if red:
        return MergeConflict(cause=Cause.INTEGRATION, issues=red, runs=runs)
    judgement = await _judge_both(work, line, merge.tree, use)
    if isinstance(judgement, MergeConflict):
        return judgement
    commit = await use.history.commit(
        merge.tree, [line.head, work.commit], f"Merge {task.id}: {task.title}"
    )
    return MergeCandidate(
        commit=commit, tree=merge.tree, onto=line.head, runs=runs, judgement=judgement
    )


async def _prove(
    task: Task,
    work: Deliverable,
    accepted: AcceptedTask,
    line: RunBranch,
    tree: str,
    use: IntegrationServices,
) -> tuple[tuple[tuple[str, CheckRun], ...], tuple[str, ...]]:
    """Run the checks that a merge could have broken; return all runs, and what is red in words."""
    touched = [a for a in line.completed if _touches(work.changed, a)]
    wanted = [(one, check) for one in (accepted, *touched) for check in one.task.checks]
    all_of_them = (accepted, *line.completed)
    seen = await await_all([use.run_check(a, c, tree, all_of_them) for a, c in wanted])
    runs = [(one.task.id, run) for (one, _), ran in zip(wanted, seen, strict=True) for run in ran]
    red = [
        f"Merged with the work of others, check {check.id!r} of {one.task.id} fails"
        f"{describe_restored_files(ran[-1])}: {ran[-1].output_tail[-2000:]}"
        for (one, check), ran in zip(wanted, seen, strict=True)
        if not ran[-1].green and counts(one, check)
    ]
    return tuple(runs), tuple(red)


def _touches(changed: Sequence[str], other: AcceptedTask) -> bool:
    """True if a completed task has a stake in one of these files: it declares it, changed it, or a check is made of it."""
    made_of = [find_check_files(check) for check in other.task.checks]
    stakes = (*other.task.files, *(glob for one in made_of for glob in one.all_tests))
    return any(
        # As the store keeps names; one may look like a glob that does not match itself.
        well_formed(path) in other.changed
        or matches(path, stakes)
        or any(configures_runner(one, path) for one in made_of)
        for path in changed
    )


async def _judge_both(
    work: Deliverable, line: RunBranch, tree: str, use: IntegrationServices
) -> Verdict | MergeConflict | None:
    """Have QC judge again where a file was changed on both sides since the attempt's base."""
    theirs = {c.path for c in await use.history.diff_trees(work.base_tree, line.tree)}
    both = tuple(path for path in work.changed if path in theirs)
    if not both:
        return None
    judgement = await use.judge(tree, both)
    if isinstance(judgement, Cause):
        return MergeConflict(cause=judgement, issues=("QC could not judge the merged tree.",))
    if judgement.passed:
        return judgement
    if judgement.unverifiable:
        return MergeConflict(cause=Cause.UNVERIFIABLE, issues=judgement.reasons)
    return MergeConflict(cause=Cause.INTEGRATION, issues=(*judgement.reasons, *judgement.issues))
