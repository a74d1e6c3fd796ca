import json
from collections.abc import Sequence

import pytest

from mimir_bench import figures
from mimir_bench.figures import Figures, Goal
from mimir_bench.result import BenchResult, Older, differences, document, older


def measured(ratio: float, count: int = 3, goals: Sequence[Goal] = ()) -> Figures:
    made = Figures(name="cost", seeds="none", tolerance=0.25, goals=goals)
    made.count("calls", count, of="mimir")
    made.ratio("wall over floor", ratio, of="mimir")
    made.ratio("wall over floor", 9.0, of="another")
    return made


def test_only_the_figure_of_mimir_has_a_goal():
    goals = (Goal(figure="wall over floor", most=1.1, of="mimir"),)
    said = "\n".join(figures.lines(measured(1.3, goals=goals).result(), "what it costs"))

    ours, theirs = (line for line in said.splitlines() if line.startswith("wall over floor"))
    assert ours.split()[-3:] == ["<=", "1.1", "missed"]
    assert theirs.split()[-1] == "9.00"
    assert "met" in "\n".join(figures.lines(measured(1.1, goals=goals).result(), "what it costs"))


def read(result: BenchResult) -> Older:
    return older(json.dumps(document([result])))


@pytest.mark.parametrize(("now", "differs"), [(1.0, 0), (1.2, 0), (0.8, 0), (1.3, 1), (0.7, 1)])
def test_a_ratio_may_leave_its_old_value_by_its_tolerance(now: float, differs: int):
    old = read(measured(1.0).result())
    assert len(differences(old, [measured(now).result()])) == differs


@pytest.mark.parametrize(("now", "differs"), [(1.0, 0), (11.0, 0), (12.0, 1)])
def test_a_ratio_far_below_its_goal_may_change_by_a_share_of_the_goal(now: float, differs: int):
    goals = (Goal(figure="wall over floor", most=40.0, of="mimir"),)
    old = read(measured(1.0).result())
    assert len(differences(old, [measured(now, goals=goals).result()])) == differs


def test_changed_count_is_a_difference_and_changes_the_hash():
    old = measured(1.0).result()
    new = measured(1.0, count=4).result()

    found = differences(read(old), [new])
    assert found == ["cost: calls, mimir: count: 3 before, 4 now"]
    assert old.hash != new.hash
    assert old.hash == measured(2.0).result().hash


def test_a_share_that_was_nothing_may_become_a_little():
    none, little = measured(0.0).result(), measured(0.2).result()
    assert differences(read(none), [little]) == []
