"""Reports of test runners: real samples, bounds, and files that are no report."""

import os
from pathlib import Path

import pytest

from mimir.domain.test_results import TestResults
from mimir.qc.results import report_files
from mimir.qc.results.request import ReportRequest, request_report

GO = """{"Action":"start","Package":"m"}
{"Action":"run","Package":"m","Test":"TestA"}
{"Action":"pass","Package":"m","Test":"TestA","Elapsed":0}
{"Action":"run","Package":"m","Test":"TestB/sub_one"}
{"Action":"fail","Package":"m","Test":"TestB/sub_one","Elapsed":0}
{"Action":"run","Package":"m","Test":"TestS"}
{"Action":"skip","Package":"m","Test":"TestS","Elapsed":0}
{"Action":"run","Package":"m","Test":"TestEnded"}
FAIL m/sub [build failed]
{"Action":"fail","Package":"m/sub","Elapsed":0}
"""
RUST = """     Running unittests src/lib.rs (target/debug/deps/c-1)
running 4 tests
test tests::a ... ok
test tests::b ... FAILED
test tests::c ... ignored
test tests::d - should panic ... \x1b[32mok\x1b[0m
test result: FAILED. 2 passed; 1 failed; 1 ignored; 0 measured
     Running tests/it.rs (target/debug/deps/it-1)
running 1 test
test integ ... ok
test result: ok. 1 passed; 0 failed; 0 ignored; 0 measured
"""
JEST = """{"testResults": [{"name": "/workspace/a.test.js", "status": "failed", "assertionResults": [
{"ancestorTitles": ["sum"], "title": "adds", "status": "passed"},
{"ancestorTitles": [], "title": "fails", "status": "failed"},
{"ancestorTitles": [], "title": "later", "status": "todo"}]},
{"name": "/workspace/b.test.js", "status": "failed", "assertionResults": []}]}"""
JUNIT = """<testsuites><testsuite><testcase classname="CalcTest" name="adds"/>
<testcase classname="CalcTest" name="fails"><failure>x</failure></testcase>
<testcase classname="CalcTest" name="raises"><error/></testcase>
<testcase classname="CalcTest" name="later"><skipped/></testcase></testsuite></testsuites>"""
LINES = """["runner", "pytest"]
["planned", "t.py::a"]
["planned", "t.py::never"]
["passed", "t.py::a"]
["errored", "t.py::a"]
["xfailed", "t.py::x"]
["end", "0"]
"""


def read(tmp_path: Path, name: str, text: str | bytes) -> TestResults:
    (tmp_path / name).write_bytes(text if isinstance(text, bytes) else text.encode())
    results = report_files.read_results(tmp_path, expected("pytest"), None, str)
    assert results is not None
    return results


def expected(*runners: str) -> ReportRequest:
    return ReportRequest(argv=(), environment={}, first={}, expected=runners)


@pytest.mark.parametrize(
    ("name", "text", "states"),
    [
        (
            "go-1.gojson",
            GO,
            {
                "m::TestA": "passed",
                "m::TestB/sub_one": "failed",
                "m::TestS": "skipped",
                "m::TestEnded": "errored",
                "m/sub": "errored",
            },
        ),
        (
            # Tests of a test framework run failing ones; the package passes.
            "go-2.gojson",
            "".join(
                f'{{"Action":"{action}","Package":"m","Test":"{test}"}}\n'
                for action, test in (
                    ("run", "TestA"),
                    ("fail", "TestInner"),
                    ("pass", "TestA"),
                    ("pass", ""),
                )
            ),
            {"m::TestA": "passed"},
        ),
        (
            "cargo-1.libtest",
            RUST,
            {
                "src/lib.rs::tests::a": "passed",
                "src/lib.rs::tests::b": "failed",
                "src/lib.rs::tests::c": "skipped",
                "src/lib.rs::tests::d": "passed",
                "tests/it.rs::integ": "passed",
            },
        ),
        (
            # Standard error came before the output of the first program.
            "cargo-3.libtest",
            "Running tests/a.rs (a-1)\nRunning tests/b.rs (b-1)\n   Doc-tests c\nrunning 1 test\ntest same ... ok\n"
            "running 1 test\ntest same ... FAILED\nrunning 0 tests\nrunning 1 test\ntest src/a.rs - f (line 3) ... ok\n",
            {
                "tests/a.rs::same": "passed",
                "tests/b.rs::same": "failed",
                "c::src/a.rs - f": "passed",
            },
        ),
        (
            "cargo-2.libtest",
            "   Doc-tests pkg\n\nrunning 3 tests\ntest src/a.rs - f (line 30) ... FAILED\n"
            "test src/a.rs - f (line 4) - compile ... ok\ntest src/a.rs - f (line 9) ... ok\n",
            {
                "pkg::src/a.rs - f - compile": "passed",
                "pkg::src/a.rs - f": "passed",
                "pkg::src/a.rs - f #2": "failed",
            },
        ),
        (
            "jest-1.json",
            JEST,
            {
                "a.test.js::sum > adds": "passed",
                "a.test.js::fails": "failed",
                "a.test.js::later": "skipped",
                "b.test.js": "errored",
            },
        ),
        (
            "TEST-Calc.xml",
            JUNIT,
            {
                "CalcTest::adds": "passed",
                "CalcTest::fails": "failed",
                "CalcTest::raises": "errored",
                "CalcTest::later": "skipped",
            },
        ),
        (
            "t.xml",
            '<testsuites name="AllTests"><testsuite name="C"><testcase name="Adds" file="t.cc" status="run" classname="C"/>'
            '<testcase name="Left" file="t.cc" status="notrun" classname="C"/></testsuite></testsuites>',
            {"t.cc::Adds": "passed"},
        ),
        ("a.jsonl", LINES, {"t.py::a": "errored", "t.py::never": "errored", "t.py::x": "xfailed"}),
    ],
)
def test_each_form_yields_the_state_of_each_test(
    tmp_path: Path, name: str, text: str, states: dict[str, str]
):
    results = read(tmp_path, name, text)
    assert (results.states, results.problem) == (states, "")


@pytest.mark.parametrize(
    ("name", "text", "problem"),
    [
        ("a.jsonl", '["runner", "pytest"]\n["passed", "t::a"]\n', "ended before all tests"),
        ("a.jsonl", "\x00\xff[[[", "malformed"),
        ("a.jsonl", "[" * 100_000, "malformed"),
        ("a.gojson", '{"Action"', "malformed"),
        ("a.libtest", "running 2 tests\ntest a ... ok\n", "1 of 2 tests"),
        ("a.json", "[]", "malformed"),
        ("a.xml", "<testsuite><testcase>", "malformed"),
        ("a.xml", '<!DOCTYPE x [<!ENTITY a "b">]><x>&a;</x>', "document type"),
        ("a.xml", "<a>" * 100, "malformed"),
    ],
)
def test_a_damaged_report_is_no_result(tmp_path: Path, name: str, text: str, problem: str):
    results = read(tmp_path, name, text)
    assert problem in results.problem
    assert not results.green


def test_a_report_with_too_many_tests_or_bytes_is_no_result(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
):
    monkeypatch.setattr("mimir.qc.results.report_parsers.MAX_TESTS", 2)
    lines = "".join(f'["passed", "t::{n}"]\n' for n in range(3))
    assert "more than 2 tests" in read(tmp_path, "a.jsonl", lines).problem
    monkeypatch.setattr(report_files, "MAX_BYTES", 10)
    assert "larger than" in read(tmp_path, "a.jsonl", lines).problem


def test_a_pipe_or_a_link_in_place_of_a_report_is_no_result(tmp_path: Path):
    os.mkfifo(tmp_path / "a.jsonl")
    (tmp_path / "b.jsonl").symlink_to("/etc/passwd")
    results = report_files.read_results(tmp_path, expected(), None, str)
    assert results is not None
    assert "no regular file" in results.problem


def test_a_report_is_required_of_a_named_runner_alone(tmp_path: Path):
    missing = report_files.read_results(tmp_path, expected("pytest"), None, str)
    assert missing is not None
    assert "it is missing" in missing.problem
    assert report_files.read_results(tmp_path, expected(), None, str) is None


@pytest.mark.parametrize(
    ("run", "named"),
    [
        (("python", "-m", "pytest", "-q"), ("pytest",)),
        (("sh", "-c", "cd x && uv run pytest > log; cat log"), ("pytest",)),
        (("python", "-m", "unittest", "discover"), ("unittest",)),
        (("node", "--test", "test/"), ("node --test",)),
        (("go", "test", "./..."), ("go",)),
        (("go", "build", "./..."), ()),
        (("mvn", "-q", "test"), ("mvn",)),
        (("make", "test"), ()),
        (("pytest", "--version"), ()),
        (("python", "-m", "pytest", "--collect-only", "tests"), ()),
        (("cargo", "test", "--no-run"), ()),
        (("python", "-I", "-m", "pytest"), ()),
    ],
)
def test_runners_are_recognised_in_commands(run: tuple[str, ...], named: tuple[str, ...]):
    request = request_report(run, "/usr/bin/python3")
    assert request.expected == named
    assert bool(request.fallback) == ("-I" in run)
    is_listing = not {"--collect-only", "--no-run"}.isdisjoint(run)
    assert bool(request.environment["MIMIR_RESULTS"]) != is_listing


def test_a_command_that_sets_its_python_path_keeps_the_reporters():
    request = request_report(("sh", "-c", "PYTHONPATH=src pytest"), "/usr/bin/python3")
    assert request.argv[-1] == "PYTHONPATH=/mimir/reporters:src pytest"
