"""`mimir check`: lines for editors, JSON for scripts, exit codes."""

import os
from pathlib import Path
from typing import Literal, cast

import pytest

from mimir.cli.output.findings import as_lines, summary
from mimir.domain.estimates import LearnedEstimate
from mimir.domain.finding import Finding
from mimir.domain.plan import Plan, Task
from mimir.errors import UnavailableError
from tests.support.fake_app import PLAN, FakeMimir, Mimir


@pytest.mark.parametrize("name", [[], ["limiter"], ["chains/limiter"]])
@pytest.mark.parametrize("command", ["check", "lint"])
def test_plan_without_errors_exits_with_0(command: str, name: list[str], mimir: Mimir):
    said = mimir(command, *name)
    assert said.code == 0, said
    assert said.out == "chains/limiter/chain-output.md can run: 2 tasks.\n"


def test_finding_has_position_code_and_suggestion(mimir: Mimir, project: Path):
    broken = PLAN.replace("**Dependencies:** task-0", "**Dependencies:** task-00")
    (project / "plan.md").write_text(broken, encoding="utf-8")
    said = mimir("check", "plan.md")
    line = broken.splitlines().index("**Dependencies:** task-00") + 1
    assert said.code == 65
    assert said.out.startswith(f"plan.md:{line}:")
    assert "error dependency-unknown" in said.out
    assert "task-0" in said.out.splitlines()[1]


def test_warnings_are_printed_and_exit_with_0(mimir: Mimir, project: Path):
    (project / "plan.md").write_text(PLAN.replace("**Estimated Tool Calls:** 8\n", ""))
    said = mimir("check", "plan.md")
    assert said.code == 0
    assert "warning estimate-missing" in said.out
    assert said.out.splitlines()[-1] == "plan.md can run: 2 tasks, 2 warnings."


def test_scripts_get_tasks_and_findings(mimir: Mimir):
    said = mimir("check", "--json")
    assert said.code == 0
    assert said.shape["schema"] == 1
    assert said.shape["findings"] == []
    _, task = cast("list[dict[str, object]]", said.shape["tasks"])
    assert task["id"] == "task-1"
    assert task["dependencies"] == ["task-0"]
    assert task["worker_role"] == "Engineer"
    assert task["qc_role"] == "Reviewer"
    assert task["estimated_tool_calls"] == 8
    assert task["max_retries"] == 2
    criteria = cast("list[dict[str, object]]", task["criteria"])
    assert [(c["id"], c["points"], c["critical"]) for c in criteria] == [
        ("c1", 60, True),
        ("c2", 40, False),
    ]
    (check,) = cast("list[dict[str, object]]", task["checks"])
    assert (check["id"], check["kind"]) == ("unit", "flip")


def test_scripts_get_the_same_shape_where_there_are_errors(mimir: Mimir, project: Path):
    (project / "plan.md").write_text(
        PLAN.replace("**Dependencies:** task-0", "**Dependencies:** x")
    )
    said = mimir("check", "plan.md", "--json")
    assert said.code == 65
    assert len(cast("list[object]", said.shape["tasks"])) == 2
    found = cast("list[dict[str, object]]", said.shape["findings"])
    errors = [one for one in found if one["severity"] == "error"]
    assert [one["code"] for one in errors] == ["dependency-unknown"]
    assert set(errors[0]) == {"code", "severity", "line", "column", "message", "suggestion"}


def test_plan_that_is_no_text_exits_with_65_and_names_the_byte(mimir: Mimir, project: Path):
    (project / "plan.md").write_bytes(b"# Plan\nna\xefve\n")
    said = mimir("check", "plan.md")
    assert said.code == 65
    assert said.err.startswith("error: plan.md:2:3: error plan-not-utf8")
    assert mimir("execute", "plan.md", "--yes").code == 65
    script = mimir("check", "plan.md", "--json")
    assert script.code == 65
    assert script.shape["tasks"] == []
    (found,) = cast("list[dict[str, object]]", script.shape["findings"])
    assert (found["code"], found["line"], found["column"]) == ("plan-not-utf8", 2, 3)


@pytest.mark.parametrize("name", [b"my plan.md", b"new\nline.md", b"caf\xe9.md", b"-.md"])
def test_unusual_names_are_read_and_shown_on_one_line(name: bytes, mimir: Mimir, project: Path):
    path = project / os.fsdecode(name)
    path.write_text(PLAN, encoding="utf-8")
    said = mimir("check", "--", os.fsdecode(name))
    assert said.code == 0
    assert len(said.out.splitlines()) == 1


def test_a_plan_in_the_place_of_a_terminal_does_not_reach_it(mimir: Mimir, project: Path):
    (project / "plan.md").write_text(
        PLAN.replace("**Dependencies:** task-0", "**Dependencies:** \x1b[2Jx")
    )
    said = mimir("check", "plan.md")
    assert said.code == 65
    assert "\x1b" not in said.out


def test_findings_are_in_the_order_of_the_file():
    def at(line: int, column: int) -> Finding:
        return Finding(
            code="plan-cycle",
            severity="error",
            message="m",
            suggestion="",
            line=line,
            column=column,
        )

    lines = as_lines([at(9, 1), at(2, 8), at(2, 3)], "plan.md")
    assert [line.partition(" ")[0] for line in lines] == [
        "plan.md:2:3:",
        "plan.md:2:8:",
        "plan.md:9:1:",
    ]


def test_the_summary_counts():
    task = Task(id="a", title="", prompt="", worker_role="")
    assert summary([], len(Plan(title="", tasks=(task,)).tasks), "p") == "p can run: 1 task."


def test_check_shows_learned_estimates_next_to_those_of_the_plan(
    mimir: Mimir, project: Path, fake: FakeMimir
):
    (project / ".mimir" / "mimir.db").touch()
    fake.known = {"Engineer": LearnedEstimate(minutes=4.25, tool_calls=6.5, tasks=14)}

    said = mimir("check", "limiter")
    assert said.code == 0
    line = "task-1: estimated no minutes, 8 calls; learned 4.2 min, 6.5 calls (median of 14)"
    assert said.out.splitlines()[1] == line
    assert [create for _, _, create in fake.opened] == [False]

    shape = mimir("check", "limiter", "--json").shape
    first = {
        "task": "task-0",
        "estimated_minutes": None,
        "minutes": 4.25,
        "estimated_tool_calls": 8,
    }
    assert cast("list[object]", shape["learned"])[0] == {
        **first,
        "tool_calls": 6.5,
        "from_tasks": 14,
    }


@pytest.mark.parametrize("trouble", [UnavailableError("The store is lost."), OSError("No.")])
def test_a_store_that_does_not_answer_keeps_no_plan_from_being_checked(
    mimir: Mimir, project: Path, fake: FakeMimir, trouble: Exception
):
    (project / ".mimir" / "mimir.db").touch()
    fake.raises = {"open": trouble}
    said = mimir("check", "limiter")
    assert (said.code, said.err) == (0, "")
    assert mimir("check", "limiter", "--json").shape["learned"] == []


def test_check_in_an_unused_project_creates_nothing(mimir: Mimir, project: Path, fake: FakeMimir):
    (project / ".mimir").rmdir()
    assert mimir("check", "limiter").code == 0
    assert not (project / ".mimir").exists()
    assert fake.opened == []


def test_errors_precede_warnings():
    def finding(line: int, severity: Literal["error", "warning"]) -> Finding:
        return Finding(
            code="x",
            severity=severity,
            message="m",
            line=line,
            column=1,
            suggestion="",
        )

    lines = as_lines([finding(1, "warning"), finding(9, "error"), finding(3, "error")], "plan.md")
    assert [line.split(":")[1] for line in lines] == ["3", "9", "1"]
