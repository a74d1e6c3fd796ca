"""Comparison of single tests: a green run proves nothing if tests of the earlier run have not passed."""

from dataclasses import replace

import pytest

from mimir.domain.evidence import CheckRun
from mimir.domain.test_results import TestState, sort_results
from mimir.qc.results.comparison import complete_results, confirm_results

States = dict[str, TestState]
RUN = CheckRun(check="K1", argv=("pytest",), phase="after", tree="t", exit_code=0)
A, B = "tests/a.py::x", "tests/b.py::y"


@pytest.mark.parametrize(
    ("then", "now", "files", "problem"),
    [
        ({A: "failed"}, {A: "passed"}, (), ""),
        ({A: "errored"}, {A: "passed", B: "skipped"}, (), ""),
        ({A: "skipped", B: "failed"}, {A: "skipped", B: "passed"}, (), ""),
        ({"tests/a.py": "errored"}, {A: "passed"}, (), ""),
        ({"test_a": "failed"}, {A: "passed"}, (), ""),
        ({A: "failed", B: "failed"}, {A: "passed", B: "skipped"}, (), f"{B} (skipped)"),
        ({A: "failed", B: "passed"}, {A: "passed", B: "xfailed"}, (), f"{B} (xfailed)"),
        ({A: "failed", B: "passed"}, {A: "passed"}, (), f"{B} (missing)"),
        ({A: "failed", B: "passed"}, {A: "passed"}, ("tests/b.py",), ""),
        ({A: "failed", B: "passed"}, {B: "passed"}, ("tests/a.py",), "No test that failed"),
        ({"t.py::x[a]": "passed"}, {"t.py::x[b]": "passed"}, (), ""),
        (
            {"t.py::x[a]": "passed", "t.py::x[b]": "failed"},
            {"t.py::x[b]": "passed"},
            (),
            "x[a] (missing)",
        ),
        ({"m/sub::TestOld": "passed"}, {"m/sub::TestNew": "passed"}, ("sub/a_test.go",), ""),
    ],
)
def test_tests_that_ran_before_must_pass(
    then: States, now: States, files: tuple[str, ...], problem: str
):
    run = replace(RUN, results=sort_results("pytest", now))
    confirmed = confirm_results(run, sort_results("pytest", then), files, is_flip=True)
    assert confirmed.results is not None
    assert problem in confirmed.results.problem
    assert confirmed.green is (problem == "")


def test_a_run_without_a_report_does_not_confirm_reported_tests():
    then = sort_results("pytest", {A: "passed"})
    assert not confirm_results(RUN, then, ()).green
    assert confirm_results(RUN, None, ()).green


@pytest.mark.parametrize(
    ("files", "passed", "has_flipped"),
    [(("tests/a.py",), [A], True), (("tests/a.py",), [B], False), ((), [A], False)],
)
def test_a_changed_file_that_could_not_be_loaded_flips_if_all_its_tests_pass_again(
    files: tuple[str, ...], passed: list[str], has_flipped: bool
):
    base = sort_results("pytest", {A: "passed", B: "passed"})
    then = complete_results(sort_results("pytest", {"tests/a.py": "errored"}), base, files, passed)
    now: States = dict.fromkeys((*passed, B), "passed")
    run = replace(RUN, results=sort_results("pytest", now))
    confirmed = confirm_results(run, then, (*files, A), is_flip=True)
    assert confirmed.green is has_flipped
