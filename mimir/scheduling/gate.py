"""The final gate: before a run ends, every check of every completed task runs on the final tree.

A check is red if it is required, was counted as passed in its task's accepted verdict, and now fails twice. The merge after which
it first failed is named.
"""

import asyncio
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass
from typing import TypeVar

from mimir.domain.evidence import CheckRun
from mimir.domain.plan import Check, Task

T = TypeVar("T")


@dataclass(frozen=True, slots=True, kw_only=True)
class Accepted:
    """A completed task with what its accepted verdict counted."""

    task: Task
    attempt: int
    answer: str
    """For its checks; empty: it has none."""
    passed: frozenset[str]
    """Ids of its checks that were counted as passed."""
    changed: frozenset[str] = frozenset()
    """Paths that its deliverable changed, as the store keeps them (`well_formed`)."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Merge:
    """One step of the run's line, oldest first."""

    task: str
    tree: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Red:
    """A check that was passed and is red on the final tree."""

    task: str
    check: str
    merge: str
    """Task whose merge made it red; empty: it was never green on the line."""
    run: CheckRun


RunCheck = Callable[[Task, Check, str, str], Awaitable[Sequence[CheckRun]]]
"""(task, check, tree, answer) → its runs on that tree: one, or two if the first was red."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Passage:
    """What the gate saw."""

    runs: tuple[tuple[str, CheckRun], ...]
    """(task, run), in the plan's order."""
    red: tuple[Red, ...]


def counts(accepted: Accepted, check: Check) -> bool:
    """True if a red run of this check would stop the run."""
    return check.required and check.id in accepted.passed


async def pass_through(
    accepted: Sequence[Accepted], line: Sequence[Merge], tree: str, run_check: RunCheck
) -> Passage:
    """Run every check of every completed task on `tree`; for a red one, find the merge that made it so."""
    wanted = [(one, check) for one in accepted for check in one.task.checks]
    seen = await together([run_check(a.task, c, tree, a.answer) for a, c in wanted])
    red: list[Red] = []
    for (one, check), runs in zip(wanted, seen, strict=True):
        if not runs[-1].green and counts(one, check):
            merge = await _first_red(one, check, line, run_check)
            red.append(Red(task=one.task.id, check=check.id, merge=merge, run=runs[-1]))
    named = [
        (one.task.id, run) for (one, _), runs in zip(wanted, seen, strict=True) for run in runs
    ]
    return Passage(runs=tuple(named), red=tuple(red))


async def together(jobs: Sequence[Awaitable[T]]) -> list[T]:
    """Await all; the first exception is raised as it is, when all the others have ended."""
    tasks = [asyncio.ensure_future(job) for job in jobs]
    try:
        return list(await asyncio.gather(*tasks))
    finally:
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)


async def _first_red(
    accepted: Accepted, check: Check, line: Sequence[Merge], run_check: RunCheck
) -> str:
    own = next((i for i, merge in enumerate(line) if merge.task == accepted.task.id), 0)
    for merge in line[own:]:
        runs = await run_check(accepted.task, check, merge.tree, accepted.answer)
        if not runs[-1].green:
            return merge.task
    return ""
