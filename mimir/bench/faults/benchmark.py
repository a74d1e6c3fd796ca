"""The benchmark of planted faults: which runs are played, over as many processes as there are cores."""

import asyncio
import multiprocessing
import os
import signal
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import ProcessPoolExecutor
from dataclasses import dataclass

from mimir.bench.faults.case import Case
from mimir.bench.faults.families import bugfix, command, library, migration, notes, pipeline
from mimir.bench.faults.judges import Judge
from mimir.bench.faults.operators import CLEAN, usable
from mimir.bench.faults.outcome import Outcome
from mimir.bench.faults.stage import Play, play_all
from mimir.bench.faults.tally import rows
from mimir.bench.result import Result

NAME = "faults"
FAMILIES: Mapping[str, Callable[[int], Case]] = {
    "library": library.make,
    "pipeline": pipeline.make,
    "migration": migration.make,
    "bugfix": bugfix.make,
    "command": command.make,
    "notes": notes.make,
}
UNCHECKED = ("notes",)
"""Families that have no checks."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Size:
    """How many seeds each judge is heard on: 1 … n; 0: the judge is left out."""

    seeds: Mapping[Judge, int]

    @property
    def told(self) -> str:
        """As printed."""
        return ", ".join(f"1-{n} ({judge})" for judge, n in self.seeds.items() if n)


SMOKE = Size(seeds={"always": 1, "random": 0, "half": 0})
FULL = Size(seeds={"always": 20, "random": 4, "half": 4})


@dataclass(frozen=True, slots=True, kw_only=True)
class Job:
    """All runs of one family and seed: they share a project."""

    family: str
    seed: int
    judges: tuple[Judge, ...]
    operators: tuple[str, ...] = ()
    """Empty: all that the family has work for."""


async def run(
    size: Size,
    *,
    say: Callable[[str], None],
    families: Sequence[str] = tuple(FAMILIES),
    operators: Sequence[str] = (),
    processes: int = 0,
) -> Result:
    """Play all runs.

    Args:
        size: How many.
        say: Told how far it is.
        families: Which.
        operators: Which. Empty: all.
        processes: How many at once. 0: one a core. What is found does not depend on it.

    Raises:
        UnavailableError: There is no sandbox on this machine.
    """
    jobs = _jobs(size, families, operators)
    count = processes or len(os.sched_getaffinity(0))
    played: dict[Job, Sequence[Outcome]] = {}
    # Not forked: this process has threads, of the store and of the event loop.
    pool = ProcessPoolExecutor(
        min(count, len(jobs)), multiprocessing.get_context("spawn"), initializer=_ignore_signals
    )
    try:
        loop = asyncio.get_running_loop()

        async def one(job: Job) -> None:
            played[job] = await loop.run_in_executor(pool, perform, job)
            say(f"{NAME}: {len(played)} of {len(jobs)} projects")

        await asyncio.gather(*(one(job) for job in jobs))
    finally:
        pool.shutdown(wait=False, cancel_futures=True)
    outcomes = [outcome for job in jobs for outcome in played[job]]
    return Result(name=NAME, seeds=size.told, rows=rows(outcomes, UNCHECKED))


def perform(job: Job) -> list[Outcome]:
    """Play one job, in a process of the pool."""
    case = FAMILIES[job.family](job.seed)
    plays = [
        Play(judge=judge, operator=operator)
        for judge in job.judges
        for operator in (CLEAN, *usable(case))
        if operator in (CLEAN, *(job.operators or usable(case)))
    ]
    return asyncio.run(play_all(case, plays))


def _jobs(size: Size, families: Sequence[str], operators: Sequence[str]) -> list[Job]:
    last = max(size.seeds.values())
    return [
        Job(
            family=family,
            seed=seed,
            judges=tuple(judge for judge, n in size.seeds.items() if seed <= n),
            operators=tuple(operators),
        )
        for seed in range(1, last + 1)
        for family in families
    ]


def _ignore_signals() -> None:
    # Ctrl-C reaches the whole group; the parent says what follows from it.
    signal.signal(signal.SIGINT, signal.SIG_IGN)
