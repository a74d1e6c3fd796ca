"""The final gate: before a run ends, every check of every completed task runs on the final tree.

A check is red if it is required, was counted as passed in its task's accepted verdict, and now fails twice, as it is or with its own
files put back (`standing`). The merge after which it first failed is named.
"""

import asyncio
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass
from typing import TypeVar

from mimir.domain.evidence import CheckRun
from mimir.domain.plan import Check
from mimir.qc.checks.regression import AcceptedTask

T = TypeVar("T")


@dataclass(frozen=True, slots=True, kw_only=True)
class MergeStep:
    """One step of the run's line, oldest first."""

    task: str
    tree: str


@dataclass(frozen=True, slots=True, kw_only=True)
class FailedGateCheck:
    """A check that was passed and is red on the final tree."""

    task: str
    check: str
    merge: str
    """Task whose merge made it red; empty: it was never green on the line."""
    run: CheckRun


RunCheck = Callable[
    [AcceptedTask, Check, str, Sequence[AcceptedTask]], Awaitable[Sequence[CheckRun]]
]
"""(whose, check, tree, all that is accepted) → its runs for that tree; the last one decides."""


@dataclass(frozen=True, slots=True, kw_only=True)
class GateResult:
    """What the gate saw."""

    runs: tuple[tuple[str, CheckRun], ...]
    """(task, run), in the plan's order."""
    red: tuple[FailedGateCheck, ...]


def counts(accepted: AcceptedTask, check: Check) -> bool:
    """True if a red run of this check would stop the run."""
    return check.required and check.id in accepted.passed


def put_back(run: CheckRun) -> str:
    """Say, as the end of a sentence, that a check ran with its own files as they were; empty: it did not."""
    if not run.stands_for:
        return ""
    return (
        " with its own files (tests, and what steers their runner) as they were when it was passed; a task that is to change them "
        "must name them in its files"
    )


async def pass_through(
    accepted: Sequence[AcceptedTask], line: Sequence[MergeStep], tree: str, run_check: RunCheck
) -> GateResult:
    """Run every check of every completed task on `tree`; for a red one, find the merge that made it so."""
    wanted = [(one, check) for one in accepted for check in one.task.checks]
    seen = await await_all([run_check(one, check, tree, accepted) for one, check in wanted])
    red: list[FailedGateCheck] = []
    for (one, check), runs in zip(wanted, seen, strict=True):
        if not runs[-1].green and counts(one, check):
            merge = await _first_red(one, check, accepted, line, run_check)
            red.append(FailedGateCheck(task=one.task.id, check=check.id, merge=merge, run=runs[-1]))
    named = [
        (one.task.id, run) for (one, _), runs in zip(wanted, seen, strict=True) for run in runs
    ]
    return GateResult(runs=tuple(named), red=tuple(red))


async def await_all(jobs: Sequence[Awaitable[T]]) -> list[T]:
    """Await all; the first exception is raised as it is, when all the others have ended."""
    tasks = [asyncio.ensure_future(job) for job in jobs]
    try:
        return list(await asyncio.gather(*tasks))
    finally:
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)


async def _first_red(
    one: AcceptedTask,
    check: Check,
    accepted: Sequence[AcceptedTask],
    line: Sequence[MergeStep],
    run_check: RunCheck,
) -> str:
    own = next((i for i, merge in enumerate(line) if merge.task == one.task.id), 0)
    for merge in line[own:]:
        runs = await run_check(one, check, merge.tree, accepted)
        if not runs[-1].green:
            return merge.task
    return ""
