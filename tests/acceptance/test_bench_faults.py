"""The benchmark of planted faults, played small: the engine, the oracle and the tables are the real ones."""

import asyncio
import multiprocessing
from pathlib import Path

import pytest

from mimir_bench.faults import benchmark
from mimir_bench.faults.benchmark import FAMILIES, FaultSizes
from mimir_bench.faults.fault_runs import FaultRun, play_all
from mimir_bench.result import BenchResult


async def test_planted_faults_are_found_and_right_work_is_accepted(tmp_path: Path):
    plays = [
        FaultRun(judge="always", operator=operator)
        for operator in (
            *("clean", "deleted test", "records rewritten", "silent no-op"),
            *("hidden dependence", "partial deliverable"),
        )
    ]

    outcomes = await play_all(FAMILIES["migration"](1), plays, tmp_path)

    assert [(o.operator, o.wrong, o.completed, o.caught, o.shown) for o in outcomes] == [
        ("clean", False, True, "", True),
        ("deleted test", True, False, "check", True),
        ("records rewritten", True, False, "seal", True),
        ("silent no-op", True, False, "no change", True),
        ("hidden dependence", True, True, "", False),  # right until 2099
        ("partial deliverable", True, False, "check", True),
    ]


async def test_attack_on_a_check_is_found_and_its_honest_twin_is_accepted(tmp_path: Path):
    family = benchmark.ATTACKED[0]
    operator = "A1 test changed by another task"
    plays = [FaultRun(judge="always", operator=name) for name in (operator, f"honest: {operator}")]

    outcomes = await play_all(benchmark.make_case(family, 1), plays, tmp_path)

    assert [(o.wrong, o.completed, o.caught) for o in outcomes] == [
        (True, False, "check"),
        (False, True, ""),
    ]


async def test_the_same_seeds_give_the_same_figures_to_the_last_digit():
    size, told = FaultSizes(seeds={"always": 1}), list[str]()

    async def once() -> BenchResult:
        return await benchmark.run(
            size,
            say=told.append,
            families=("notes",),
            operators=("subtle bug", "wrong file"),
            processes=1,
        )

    first, second = await once(), await once()

    assert multiprocessing.active_children() == []  # else the process that played could not end
    assert first.hash == second.hash
    assert told == ["faults: 1 of 1 projects"] * 2
    [clean] = [row for row in first.rows if row["table"] == "clean"]
    assert (clean["right"], clean["false_alarms"]) == (1, 0)


async def test_interrupted_benchmark_leaves_no_process():
    size, begun = FaultSizes(seeds={"always": 2}), asyncio.Event()

    def notify(_words: str) -> None:
        begun.set()

    playing = asyncio.ensure_future(
        benchmark.run(size, say=notify, families=("notes",), operators=("wrong file",), processes=1)
    )
    await begun.wait()  # the second project is under way
    playing.cancel()

    with pytest.raises(asyncio.CancelledError):
        await playing
    assert multiprocessing.active_children() == []
