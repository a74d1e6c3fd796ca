"""Small runs made from steps: answered, retried, failed, whole, completed."""

import asyncio
from dataclasses import replace
from pathlib import Path

from mimir.domain.task_states import Cause, RunStatus
from mimir.store.operations import claims
from mimir.store.protocol import GraphStore
from mimir.store.sqlite.sqlite_store import SqliteStore
from tests.support.clock import FrozenClock
from tests.support.small_run import FOUND, PLAN, SmallRun, opinion
from tests.support.stores import opened


async def answered(run: SmallRun, id: str, answer: str = f"It {FOUND}.") -> None:
    """Complete a task that changes nothing."""
    claim = await run.claim(id)
    work = await run.work(claim, answer)
    await run.check(claim, work)
    ruled = await run.judge(claim, work, (), opinion("PASS", 95, "It answers.", c1="passed"))
    await run.complete(claim, work, ruled)


async def retried(run: SmallRun) -> None:
    """Let `task-1` fail its check once, with a claim that does not hold, and complete it on the second try, merged."""
    claim = await run.claim("task-1")
    await run.trip(claim)
    work = await run.work(
        claim, "I wrote the limiter. All tests pass.", ("limiter.py",), left_out=("notes.txt",)
    )
    outcomes = await run.check(claim, work, 1, 1, 1)
    unsupported = ['[call:7] "3 passed": there was no call 7']
    verdict = opinion("FAIL", 40, "The bucket is never refilled.", c1="failed", c2="unverified")
    ruled = await run.judge(claim, work, outcomes, verdict, unsupported)
    await run.retry(claim, Cause.CHECK_FAILED, ruled.issues)
    run.clock.advance(1)
    claim = await run.claim("task-1")
    work = await run.work(claim, f"It {FOUND}. [call:3]", ("limiter.py",))
    outcomes = await run.check(claim, work, 1, 0)
    verdict = opinion("PASS", 92, "Refills, and is locked.", c1="passed", c2="passed")
    ruled = await run.judge(claim, work, outcomes, verdict)
    await run.complete(claim, work, ruled, merged=(0,))  # fmt: skip


async def failed(run: SmallRun) -> None:
    """Let `task-2` fail and block `task-3`."""
    claim = await run.claim("task-2")
    work = await run.work(claim, "Done.", ("middleware.py",))
    await run.check(claim, work)
    verdict = opinion("FAIL", 20, "No header is set.", c1="failed")
    ruled = await run.judge(claim, work, (), verdict)
    await run.fail(claim, Cause.QC_REJECTED, ruled.issues)
    await run.store.write(lambda ops: claims.block_task(ops, run.run, "task-3", "task-2"))


async def whole(store: GraphStore, clock: FrozenClock) -> SmallRun:
    """Write the whole run, ended `failed`, its gate green."""
    run = SmallRun(store, clock)
    await run.create()
    await answered(run, "task-0")
    await retried(run)
    await failed(run)
    await run.gate(("task-1", 0))
    await run.end(RunStatus.FAILED)
    return run


TWO = replace(PLAN, tasks=PLAN.tasks[:2])


async def completed(store: GraphStore, clock: FrozenClock) -> SmallRun:
    """Write a run of the first two tasks, ended `completed`."""
    run = SmallRun(store, clock, plan=TWO)
    await run.create()
    await answered(run, "task-0")
    await retried(run)
    await run.gate(("task-1", 0))
    await run.end(RunStatus.COMPLETED)
    return run


def stored_project(project: Path) -> None:
    """Make a project with one stored run."""

    async def job() -> None:
        clock = FrozenClock()
        async with opened(SqliteStore(project / ".mimir/mimir.db", clock)) as store:
            await whole(store, clock)
        (project / ".mimir/project").write_text("p\n", encoding="utf-8")

    asyncio.run(job())
