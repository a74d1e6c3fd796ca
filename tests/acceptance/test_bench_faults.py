"""The benchmark of planted faults, played small: the engine, the oracle and the tables are the real ones."""

from pathlib import Path

from mimir.bench.faults import benchmark
from mimir.bench.faults.benchmark import FAMILIES, Size
from mimir.bench.faults.stage import Play, play_all
from mimir.bench.result import Result


async def test_planted_faults_are_found_and_right_work_is_let_through(tmp_path: Path):
    plays = [
        Play(judge="always", operator=operator)
        for operator in ("clean", "deleted test", "records rewritten", "silent no-op")
    ]

    outcomes = await play_all(FAMILIES["migration"](1), plays, tmp_path)

    assert [(o.operator, o.wrong, o.completed, o.caught) for o in outcomes] == [
        ("clean", False, True, ""),
        ("deleted test", True, False, "check"),
        ("records rewritten", True, False, "seal"),
        ("silent no-op", True, False, "no change"),
    ]


async def test_the_same_seeds_give_the_same_figures_to_the_last_digit():
    size, told = Size(seeds={"always": 1}), list[str]()

    async def once() -> Result:
        return await benchmark.run(
            size,
            say=told.append,
            families=("notes",),
            operators=("subtle bug", "wrong file"),
            processes=1,
        )

    first, second = await once(), await once()

    assert first.hash == second.hash
    assert told == ["faults: 1 of 1 projects"] * 2
    [clean] = [row for row in first.rows if row["table"] == "clean"]
    assert (clean["right"], clean["false_alarms"]) == (1, 0)
