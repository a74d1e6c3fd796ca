from collections.abc import Mapping
from dataclasses import replace
from typing import cast

from mimir_bench.faults import outcome_counts, tables
from mimir_bench.faults.fault_outcome import FaultOutcome
from mimir_bench.faults.operators import CLEAN
from mimir_bench.result import BenchResult, FigureRow

FOUND = FaultOutcome(
    judge="always",
    family="library",
    seed=1,
    operator="false success",
    version="a stub",
    wrong=True,
    completed=False,
    caught="check",
)
MISSED = replace(FOUND, operator="subtle bug", version="off by one", completed=True, caught="")
HARMLESS = replace(MISSED, wrong=False)
ALARM = replace(FOUND, operator=CLEAN, wrong=False, caught="judge")
GOOD = replace(MISSED, operator=CLEAN, wrong=False)


def row(outcomes: list[FaultOutcome], **named: str) -> FigureRow:
    [found] = [
        r
        for r in outcome_counts.rows(outcomes, ["notes"])
        if all(r.get(key) == value for key, value in named.items())
    ]
    return found


def test_detected_counts_wrong_runs_that_are_not_completed():
    counted = row([FOUND, MISSED, HARMLESS], table="operators", operator="all")
    assert (counted["runs"], counted["wrong"], counted["detected"]) == (3, 2, 1)
    assert counted["caught"] == {"check": 1}


def test_an_operator_that_is_never_found_stays_in_the_table():
    counted = row([FOUND, MISSED], table="operators", operator="subtle bug")
    assert (counted["wrong"], counted["detected"]) == (1, 0)
    missed = cast("Mapping[str, int]", row([FOUND, MISSED], table="missed")["missed"])
    assert missed == {"subtle bug / library / off by one": 1}


def test_work_on_which_every_check_passes_is_counted_apart():
    beyond = replace(MISSED, shown=False)
    found = replace(FOUND, operator="subtle bug", shown=False)
    outcomes = [FOUND, beyond, found]
    assert row(outcomes, table="operators", operator="all")["wrong"] == 1
    counted = row(outcomes, table="beyond", operator="subtle bug")
    assert (counted["wrong"], counted["detected"]) == (2, 1)
    assert row(outcomes, table="missed")["missed"] == {}
    assert row(outcomes, table="not shown")["missed"] == {"subtle bug / library / off by one": 1}


def test_a_false_alarm_is_right_work_that_was_refused():
    counted = row([GOOD, GOOD, ALARM, replace(ALARM, wrong=True)], table="clean")
    assert (counted["runs"], counted["right"], counted["false_alarms"]) == (4, 3, 1)


def test_qc_modes_and_families_without_checks_are_counted_separately():
    outcomes = [FOUND, replace(MISSED, family="notes"), replace(MISSED, judge="half")]
    alls = [r for r in outcome_counts.rows(outcomes, ["notes"]) if r.get("operator") == "all"]
    assert [(r["judge"], r["families"], r["wrong"], r["detected"]) for r in alls] == [
        ("always", "with checks", 1, 1),
        ("always", "without checks", 1, 0),
        ("half", "with checks", 1, 0),
    ]


def test_tables_mark_low_rates_and_name_missed_faults():
    rows = outcome_counts.rows([FOUND, MISSED, GOOD, ALARM], ["notes"])
    said = list(tables.lines(BenchResult(name="faults", seeds="1-1", rows=rows)))
    text = "\n".join(said)
    [low] = [line for line in said if line.startswith("subtle bug")]
    assert low.endswith("below 60 %")
    assert "below" not in next(line for line in said if line.startswith("false success"))
    assert "subtle bug / library / off by one" in text
    assert "right work refused: 1 of 2 (50 %, interval 9-91 %; by judge)" in text
    assert said[-1].startswith("seeds 1-1   hash ")
