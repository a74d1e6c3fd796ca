import pytest

from mimir.planning import parser
from mimir.planning.lint.plan_check import check
from mimir.planning.renderer import render
from mimir_bench.multi import benchmark, multi_case
from mimir_bench.multi.benchmark import CASES, LESS
from mimir_bench.multi.multi_run import TokenCounts

TOOLS = ("read_file", "write_file", "list_files")


@pytest.mark.parametrize("one", CASES["usual"], ids=str)
def test_a_case_is_a_plan_without_errors_that_its_own_reader_reads(one: multi_case.MultiCase):
    plan = multi_case.plan(one)
    read = parser.parse_plan(render(plan))

    assert (len(plan.tasks), len(multi_case.project(one))) == (one.tasks, one.files)
    assert read.plan.tasks == plan.tasks
    assert [f for f in check(plan, tools=TOOLS) if f.severity == "error"] == []


def test_both_sides_have_the_same_answers():
    one = CASES["smoke"][0]
    fleet = [
        turn
        for part in multi_case.fleet(one, "PLAN")
        if part["role"] == "worker"
        for turn in part["turns"]
    ]
    alone = [turn for part in multi_case.single_agent_script(one, "PLAN") for turn in part["turns"]]

    def calls(turns):
        return [
            call for turn in turns for call in turn.get("calls", ()) if call["tool"] == "write_file"
        ]

    assert calls(fleet) == calls(alone)
    assert {t["text"] for t in fleet if "text" in t} | {"PLAN"} == {
        t["text"] for t in alone if "text" in t
    }


def test_result_states_the_measured_hypothesis():
    def side(tokens: int) -> TokenCounts:
        return TokenCounts(
            calls=1,
            tokens=tokens,
            largest=tokens,
            planner_largest=0,
            agents=1,
            seconds=2.0,
            deduplication=0.5,
        )

    one = CASES["smoke"][0]
    rows = [
        benchmark._row(one, "one agent", side(1000)),
        benchmark._less(one, side(1000), side(1200)),
    ]
    said = "\n".join(benchmark.lines(benchmark._result(rows)))

    assert rows[1]["who"] == LESS
    assert "-20.0 % in all" in said
