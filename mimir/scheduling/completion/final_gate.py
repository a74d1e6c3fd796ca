"""Final gate: all checks of all completed tasks run again on the final tree.

A check is red if it is required, passed in its task's accepted verdict, and now fails twice: as it is, or without new files
of other tasks (`qc.checks.regression`). The result names the merge after which it first failed.
"""

from collections.abc import Awaitable, Callable, Sequence

from mimir.domain.evidence import CheckRun
from mimir.domain.plan import Check
from mimir.domain.value_class import value_class
from mimir.qc.checks.regression import AcceptedTask
from mimir.workspace.aio import await_all


@value_class
class MergeStep:
    """One merge on the run branch."""

    task: str
    tree: str


@value_class
class FailedGateCheck:
    """A check that passed before and is red on the final tree."""

    task: str
    check: str
    merge: str
    """Task whose merge made it red. Empty: it was never green on the run branch."""
    run: CheckRun


RunCheck = Callable[
    [AcceptedTask, Check, str, Sequence[AcceptedTask]], Awaitable[Sequence[CheckRun]]
]
"""(task, check, tree, all accepted tasks) → runs of the check; the last one decides."""


@value_class
class GateResult:
    """Check runs of the final gate."""

    runs: tuple[tuple[str, CheckRun], ...]
    """(task, run), in the plan's order."""
    red: tuple[FailedGateCheck, ...]


def counts(accepted: AcceptedTask, check: Check) -> bool:
    """Return whether a red run of this check stops the run."""
    return check.required and check.id in accepted.passed


def describe_restored_files(run: CheckRun) -> str:
    """Return the end of a sentence about a check without new files; empty for others."""
    if not run.stands_for:
        return ""
    return (
        " without the tests and settings that other tasks added since it passed; a task that is to add settings must declare "
        "them in its files"
    )


async def pass_through(
    accepted: Sequence[AcceptedTask], merges: Sequence[MergeStep], tree: str, run_check: RunCheck
) -> GateResult:
    """Run all checks on `tree`; for a red one, find the first merge that made it red.

    `merges` are in merge order, oldest first.
    """
    wanted = [(one, check) for one in accepted for check in one.task.checks]
    results = await await_all([run_check(one, check, tree, accepted) for one, check in wanted])
    red: list[FailedGateCheck] = []
    for (one, check), runs in zip(wanted, results, strict=True):
        # The last run decides: a red check was repeated, or ran without new files.
        if not runs[-1].green and counts(one, check):
            merge = await _find_first_red_merge(one, check, accepted, merges, run_check)
            red.append(FailedGateCheck(task=one.task.id, check=check.id, merge=merge, run=runs[-1]))
    named = [
        (one.task.id, run) for (one, _), runs in zip(wanted, results, strict=True) for run in runs
    ]
    return GateResult(runs=tuple(named), red=tuple(red))


async def _find_first_red_merge(
    one: AcceptedTask,
    check: Check,
    accepted: Sequence[AcceptedTask],
    merges: Sequence[MergeStep],
    run_check: RunCheck,
) -> str:
    # Before its own task's merge the check need not be green.
    own = next((i for i, merge in enumerate(merges) if merge.task == one.task.id), 0)
    for merge in merges[own:]:
        runs = await run_check(one, check, merge.tree, accepted)
        if not runs[-1].green:
            return merge.task
    return ""
