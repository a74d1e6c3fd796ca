"""Results of single tests: when they are green, how they are stored, sealed and shown."""

import pytest

from mimir.domain.evidence import CheckRun
from mimir.domain.test_results import (
    TestResults,
    TestState,
    describe_tests,
    file_of,
    sealed_results,
    sort_results,
)
from mimir.store import codec


def _run(results: TestResults | None) -> CheckRun:
    return CheckRun(
        check="K1", argv=("pytest",), phase="after", tree="t", exit_code=0, results=results
    )


@pytest.mark.parametrize(
    ("states", "green"),
    [
        ({"a::x": "passed"}, True),
        ({"a::x": "passed", "a::y": "skipped", "a::z": "xfailed"}, True),
        ({"a::x": "passed", "a::y": "failed"}, False),
        ({"a::x": "passed", "a::y": "errored"}, False),
        ({"a::x": "skipped"}, False),
        ({}, False),
    ],
)
def test_exit_code_0_is_green_only_if_a_test_passed_and_none_failed(
    states: dict[str, TestState], green: bool
):
    assert _run(sort_results("pytest", states)).green is green


def test_an_incomplete_report_is_never_green():
    assert not _run(sort_results("pytest", {"a::x": "passed"}, "It ended early.")).green


def test_with_a_reason_to_fall_back_the_exit_code_decides():
    assert _run(TestResults(runner="pytest", fallback="The command ignores PYTHONPATH.")).green


def test_results_survive_the_store_and_old_runs_have_none():
    run = _run(sort_results("go", {"p::B": "failed", "p::A": "passed"}))
    stored = codec.encode(run)
    assert codec.decode(CheckRun, stored) == run
    assert isinstance(stored, dict)
    del stored["results"]
    assert codec.decode(CheckRun, stored).results is None


def test_the_sealed_form_is_bounded_and_covers_each_state():
    states: dict[str, TestState] = {f"a::{n:03}": "failed" for n in range(100)}
    sealed = sealed_results(sort_results("pytest", states))
    assert sealed["failed"] == 100
    assert sealed["red"] == [f"a::{n:03}" for n in range(20)]
    other = sealed_results(sort_results("pytest", {**states, "a::050": "errored"}))
    assert sealed["hash"] != other["hash"]


def test_tests_are_described_in_short():
    assert describe_tests(12, 12) == "12 of 12 tests"
    assert describe_tests(1, 1, control="red") == "1 of 1 test, control red"
    assert describe_tests(2, 3, skipped=1) == "2 of 3 tests, 1 skipped"
    assert describe_tests(0, 0) == ""
    assert file_of("tests/a.py::T::x") == "tests/a.py"
    assert file_of("main") == ""
