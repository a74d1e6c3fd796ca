"""Meaning of the variants of a control for a check."""

from dataclasses import replace

import pytest

from mimir.domain.evidence import CheckRun
from mimir.domain.test_results import TestResults
from mimir.qc.controls.decision import (
    WHOLE,
    SensitiveTests,
    counted_tests,
    failed_tests,
    flipped_tests,
    silenced_tests,
    time_limit,
    unexecuted_tests,
)

GREEN = CheckRun(check="unit", argv=("t",), phase="after", tree="t", exit_code=0)


def results(passed: str = "", failed: str = "") -> TestResults:
    return TestResults(runner="pytest", passed=tuple(passed.split()), failed=tuple(failed.split()))


def run(passed: str = "", failed: str = "") -> CheckRun:
    return replace(GREEN, exit_code=1 if failed else 0, results=results(passed, failed))


@pytest.mark.parametrize("code", [None, 0, 126, 127, 64])
def test_a_run_without_a_result_is_not_red(code: int | None):
    assert failed_tests(WHOLE, replace(GREEN, exit_code=code)) == frozenset()


def test_a_red_run_needs_the_planted_reason():
    assert failed_tests(WHOLE, replace(GREEN, exit_code=1)) == WHOLE
    assert failed_tests(WHOLE, replace(GREEN, exit_code=1, timed_out=True)) == frozenset()
    # A runner that crashes reports no test.
    assert failed_tests(frozenset("ab"), replace(GREEN, exit_code=1)) == frozenset()
    assert failed_tests(frozenset("ab"), run("a", "b")) == frozenset("b")
    assert counted_tests(run("a b")) == frozenset("ab")


def test_tests_that_survive_all_variants_do_not_count():
    tally = SensitiveTests(counted=frozenset("abc"))

    tally.note("expectations", run("b c", "a"))
    tally.note("statements", run("c", "a b"))

    assert (tally.sensitive, tally.survivors) == (frozenset("ab"), frozenset("c"))
    assert tally.is_red(frozenset())


def test_a_test_with_a_failing_statement_that_passes_is_silenced():
    tests = ("t.py::T::test_a[1]", "t.py::test_b", "pkg::TestC", "u.py::test_a", "t.js::x > it's d")
    names = {"t.py": "test_a", "c_test.go": "TestC", "u.py": "test_e", "t.js": "it's d"}
    changed = {path: {name: False} for path, name in names.items()}
    tally = SensitiveTests(counted=frozenset(tests))
    statements = replace(run("a"), results=TestResults(runner="pytest", passed=tests))

    found = silenced_tests(tally, statements, changed)

    assert found == {tests[0], tests[2], tests[4]}


def test_a_test_that_ignores_its_own_equality_is_not_saved_by_a_failing_statement():
    tally = SensitiveTests(counted=frozenset("ab"))

    tally.note("expectations", run("a", "b"))
    tally.note("strict", run("b", "a"))

    assert tally.deceived == frozenset("a")
    assert not tally.is_red(frozenset("ab"))
    assert tally.is_red(frozenset("b"))


def test_a_statement_does_not_save_a_test_that_always_reaches_an_equality():
    changed = {"t.py": {"test_a": True, "test_b": False}}
    tests = frozenset(("t.py::test_a", "t.py::test_b"))
    green, red = run("t.py::test_a t.py::test_b"), run("", "t.py::test_a t.py::test_b")

    tally = SensitiveTests(counted=tests)
    tally.note("expectations", green)
    tally.note("statements", red, changed)
    unknown = SensitiveTests(counted=tests)
    unknown.note("expectations", replace(green, timed_out=True))
    unknown.note("statements", red, changed)

    assert (tally.deceived, tally.sensitive) == ({"t.py::test_a"}, {"t.py::test_b"})
    assert unknown.sensitive == tests


def test_a_check_that_flips_needs_a_sensitive_test_that_flipped():
    tally = SensitiveTests(counted=frozenset("ab"))

    tally.note("expectations", run("b", "a"))

    assert flipped_tests(run("a", "b"), tally.counted) == frozenset("b")
    assert not tally.is_red(frozenset("b"))


def test_a_control_has_twice_the_time_of_the_green_run():
    many = replace(GREEN, results=results(" ".join(f"t{n}" for n in range(1000))))
    runs = [(GREEN, 1, 61), (GREEN, 45, 600), (GREEN, 45, 80), (GREEN, 25, 30), (many, 1, 300)]
    limits = [time_limit(replace(run, seconds=seconds), limit) for run, seconds, limit in runs]
    assert limits == [60.1, 90, 80, 60, 160]


def test_a_file_that_its_own_tests_skip_hides_none():
    listed = {"tests/test_a.py": {"test_one": True}, "tests/test_b.py": {"test_two": True}}
    before = replace(GREEN, results=TestResults(runner="pytest", errored=tuple(listed)))
    after = run("tests/test_a.py::test_one")
    skipped = replace(
        after,
        results=TestResults(
            runner="pytest", passed=("tests/test_a.py::test_one",), skipped=("tests/test_b.py",)
        ),
    )

    assert unexecuted_tests((before, after), listed)[0] == {"tests/test_b.py": {"test_two"}}
    assert unexecuted_tests((before, skipped), listed) == ({}, {})
