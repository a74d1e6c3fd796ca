"""The final gate: before a run ends, every check of every completed task runs on the final tree.

A check is red if it is required, was counted as passed in its task's accepted verdict, and now fails twice. The merge after which
it first failed is named.
"""

import asyncio
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass

from mimir.domain.evidence import CheckRun
from mimir.domain.plan import Check, Task


@dataclass(frozen=True, slots=True, kw_only=True)
class Accepted:
    """A completed task with what its accepted verdict counted."""

    task: Task
    attempt: int
    answer: str
    passed: frozenset[str]
    """Ids of its checks that were counted as passed."""
    changed: frozenset[str] = frozenset()
    """Paths that its deliverable changed."""


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
    checks = [(one, check) for one in accepted for check in one.task.checks]
    runs: list[tuple[str, CheckRun]] = []
    red: list[Red] = []
    for (one, check), seen in zip(checks, await _all(checks, tree, run_check), strict=True):
        runs.extend((one.task.id, run) for run in seen)
        if seen[-1].green or not counts(one, check):
            continue
        merge = await _first_red(one, check, line, run_check)
        red.append(Red(task=one.task.id, check=check.id, merge=merge, run=seen[-1]))
    return Passage(runs=tuple(runs), red=tuple(red))


async def _all(
    checks: Sequence[tuple[Accepted, Check]], tree: str, run_check: RunCheck
) -> Sequence[Sequence[CheckRun]]:
    """Run checks as many at once as the sandbox has places for; what they showed, in their order."""
    try:
        async with asyncio.TaskGroup() as group:
            jobs = [group.create_task(_one(one, check, tree, run_check)) for one, check in checks]
    except BaseExceptionGroup as errors:
        raise errors.exceptions[0] from None
    return [job.result() for job in jobs]


async def _one(one: Accepted, check: Check, tree: str, run_check: RunCheck) -> Sequence[CheckRun]:
    return await run_check(one.task, check, tree, one.answer)


async def _first_red(
    accepted: Accepted, check: Check, line: Sequence[Merge], run_check: RunCheck
) -> str:
    own = next((i for i, merge in enumerate(line) if merge.task == accepted.task.id), 0)
    for merge in line[own:]:
        runs = await run_check(accepted.task, check, merge.tree, accepted.answer)
        if not runs[-1].green:
            return merge.task
    return ""
