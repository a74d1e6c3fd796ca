"""Faults that users met, each by the name of its case: right work completes in the first attempt."""

import json

import pytest

from mimir.planning import parser
from mimir.planning.renderer import render
from tests.support import answer_forms as forms
from tests.support.answer_forms import Form, FormServer, Fragment, fragment, fragments
from tests.support.cli_runner import Desk
from tests.support.projects import git
from tests.support.script_server import PlayServer
from tests.support.whole_run import PASS, REST, calls, plan, qc, step, worker, writes, wrote

LOOKS = [{"calls": [calls("grep", pattern=f"word{n}")]} for n in range(8)]
WORK = worker("a", *LOOKS, writes("a.txt", "a\n"), "a.txt is written.")


@pytest.fixture
def desk(desk: Desk) -> Desk:
    desk.write("plan.md", render(plan(step("a", estimated_tool_calls=20))))
    return desk


def run(desk: Desk, *forms: Form, parts: object = (wrote("a"),), **settings: object) -> FormServer:
    """Execute the plan on a server with these forms; it completes in the first attempt."""
    with FormServer({"parts": [*parts, *REST]}, *forms) as server:  # type: ignore[misc]
        told = desk.ask(server, **settings).type("execute", "plan.md", "--yes")
    assert told.code == 0, told.out + told.err
    assert [(t["status"], t["attempts"]) for t in desk.status()["tasks"]] == [("completed", 1)]
    return server


def test_json_schema_with_tools(desk: Desk):
    asks = qc("a", {"calls": [calls("grep", pattern="w")], "repeat": "forever"}, closing=PASS)
    server = run(desk, forms.tools_or_format, parts=(wrote("a"), asks))
    formats = [seen.body for seen in server.of("qc") if "response_format" in seen.body]
    assert len([body for body in formats if body.get("tools")]) <= 1


def test_qc_1150_tokens(desk: Desk):
    limits = {"ROLES__QC__MAX_TOKENS": 9000, "ROLES__WORKER__MAX_TOKENS": 9000}
    server = run(desk, forms.reasoning_first, **limits)
    sent = [seen.body for seen in server.of("qc")]
    assert {body.get("max_tokens") or body["max_completion_tokens"] for body in sent} == {9000}


def test_reasoning_content_not_passed_back(desk: Desk):
    run(desk, forms.reasoning_wanted, parts=(WORK,))


@pytest.mark.parametrize("before", ['<think>Maybe {"verdict": "FAIL"}.</think>', "So {x}.</think>"])
def test_think_tags(before: str, desk: Desk):
    run(desk, forms.thinking(before))


def test_tool_call_as_text(desk: Desk):
    twice = worker("a", *[writes("a.txt", "a\n")] * 2, "a.txt is written.")
    server = run(desk, forms.calls_as_text, parts=(twice,))
    assert len(server.of("worker")) == 3, "the call is written, explained once, and made"


def test_stream_ends(desk: Desk):
    kinds = ("text/plain; charset=utf-8", "application/json", "application/octet-stream")
    typed = [forms.stream_as(kind) for kind in kinds]
    run(desk, forms.no_finish, forms.bom_body, forms.one_newline, *typed, parts=(WORK,))


def test_tool_call_deltas(desk: Desk):
    cut: list[Fragment] = [
        lambda i, j, c, p: fragment(p, None if j else c.name, id=c.id),
        lambda i, j, c, p: fragment(p, None if j else c.name, index=i, id=f"{c.id}-{j}"),
        lambda i, j, c, p: (
            fragment(p, None, index=j) if j else fragment(p, c.name, index=0, id=c.id)
        ),
        lambda i, j, c, p: fragment(p, None if j else c.name, index=str(i), id=c.id),
        lambda i, j, c, p: fragment(p if j else "{}" + p, None if j else c.name, index=i, id=c.id),
        lambda i, j, c, p: fragment(
            "" if j else c.arguments * 2, None if j else c.name, index=i, id=c.id
        ),
        lambda i, j, c, p: fragment(
            "" if j else json.dumps(c.arguments), None if j else c.name, index=i, id=c.id
        ),
    ]
    run(desk, *(fragments(one) for one in cut), parts=(WORK,))


def test_corporate_proxy(desk: Desk):
    with PlayServer({"parts": [wrote("a"), *REST]}) as server:
        desk.ask(server)
        desk.environ(
            HTTP_PROXY=server.url.removesuffix("/v1"),
            OPENAI_BASE_URL="http://model.internal.example/v1",
        )
        assert desk.type("execute", "plan.md", "--yes").code == 0


def test_branch_named_mimir(desk: Desk):
    committed(desk)
    git(desk.project, "branch", "mimir")
    run(desk, forms.plain)
    branches = git(desk.project, "branch", "--list", "mimir*").split()
    assert sorted(name.split("/")[0] for name in branches) == ["mimir", "mimir-runs"]


def test_filtered_files(desk: Desk):
    desk.write(".gitattributes", "*.txt filter=rot\n")
    committed(desk)
    for way in ("clean", "smudge"):
        git(desk.project, "config", f"filter.rot.{way}", "tr a-z n-za-m")
    with FormServer({"parts": [wrote("a"), *REST]}, forms.plain) as server:
        told = desk.ask(server).type("execute", "plan.md", "--yes")
    assert told.code == 1
    assert "Git stores 'a.txt' through a filter" in told.out
    assert not (desk.project / "a.txt").exists()


def committed(desk: Desk) -> None:
    git(desk.project, "init", "--quiet")
    git(desk.project, "add", "--all")
    git(desk.project, "commit", "--quiet", "--message", "First")


def test_plan_punctuation():
    wide = (
        "# Plan: limiter\n\n### Task 1.1：Token bucket\n**Task ID：** task-1.1\n"
        "**Agent Role Description：** Engineer\n**Prompt：**\n<prompt>\nWrite it.\n</prompt>\n"
        "**Dependencies：** None\n**Verification Criteria：**\n"
        "- [ ] （60 pts）c1： refills\n- [\u00a0] (40 pts) [critical] c2: thread safe\n"
    )
    (task,) = parser.parse_plan(wide).plan.tasks
    assert (task.id, task.title, task.prompt) == ("task-1.1", "Token bucket", "Write it.")
    assert [(one.points, one.critical) for one in task.criteria] == [(60, False), (40, True)]
    table = "# Plan\n\n### Task 1: A\n\n| Field | Value |\n|---|---|\n| **Prompt** | Write it. |\n"
    errors = [one for one in parser.parse_plan(table).findings if one.severity == "error"]
    assert [one.code for one in errors if one.line == 7] == ["field-outside"]
