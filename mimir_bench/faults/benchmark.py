"""Benchmark "faults": runs with planted faults, in one process for each core."""

import asyncio
import multiprocessing
import os
import signal
import tempfile
import threading
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import ProcessPoolExecutor
from dataclasses import dataclass
from pathlib import Path

from mimir_bench.faults.attacks.attacked_case import (
    MAX_SEED,
    find_attacked_families,
    make_attacked_case,
)
from mimir_bench.faults.families import bugfix, command, library, migration, notes, pipeline
from mimir_bench.faults.fault_case import FaultCase, ProjectCase
from mimir_bench.faults.fault_outcome import FaultOutcome
from mimir_bench.faults.fault_runs import FaultRun, play_all
from mimir_bench.faults.judges import Judge
from mimir_bench.faults.operators import CLEAN, usable
from mimir_bench.faults.outcome_counts import rows
from mimir_bench.result import BenchResult

NAME = "faults"
FAMILIES: Mapping[str, Callable[[int], FaultCase]] = {
    "library": library.make,
    "pipeline": pipeline.make,
    "migration": migration.make,
    "bugfix": bugfix.make,
    "command": command.make,
    "notes": notes.make,
}
ATTACKED = find_attacked_families()
"""Families of attacks on checks, with honest work of the same shape."""
UNCHECKED = ("notes",)
"""Families without checks."""


@dataclass(frozen=True, slots=True, kw_only=True)
class FaultSizes:
    """Number of seeds for each judge, from 1; 0: the judge is left out."""

    seeds: Mapping[Judge, int]

    @property
    def seeds_text(self) -> str:
        """Text for the output."""
        return ", ".join(f"1-{n} ({judge})" for judge, n in self.seeds.items() if n)


SMOKE = FaultSizes(seeds={"always": 1, "random": 0, "half": 0})
FULL = FaultSizes(seeds={"always": 20, "random": 2, "half": 2})
"""The first judge measures the engine; the others are for comparison, with fewer seeds."""


@dataclass(frozen=True, slots=True, kw_only=True)
class FaultJob:
    """All runs of one family and seed: they share a project."""

    family: str
    seed: int
    judges: tuple[Judge, ...]
    operators: tuple[str, ...] = ()
    """Empty: all that apply to the family."""


async def run(
    size: FaultSizes,
    *,
    say: Callable[[str], None],
    keep: Callable[[BenchResult], None] = lambda _: None,
    families: Sequence[str] = (*FAMILIES, *ATTACKED),
    operators: Sequence[str] = (),
    processes: int = 0,
) -> BenchResult:
    """Run all cases.

    Args:
        size: Numbers of seeds.
        say: Receives progress lines.
        keep: Receives each intermediate result.
        families: Families to run.
        operators: Operators to run; empty: all.
        processes: Parallel processes; 0: one for each core. Results do not depend on it.

    Raises:
        UnavailableError: The machine has no sandbox.
    """
    jobs = _jobs(size, families, operators)
    # The cores that this process may use, which a container limits; cpu_count() ignores it.
    count = processes or len(os.sched_getaffinity(0))
    played: dict[FaultJob, Sequence[FaultOutcome]] = {}

    # In the order of the jobs, not of their ends: the result is equal for any number of processes.
    def result() -> BenchResult:
        outcomes = [outcome for job in jobs for outcome in played.get(job, ())]
        return BenchResult(name=NAME, seeds=size.seeds_text, rows=rows(outcomes, UNCHECKED))

    with tempfile.TemporaryDirectory(prefix="mimir-bench-", ignore_cleanup_errors=True) as room:
        # Not forked: this process has threads, of the event loop and of the caller.
        pool = ProcessPoolExecutor(
            min(count, len(jobs)), multiprocessing.get_context("spawn"), initializer=_begin
        )
        try:
            loop = asyncio.get_running_loop()

            async def one(job: FaultJob) -> None:
                played[job] = await loop.run_in_executor(pool, perform, job, room)
                say(f"{NAME}: {len(played)} of {len(jobs)} projects")
                keep(result())

            await asyncio.gather(*(one(job) for job in jobs))
        finally:
            # Processes left in the pool can block the exit of this process: their sentinels are lost.
            for child in multiprocessing.active_children() if len(played) < len(jobs) else ():
                child.kill()
            await asyncio.to_thread(pool.shutdown, cancel_futures=True)
    return result()


def perform(job: FaultJob, room: str) -> list[FaultOutcome]:
    """Run one job in a process of the pool, below the directory `room`."""
    case = make_case(job.family, job.seed)
    plays = [
        FaultRun(judge=judge, operator=operator)
        for judge in job.judges
        for operator in (CLEAN, *usable(case))
        if operator in (CLEAN, *(job.operators or usable(case)))
    ]
    return asyncio.run(play_all(case, plays, Path(room)))


def make_case(family: str, seed: int) -> ProjectCase:
    """Generate a case of any family."""
    if family in FAMILIES:
        return FAMILIES[family](seed)
    return make_attacked_case(family, seed)


def _jobs(size: FaultSizes, families: Sequence[str], operators: Sequence[str]) -> list[FaultJob]:
    last = max(size.seeds.values())
    return [
        FaultJob(
            family=family,
            seed=seed,
            judges=tuple(judge for judge, n in size.seeds.items() if seed <= n),
            operators=tuple(operators),
        )
        # By seed first, so that an interrupted benchmark has some runs of every family.
        for seed in range(1, last + 1)
        for family in families
        if seed <= MAX_SEED or family in FAMILIES
    ]


def _begin() -> None:
    """Prepare a process of the pool: only the parent handles Ctrl-C."""
    # Ctrl-C reaches the whole process group; a worker that ends by it breaks the pool.
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    threading.Thread(target=_end_with_parent, daemon=True).start()


def _end_with_parent() -> None:
    parent = multiprocessing.parent_process()
    if parent is not None:
        parent.join()
        # Not sys.exit: in a thread it would end the thread only.
        os._exit(1)
