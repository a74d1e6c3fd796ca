"""Checks that cannot decide are found before the first call of a worker."""

from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import pytest

from mimir.domain.plan import Plan
from mimir.planning.renderer import render
from tests.support.cli_runner import Desk
from tests.support.script_server import PlayServer
from tests.support.whole_run import REST, calls, check, holds, plan, step, worker, writes, wrote

GOOD = step("a")
CHECKS = (
    check("no-such-program", "a.txt", id="missing"),
    holds("README.md", "Hello", id="green"),
    check("sh", "-c", "sleep 60; test -f a.txt", id="slow", timeout_seconds=0.3),
    holds("a.txt", "^a$", id="right"),
)
BROKEN = plan(replace(GOOD, checks=CHECKS), title="Three broken checks")
CODES = ("check-program-missing", "check-already-green", "check-timed-out")


def text_of(proposed: Plan) -> dict[str, object]:
    return {"text": render(proposed)}


@pytest.fixture
def server() -> Iterator[PlayServer]:
    pm = {"role": "pm", "turns": [text_of(BROKEN), text_of(plan(GOOD))]}
    with PlayServer({"parts": [pm, wrote("a"), *REST]}) as server:
        yield server


@pytest.fixture
def desk(desk: Desk, server: PlayServer) -> Desk:
    desk.ask(server, MODEL="play").write("README.md", "Hello\n")
    return desk


def test_broken_check_that_is_not_required_stops_no_run(desk: Desk):
    optional = check("no-such-program", "a.txt", id="missing", required=False)
    proposed = plan(replace(GOOD, checks=(optional, holds("a.txt", "^a$", id="right"))))
    desk.write("plan.md", render(proposed))

    said = desk.type("execute", "plan.md", "--yes", "--apply", "never")

    assert said.code == 0, said.out
    assert ": warning check-program-missing: Check 'missing' of a names a program" in said.out


@pytest.mark.parametrize(
    ("files", "source", "said"),
    [
        (("b.txt",), "src/app/__init__.py", "cannot import 'app', which the project has"),
        (("b.txt",), "", "needs 'app', which is not installed"),
        (("app.py",), "", ""),
        (("app.py", "setup.cfg"), "src/app/__init__.py", ""),
        ((), "", ""),
    ],
)
def test_suite_that_cannot_import_stops_before_the_first_call_of_a_worker(
    files: tuple[str, ...], source: str, said: str, desk: Desk
):
    desk.write("tests/test_app.py", "import unittest\n\nimport app\n")
    if source:
        desk.write(source, "")
    suite = check("python3", "-m", "unittest", "discover", "tests", id="suite")
    desk.write("plan.md", render(plan(replace(GOOD, files=files, checks=(suite,)))))

    listed = desk.type("check", "plan.md", "--run")

    assert ("error check-module-missing: " in listed.out) == bool(said), listed.out
    assert said in listed.out


def test_pm_repairs_the_broken_checks_of_its_plan(desk: Desk, server: PlayServer):
    said = desk.type("chain", "Write a.txt")

    assert said.code == 0, said.out
    assert not any(code in said.out for code in CODES)
    assert len(server.of("pm")) == 2
    assert not server.of("worker")


def test_flip_whose_expected_results_a_task_is_to_change_may_be_green(desk: Desk):
    desk.write("tests/data/a.txt", "Hello\n")
    text = "import unittest\n\n\nclass Case(unittest.TestCase):\n    def test_all(self):\n"
    desk.write("tests/test_all.py", text + "        self.assertTrue(open('tests/data/a.txt'))\n")
    run = check("python3", "-m", "unittest", "tests/test_all.py", id="run", kind="flip")
    for files, code in (
        (("a.txt", "tests/data/a.txt"), "warning check-green-before"),
        (("a.txt", "src/**"), "error check-already-green"),
    ):
        desk.write("plan.md", render(plan(replace(GOOD, files=files, checks=(run,)))))

        assert code in (said := desk.type("check", "plan.md", "--run").out), said

    # A checker of types reads tests that no command names.
    types = check("python3", "-m", "tabnanny", ".", id="run", kind="flip")
    later = replace(GOOD, files=("a.txt",), checks=(types,), dependencies=("first",))
    for files, code in (
        ("index.test-d.ts", "warning check-green-before"),
        ("b.txt", "error check-"),
    ):
        desk.write("plan.md", render(plan(step("first", files=(files,)), later)))

        assert code in (said := desk.type("check", "plan.md", "--run").out), said


def test_pm_learns_once_which_old_tests_are_red(desk: Desk):
    case = "import unittest\n\n\nclass Case(unittest.TestCase):\n    def test_{0}(self):\n        self.assertTrue({1})\n"
    for name, holds_now in (("new", True), ("old", False)):
        desk.write(f"tests/test_{name}.py", case.format(name, holds_now))
    suite = check("python3", "-m", "unittest", "discover", "tests", id="suite", kind="hold")
    # Task 0 cannot repair them.
    work = replace(GOOD, checks=(suite,), dependencies=("task-0",))
    kept = text_of(plan(replace(GOOD, id="task-0", checks=()), work))
    with PlayServer({"parts": [{"role": "pm", "turns": [kept, kept]}]}) as server:
        said = desk.ask(server, MODEL="play").type("chain", "Write a.txt")

        assert (said.code, len(server.of("pm"))) == (0, 2), said.out
    assert "fails before the work (exit 1) by tests/test_old.py" in said.out, said.out


def test_plan_on_disk_is_refused_before_the_first_call_of_a_worker(desk: Desk, server: PlayServer):
    desk.write("plan.md", text := render(BROKEN))
    lines = {
        id: 1 + text[: text.index(f"id: {id}")].count("\n") for id in ("missing", "green", "slow")
    }

    listed = desk.type("check", "plan.md", "--run")
    refused = desk.type("execute", "plan.md", "--yes")

    assert (listed.code, refused.code) == (65, 65)
    for code, line in zip(CODES, lines.values(), strict=True):
        assert f"plan.md:{line}:" in listed.out
        assert f"error {code}: Check" in listed.out
        assert f"\nplan.md:{line}:3: error {code}: Check" in refused.out
    assert "timeout_seconds" in refused.out
    assert not server.of("worker")

    # The user accepts the plan as it is: the work is not rejected, and the run has gaps.
    accepted = desk.type("resume", "--apply", "never")

    assert accepted.code == 1
    assert "completed_with_gaps: Check 'missing' of a is broken: " in accepted.out
    status = desk.status()
    assert [task["status"] for task in status["tasks"]] == ["completed"]
    assert [text.split(" of ")[0] for text in status["broken_checks"]] == [
        "Check 'missing'", "Check 'green'", "Check 'slow'",
    ]  # fmt: skip
    head = desk.type("status").out.splitlines()
    assert head[1].startswith("broken: Check 'missing' of a is broken: ")


def test_preflight_runs_a_runner_with_tests_inside_its_sources(desk: Desk, tmp_path: Path):
    # No file matches the pattern of the runner's tests, as in a crate with tests in its sources.
    bin = tmp_path / "project/bin"
    desk.write("bin/cargo", "#!/bin/sh\nexit 3\n")
    (bin / "cargo").chmod(0o755)
    red = check("env", "PATH=/workspace/bin:/usr/bin:/bin", "cargo", "test", id="red", kind="hold")
    desk.write("plan.md", render(plan(replace(GOOD, checks=(red,)))))

    assert "check-red-before" in desk.type("check", "plan.md", "--run").out


def test_new_files_of_checks_are_delivered_only_where_files_name_them(desk: Desk):
    command = "mkdir -p build/deep && cp README.md build/deep && cp README.md log.txt"
    builds = {"calls": [calls("run", command=command)]}
    open_task = worker("a", writes("a.txt", "a\n"), builds, writes("build.md", "b\n"), "Built.")
    named_task = worker("b", writes("b.txt", "b\n"), builds, "Built.")
    with PlayServer({"parts": [open_task, named_task, *REST]}) as server:
        desk.ask(server, MODEL="play")
        build = check("sh", "-c", f"{command} && grep -q '^a$' a.txt", id="build")
        tasks = replace(GOOD, checks=(build,)), step("b", "a", files=("b.txt", "log.txt"))
        desk.write("plan.md", render(plan(*tasks)))

        said = desk.type("execute", "plan.md", "--yes", "--record", "run.jsonl")

    assert said.code == 0, said.out
    there = {path.name for path in desk.project.iterdir()}
    assert there >= {"a.txt", "build.md", "b.txt", "log.txt"}
    assert "build" not in there
    report = next(desk.project.glob("chains/*/execution-report.md")).read_text()
    assert "Not in the deliverable: 2 new files" in report
    assert desk.type("replay", "run.jsonl").code == 0
