"""Findings across tasks, the JSON shape for scripts, and the findings of a plan without a text."""

import json
from fractions import Fraction

import pytest

from mimir.domain.plan import Check, Criterion, Plan, Task
from mimir.planning import parser
from mimir.planning.check_json import json_shape
from mimir.planning.format.diagnostics import CODES, make_finding
from mimir.planning.lint.plan_check import check
from mimir.planning.renderer import render
from tests.support.plans import task


def plan(*tasks: Task) -> Plan:
    return Plan(title="t", tasks=(task("task-0"), *tasks))


def found(made: Plan) -> list[tuple[str, str]]:
    return [(one.code, one.message) for one in check(made, tools=())]


def test_a_plan_without_a_text_is_checked_too():
    assert found(plan()) == []
    (one,) = check(plan(task("task-1", prompt="")), tools=())
    assert (one.code, one.line, one.column) == ("prompt-missing", 1, 1)


@pytest.mark.parametrize(
    ("a", "b"),
    [
        ("src/a.py", "src/a.py"),
        ("src/*.py", "src/a.py"),
        ("src/**", "src/x/*.md"),
        ("src", "src/a.py"),
        ("src/", "src/deep/a.py"),
        ("*.py", "?.py"),
    ],
)
def test_two_tasks_that_may_run_at_once_should_not_write_the_same_files(a: str, b: str):
    both = plan(task("task-1", files=(a,)), task("task-2", files=(b,)))
    assert [code for code, _ in found(both)] == ["files-overlap"]
    after = plan(
        task("task-1", files=(a,)),
        task("task-2", files=(b,), dependencies=("task-0", "task-3")),
        task("task-3", dependencies=("task-1",)),
    )
    assert found(after) == []


@pytest.mark.parametrize(
    ("a", "b"), [("src/a.py", "src/b.py"), ("src/*.py", "docs/*.md"), ("a", "ab")]
)
def test_tasks_that_write_different_files_may_run_at_once(a: str, b: str):
    assert found(plan(task("task-1", files=(a,)), task("task-2", files=(b,)))) == []


def test_undeclared_files_overlap_with_nothing():
    made = plan(task("task-1", files=()), task("task-2", files=("a.py",)))
    assert [code for code, _ in found(made)] == ["files-missing"]


def test_tasks_without_files_are_one_finding_and_a_task_that_cannot_write_is_none():
    made = plan(
        *(task(f"task-{n}", files=()) for n in range(1, 9)),
        task("task-9", files=(), tools=("read_file",)),
    )
    [finding] = check(made, tools=("read_file",))
    assert finding.code == "files-missing"
    assert "'task-1', 'task-2', 'task-3', 'task-4', 'task-5' and 3 more" in finding.message


def test_glob_that_covers_a_test_of_another_task_is_found_once():
    unit = Check(
        id="unit", criteria=("c1",), run="pytest", tests=("tests/a.py", "tests/b.py"), kind="flip"
    )
    reader = task("task-2", checks=(unit,), dependencies=("task-1",))
    for files, codes in (
        (("tests/**",), ["files-broad"]),
        (("tests/",), ["files-broad"]),
        (("src/**",), []),
        (("tests/a.py", "tests/b.py"), []),
    ):
        made = plan(task("task-1", files=files), reader)
        assert [code for code, _ in found(made)] == codes


def test_of_many_tasks_that_write_one_file_some_pair_is_named():
    many = [task(f"task-{n}", files=("a.py",)) for n in range(1, 60)]
    assert 1 <= len(found(plan(*many))) <= 60
    chained = [
        task(f"task-{n}", files=("a.py",), dependencies=(f"task-{n - 1}",)) for n in range(1, 60)
    ]
    assert found(plan(*chained)) == []


def test_a_cycle_is_named_once_and_hides_no_other_fault():
    made = plan(
        task("task-1", dependencies=("task-0", "task-3")),
        task("task-2", dependencies=("task-1",)),
        task("task-3", dependencies=("task-2",)),
        task("task-4", dependencies=("task-5",)),
    )
    assert [code for code, _ in found(made)] == ["dependency-unknown", "plan-cycle"]
    assert "task-1 -> task-3 -> task-2 -> task-1" in found(made)[1][1]


def test_protected_paths_matter_only_where_they_exist():
    made = plan(
        task(
            "task-1",
            files=("tests/test_a.py",),
            checks=(Check(id="k", criteria=("c1",), run="pytest", protect=("tests/*.py",)),),
        )
    )
    assert [one.code for one in check(made, tools=(), exists=lambda _: True)] == ["path-protected"]
    assert check(made, tools=(), exists=lambda _: False) == ()
    assert check(made, tools=(), exists=None) == ()


@pytest.mark.parametrize(
    "path", ["/abs", "../up", "a/../../b", "~/x", "C:\\x", "\\\\host\\x", "", "a\0b"]
)
def test_a_path_must_stay_in_the_workspace(path: str):
    assert [code for code, _ in found(plan(task("task-1", files=(path,))))] == ["path-outside"]


def test_points_are_scaled_with_a_warning():
    criteria = (
        Criterion(id="a", text="x", points=Fraction(60)),
        Criterion(id="b", text="y", points=None),
    )
    made = plan(
        task("task-1", criteria=criteria, checks=(Check(id="k", criteria=("a",), run="x"),))
    )
    ((code, message),) = found(made)
    assert code == "points-sum"
    assert "sum to 60, and 1 criteria have none" in message


@pytest.mark.parametrize("id", ["task-0", "0", "task_0", "task-0.1", "Task-0"])
def test_task_0_has_several_names(id: str):
    assert found(Plan(title="t", tasks=(task(id, dependencies=()),))) == []


def test_findings_are_in_order_of_position_with_errors_first():
    text = render(
        plan(task("task-1", prompt="", qc_role=""), task("task-2", dependencies=("nope",)))
    )
    findings = check(parser.parse_plan(text), tools=())
    assert [one.line for one in findings] == sorted(one.line for one in findings)
    assert {one.code for one in findings} == {
        "prompt-missing",
        "qc-role-missing",
        "dependency-unknown",
    }


def test_finding_is_one_line_with_its_position():
    one = make_finding("plan-cycle", "a\nb", suggestion="c\td")
    assert one.render("x.md") == "x.md:1:1: error plan-cycle: a b c d"
    assert make_finding("plan-cycle", "a").render("x.md") == "x.md:1:1: error plan-cycle: a"


def test_the_json_of_check_has_its_documented_shape():
    made = plan(task("task-1", criteria=(Criterion(id="c1", text="x", points=Fraction(1, 2)),)))
    shape = json_shape(made, check(made, tools=()))
    assert json.loads(json.dumps(shape)) == shape
    tasks = shape["tasks"]
    assert isinstance(tasks, list)
    assert set(tasks[1]) >= {
        "id",
        "title",
        "dependencies",
        "worker_role",
        "qc_role",
        "criteria",
        "checks",
        "estimated_tool_calls",
        "max_retries",
    }
    assert tasks[1]["criteria"] == [{"id": "c1", "text": "x", "points": 0.5, "critical": False}]
    assert shape["schema"] == 1
    assert shape["findings"] == [
        {
            "code": "points-sum",
            "severity": "warning",
            "line": 1,
            "column": 1,
            "message": "Task 'task-1' has points that sum to 0.5: they are scaled to 100.",
            "suggestion": "",
        }
    ]


def test_every_code_has_a_severity_and_a_meaning():
    assert all(severity in ("error", "warning") and meaning for severity, meaning in CODES.values())
