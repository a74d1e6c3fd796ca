"""Integration of an accepted attempt: merged onto the run branch and proved again.

Git objects are written first, then one transaction moves `Run.head` with the status: twice optimistically, then under the integration
lease. If the run branch moved since the attempt's base, the checks of this task and of every task that it touches run again, and
QC judges a file that both sides changed.
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
from mimir.qc.integrity.check_files import apparatus, configures_runner
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
    """Tip of the run branch."""

    head: str
    tree: str
    completed: tuple[AcceptedTask, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class MergeCandidate:
    """Commit that may become the head of the run branch."""

    commit: str
    tree: str
    onto: str
    """Head that it was made for."""
    runs: tuple[tuple[str, CheckRun], ...] = ()
    """(task, run) of the checks on the merged tree. Empty: the attempt's base is still the head."""
    verdict: Verdict | None = None
    """Second verdict, on the merged tree. None: no file was changed on both sides."""


@dataclass(frozen=True, slots=True, kw_only=True)
class MergeConflict:
    """Reason why an accepted attempt cannot be merged."""

    cause: Cause
    """`integration`, or after a second judgement `qc_unavailable` or `unverifiable`."""
    issues: tuple[str, ...]
    onto: str = ""
    """Head that the merge was tried on."""
    runs: tuple[tuple[str, CheckRun], ...] = ()


Judge = Callable[[str, Sequence[str]], Awaitable[Verdict | Cause]]
"""(merged tree, files changed on both sides) → verdict, or cause why there is none."""


@dataclass(frozen=True, slots=True, kw_only=True)
class IntegrationServices:
    """Services for integration."""

    history: GitHistory
    run_check: RunCheck
    judge: Judge
    load_branch: Callable[[], Awaitable[RunBranch]]
    publish: Callable[[MergeCandidate], Awaitable[bool]]
    """Moves the head and completes the task together; False if the head has moved."""
    lease: Callable[[], Awaitable[bool]]
    """Takes the integration lease, waiting for it."""
    release: Callable[[], Awaitable[None]]


async def integrate(
    task: Task, work: Deliverable, accepted: AcceptedTask, use: IntegrationServices
) -> MergeConflict | None:
    """Merge an accepted deliverable; None if the task is completed, else why it needs a retry."""
    for _ in range(OPTIMISTIC_TRIES):
        end = await _try_once(task, work, accepted, use)
        if end != MOVED:
            return end
    await use.lease()
    try:
        # Other tasks may still merge optimistically, so one round may not be enough.
        while True:
            end = await _try_once(task, work, accepted, use)
            if end != MOVED:
                return end
    finally:
        await use.release()


async def _try_once(
    task: Task, work: Deliverable, accepted: AcceptedTask, use: IntegrationServices
) -> MergeConflict | Literal["moved"] | None:
    """Try once; "moved": another process moved the head, so try again."""
    branch = await use.load_branch()
    merged = await _merge(task, work, accepted, branch, use)
    if isinstance(merged, MergeConflict):
        return replace(merged, onto=branch.head)
    return None if await use.publish(merged) else MOVED


async def _merge(
    task: Task,
    work: Deliverable,
    accepted: AcceptedTask,
    branch: RunBranch,
    use: IntegrationServices,
) -> MergeCandidate | MergeConflict:
    # The accepted tree is the merged tree: there is nothing to prove again.
    if branch.head == work.base_commit:
        return MergeCandidate(commit=work.commit, tree=work.tree, onto=branch.head)
    merge = await use.history.merge(branch.head, work.commit)
    if merge.conflicts:
        return MergeConflict(
            cause=Cause.INTEGRATION,
            issues=tuple(f"Another task changed the same lines of {p!r}." for p in merge.conflicts),
        )
    runs, red = await _prove(task, work, accepted, branch, merge.tree, use)
    if red:
        return MergeConflict(cause=Cause.INTEGRATION, issues=red, runs=runs)
    verdict = await _judge_shared_files(work, branch, merge.tree, use)
    if isinstance(verdict, MergeConflict):
        return verdict
    commit = await use.history.commit(
        merge.tree, [branch.head, work.commit], f"Merge {task.id}: {task.title}"
    )
    return MergeCandidate(
        commit=commit, tree=merge.tree, onto=branch.head, runs=runs, verdict=verdict
    )


async def _prove(
    task: Task,
    work: Deliverable,
    accepted: AcceptedTask,
    branch: RunBranch,
    tree: str,
    use: IntegrationServices,
) -> tuple[tuple[tuple[str, CheckRun], ...], tuple[str, ...]]:
    """Run the checks that a merge could break; return all runs, and the red ones in words."""
    touched = [a for a in branch.completed if _touches(work.changed, a)]
    wanted = [(one, check) for one in (accepted, *touched) for check in one.task.checks]
    others = (accepted, *branch.completed)
    results = await await_all([use.run_check(a, c, tree, others) for a, c in wanted])
    runs = [(a.task.id, run) for (a, _), ran in zip(wanted, results, strict=True) for run in ran]
    red = [
        f"Merged with the work of others, check {check.id!r} of {one.task.id} fails"
        f"{describe_restored_files(ran[-1])}: {ran[-1].output_tail[-2000:]}"
        for (one, check), ran in zip(wanted, results, strict=True)
        if not ran[-1].green and counts(one, check)
    ]
    return tuple(runs), tuple(red)


def _touches(changed: Sequence[str], other: AcceptedTask) -> bool:
    """Return whether a completed task, or one of its checks, depends on these files."""
    check_files = [apparatus(check) for check in other.task.checks]
    globs = (*other.task.files, *(glob for one in check_files for glob in one.all_tests))
    return any(
        # Compared as the store keeps names: a name may look like a glob that does not match itself.
        well_formed(path) in other.changed
        or matches(path, globs)
        or any(configures_runner(one, path) for one in check_files)
        for path in changed
    )


async def _judge_shared_files(
    work: Deliverable, branch: RunBranch, tree: str, use: IntegrationServices
) -> Verdict | MergeConflict | None:
    """Ask QC again if a file was changed on both sides since the attempt's base."""
    theirs = {c.path for c in await use.history.diff_trees(work.base_tree, branch.tree)}
    both = tuple(path for path in work.changed if path in theirs)
    # Changes of different files were judged already.
    if not both:
        return None
    verdict = await use.judge(tree, both)
    if isinstance(verdict, Cause):
        return MergeConflict(cause=verdict, issues=("QC could not judge the merged tree.",))
    if verdict.passed:
        return verdict
    if verdict.unverifiable:
        return MergeConflict(cause=Cause.UNVERIFIABLE, issues=verdict.reasons)
    return MergeConflict(cause=Cause.INTEGRATION, issues=(*verdict.reasons, *verdict.issues))
