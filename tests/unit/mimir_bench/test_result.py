import json
from dataclasses import replace

import pytest

from mimir.errors import UsageError
from mimir_bench.result import BenchResult, Older, differences, document, older
from mimir_bench.text_table import grid, share

ROWS = (
    {"operator": "one", "wrong": 10, "share": 0.9, "caught": {"check": 9}},
    {"operator": "two", "wrong": 10, "share": 0.5, "caught": {}},
)
RESULT = BenchResult(name="faults", seeds="1-2", rows=ROWS, tolerances={"share": 0.1})


def read(*results: BenchResult) -> Older:
    return older(json.dumps(document(results)))


def changed(**figures: object) -> BenchResult:
    return replace(RESULT, rows=({**ROWS[0], **figures}, ROWS[1]))  # type: ignore[dict-item]


def test_the_hash_is_of_the_figures_alone():
    assert replace(RESULT, aside={"seconds": 7}).hash == RESULT.hash
    assert replace(RESULT, seeds="1-3").hash != RESULT.hash
    assert changed(wrong=11).hash != RESULT.hash
    assert len(RESULT.hash) == 64


def test_nothing_differs_from_itself():
    assert differences(read(RESULT), [RESULT]) == []


def test_a_figure_may_differ_as_far_as_is_stated_and_no_further():
    assert differences(read(RESULT), [changed(share=0.95)]) == []
    assert differences(read(RESULT), [changed(share=0.7)]) == [
        "faults: one: share: 0.9 before, 0.7 now"
    ]


def test_a_count_must_be_equal():
    found = differences(read(RESULT), [changed(wrong=11, caught={"quote": 9})])
    assert found == [
        "faults: one: wrong: 10 before, 11 now",
        "faults: one: caught: {'check': 9} before, {'quote': 9} now",
    ]


def test_rows_and_benchmarks_that_are_not_on_both_sides_are_named():
    fewer, other = replace(RESULT, rows=ROWS[:1]), replace(RESULT, name="scale")
    assert differences(read(RESULT), [fewer]) == ["faults: two: only in the older file"]
    assert differences(read(fewer), [RESULT]) == ["faults: two: not in the older file"]
    assert differences(read(RESULT), [other]) == ["scale: it is not in the older file"]


ROW = '{"schema": 1, "benchmarks": [{"name": "faults", "rows": [%s]}]}'


@pytest.mark.parametrize(
    "old",
    [
        "", "[]", "{}", '{"schema": 2, "benchmarks": []}', "nonsense", "[" * 100_000,
        '{"schema": 1, "benchmarks": 7}', '{"schema": 1, "benchmarks": [7]}',
        '{"schema": 1, "benchmarks": [{"name": "faults", "rows": {}}]}',
        ROW % "7", ROW % '{"share": NaN}', ROW % '{"share": 1e999}', ROW % '{"share": [1]}',
        ROW % '{"caught": {"check": "9"}}',
    ],
)  # fmt: skip
def test_old_result_of_another_kind_is_refused_with_a_next_step(old: str):
    with pytest.raises(UsageError, match="cannot be compared") as refused:
        older(old)
    assert refused.value.next_step == "Write one with: mimir bench --json > OLD.json"


def test_a_table_is_laid_out_and_empty_columns_are_left_out():
    assert grid(["name", "n", "none"], [["a", 1, ""], ["long", 22, ""]]) == [
        "name   n",
        "a      1",
        "long  22",
    ]


@pytest.mark.parametrize(
    ("part", "whole", "said"),
    [
        (0, 0, "-"),
        (0, 3, "0 %"),
        (3, 3, "100 %"),
        (1, 3, "33.3 %"),
        (9999, 10000, "99.9 %"),
        (1, 9999, "0.1 %"),
    ],
)
def test_share_below_the_whole_is_never_100_percent(part: int, whole: int, said: str):
    assert share(part, whole) == said
