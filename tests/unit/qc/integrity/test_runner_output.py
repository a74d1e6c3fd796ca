"""What test runners say at their end; what that is held against; and where nothing can be told from it."""

import pytest

from mimir.domain.evidence import CheckRun
from mimir.qc.integrity.runner_output import (
    SHORTENED,
    compare_counts,
    confirm_by_output,
    count_tests,
    is_cut_short,
    verbose_environment,
)
from mimir.qc.integrity.test_counts import CountedTests

HEADER = "===== test session starts =====\nplatform linux\nrootdir: /workspace\n"
ENDED = {
    "one line": "..\n2 passed in 0.01s\n",
    "a header": f"{HEADER}collected 1 item\n\na.py .   [100%]\n\n===== 1 passed in 0.01s =====\n",
    "colours": "\x1b[32m\x1b[1m1 passed\x1b[0m\x1b[32m in 1.02s\x1b[0m\n",
    "long": "1 passed, 2 warnings in 75.32s (0:01:15)\n",
    "skipped": "1 skipped, 1 deselected in 0.02s\n",
    "quiet": "..                        [100%]\n",
    "quiet, counted": "...                     [3/3]\n",
    "quiet, no progress": "..s\n",
    "quiet, told of each": "PASSED test_a.py::test_one\n",
    "a plugin": "Results (0.05s):\n       1 passed\n",
    "warnings of others first": "Warning: the loop's scope is unset\n..\n2 passed in 0.01s\n",
}
CUT = {
    "nothing": "",
    "a header alone": HEADER,
    "collected": f"{HEADER}collected 3 items\n\ntest_a.py .",
    "in mid-line": ".",
    "of three": ".                        [ 33%]\n",
    "counted": ".                       [1/3]\n",
    "other words": "imported in 0.31s\nAll tests passed.\n",
}
PYTEST = ("python", "-m", "pytest", "-q", "tests")
MAKE = ("make", "test")
UNITTEST = ("python3", "-m", "unittest", "-q", "tests.test_a")


@pytest.mark.parametrize("said", ENDED.values(), ids=ENDED.keys())
def test_pytest_that_came_to_its_end_is_known(said: str):
    assert not is_cut_short(PYTEST, said)


@pytest.mark.parametrize("said", CUT.values(), ids=CUT.keys())
def test_pytest_that_was_cut_short_is_known(said: str):
    assert is_cut_short(PYTEST, said)
    assert is_cut_short(UNITTEST, said)


@pytest.mark.parametrize("count", ["0 tests", "1 test", "12 tests"])
def test_unittest_counts_at_its_end(count: str):
    assert not is_cut_short(UNITTEST, f"...\n-----\nRan {count} in 0.000s\n\nOK\n")


RUST = "     Running unittests src/lib.rs (target/debug/deps/c-1)\n\nrunning 1 test\n"
RESULT = "test result: ok. 1 passed; 0 failed; 0 ignored; 0 measured; finished in 0.00s\n\n"


@pytest.mark.parametrize(
    ("said", "cut"),
    [
        (f"{RUST}test works ... ok\n\n{RESULT}", False),
        (f"{RUST}.\n{RESULT}   Doc-tests c\n\nrunning 0 tests\n\n{RESULT}", False),
        (f"{RUST}   Doc-tests c\n\nrunning 0 tests\n\n{RESULT}", True),
        ("\nrunning 1 test\n", True),
        ("  Executable unittests src/lib.rs (target/debug/deps/c-1)\n", False),
        ("tests::works: test\n", False),
    ],
    ids=["whole", "two programs", "one of two", "quiet", "not run", "listed"],
)
def test_each_test_program_of_cargo_tells_its_result(said: str, cut: bool):
    assert is_cut_short(("cargo", "test", "--quiet"), said) is cut
    assert not is_cut_short(("cargo", "run"), said)
    built = ("bash", "-c", "cargo test --no-run && cargo test --quiet")
    assert is_cut_short(built, said) is cut


GO = ("go", "test", "./...")
TOLD = "=== RUN   TestA\n--- PASS: TestA (0.00s)\nPASS\nok  \tx/a\t0.007s\n"


@pytest.mark.parametrize(
    ("said", "cut"),
    [
        (TOLD, False),
        (f"?   \tx\t[no test files]\n{TOLD}{TOLD}", False),
        ("testing: warning: no tests to run\nPASS\nok  \tx/a\t0.007s [no tests to run]\n", False),
        (TOLD.replace("0.007s", "(cached)"), False),
        ("ok  \tx/a\t0.007s\n", True),
        (f"{TOLD}ok  \tx/b\t0.007s\n", True),
    ],
    ids=["one", "two and none", "nothing to run", "kept", "silent", "one of two"],
)  # fmt: skip
def test_each_test_program_of_go_says_that_it_passed(said: str, cut: bool):
    """Asked to tell of each test, which it is by its environment."""
    assert verbose_environment(GO) == {"GOFLAGS": "-v"}
    assert is_cut_short(GO, said) is cut


@pytest.mark.parametrize(
    "argv", [("go", "vet"), ("env", "GOFLAGS=-mod=mod", "go", "test"), ("go", "test", "-json")]
)
def test_go_that_is_told_otherwise_is_believed(argv: tuple[str, ...]):
    assert not is_cut_short(argv, "ok  \tx/a\t0.007s\n")


@pytest.mark.parametrize(
    "line",
    [
        "pytest tests",
        "cd sub && python -m pytest -q && test -f out.txt",
        "A=1 timeout 60 pytest",
        "uv run pytest -q",
        "coverage run -m pytest",
        "pytest a && python -m unittest b",
    ],
)
def test_a_runner_is_known_behind_what_starts_it(line: str):
    assert is_cut_short(("bash", "-o", "pipefail", "-c", line), "")


@pytest.mark.parametrize(
    "line",
    [
        "pytest -q > log.txt",
        "pytest -q >log 2>&1 || (cat log; exit 1)",
        "pytest | grep passed",
        "test -n $(pytest -q)",
        "pytest -q & wait",
        "pytest --version",
        "pytest --collect-only -qq",
        "pytest -p no:terminal",
        "python -m unittest --help",
        "grep -q pytest README.md",
        "test -f out.txt",
        "./run-tests.sh",
        "make test",
    ],
)
def test_where_its_end_cannot_be_seen_nothing_is_said(line: str):
    assert not is_cut_short(("bash", "-o", "pipefail", "-c", line), "")


FAILED = {
    "pytest": (PYTEST, "F.\n1 failed, 1 passed in 0.04s\n"),
    "pytest in colours": (PYTEST, "\x1b[31m\x1b[1m1 failed\x1b[0m, \x1b[32m1 passed\x1b[0m\x1b[31m in 0.04s\x1b[0m\n"),
    "pytest, an error": (PYTEST, "===== 3 passed, 1 warning, 2 errors in 1.04s =====\n"),
    "pytest, stopped": (PYTEST, "!!!!!!! _pytest.outcomes.Exit: enough !!!!!!!\n1 passed in 0.04s\n"),
    "pytest, stopped at once": (PYTEST, "\n!!!!!!! _pytest.outcomes.Exit: x !!!!!!!\nno tests ran in 0.04s\n"),
    "unittest": (UNITTEST, "F.\n-----\nRan 2 tests in 0.001s\n\nFAILED (failures=1)\n"),
    "unittest, an error": (UNITTEST, "Ran 2 tests in 0.001s\n\nFAILED (errors=1, skipped=1)\n"),
    "cargo": (("cargo", "test"), f"{RUST}test result: FAILED. 0 passed; 1 failed; 0 ignored; 0 measured\n"),
    "the second of two": (
        ("bash", "-c", "pytest a && pytest b"),
        "1 passed in 0.01s\n===== test session starts =====\n",
    ),
    "the first of two": (
        ("bash", "-c", "pytest a && pytest b"),
        "1 failed in 0.01s\n1 passed in 0.01s\n",
    ),
}  # fmt: skip


@pytest.mark.parametrize(("argv", "said"), FAILED.values(), ids=FAILED.keys())
def test_a_runner_that_ended_with_0_and_spoke_of_failures_was_cut_short(
    argv: tuple[str, ...], said: str
):
    assert is_cut_short(argv, said)


@pytest.mark.parametrize(
    "line", ["pytest a; pytest b", "! pytest a", "if pytest a\nthen exit 1\nfi", "pytest a || true"]
)
def test_where_the_line_decides_its_failures_do_not(line: str):
    assert not is_cut_short(("bash", "-c", line), "1 failed in 0.01s\n1 passed in 0.01s\n")


def ran(argv: tuple[str, ...], said: str, code: int = 0) -> CheckRun:
    return CheckRun(check="k", argv=argv, phase="after", tree="t", exit_code=code, output_tail=said)


@pytest.mark.parametrize(
    ("argv", "said", "expected"),
    [
        (PYTEST, "1 failed, 12 passed, 3 skipped in 0.04s\n", CountedTests(passed=12, failed=1, skipped=3)),
        (PYTEST, "= 2 xfailed, 1 xpassed, 9 warnings in 61.04s (0:01:01) =\n", CountedTests(passed=1, skipped=2)),
        (PYTEST, "1 passed, 2 subtests passed in 0.01s\n", CountedTests(passed=1)),
        (PYTEST, "no tests ran in 0.01s\n", CountedTests()),
        (PYTEST, "..\n", None),
        (UNITTEST, "Ran 5 tests in 0.1s\n\nOK (skipped=1, expected failures=2)\n", CountedTests(passed=2, skipped=3)),
        (UNITTEST, "Ran 5 tests in 0.1s\n\nFAILED (errors=1, unexpected successes=1)\n", CountedTests(passed=3, failed=2)),
        (UNITTEST, "Ran 1 test in 0.1s\n\nFAILED (failures=4)\n", CountedTests(failed=4)),
        (UNITTEST, "Ran 3 tests in 0.1s\n\nOK\n", CountedTests(passed=3)),
        (("cargo", "test"), RESULT + RESULT, CountedTests(passed=2)),
        (("bash", "-c", "pytest a && pytest b"), "1 passed in 0.1s\n2 passed in 0.1s\n", CountedTests(passed=3)),
        (("make", "test"), "1 passed in 0.1s\nRan 1 test in 0.1s\n\nOK\nall is well\n", CountedTests(passed=2)),
        (MAKE, "all is well\n", None),
        (MAKE, "Tests:       1 failed, 2 skipped, 3 passed, 6 total\nSnapshots:   0 total\n", CountedTests(passed=3, failed=1, skipped=2)),
        (MAKE, "Tests:       3 passed, 3 total\n", CountedTests(passed=3)),
        (MAKE, " Test Files  1 passed (1)\n      Tests  1 failed | 2 passed (3)\n", CountedTests(passed=2, failed=1)),
        (MAKE, "      Tests  2 passed (2)\n", CountedTests(passed=2)),
        (MAKE, "  2 passing (5ms)\n  1 pending\n  1 failing\n", CountedTests(passed=2, failed=1, skipped=1)),
        (MAKE, "3 examples, 1 failure, 1 pending\n", CountedTests(passed=1, failed=1, skipped=1)),
        (MAKE, "5 runs, 9 assertions, 1 failures, 1 errors, 1 skips\n", CountedTests(passed=2, failed=2, skipped=1)),
        (MAKE, "1 doctest, 4 tests, 1 failure\n", CountedTests(passed=3, failed=1)),
        (MAKE, "OK (3 tests, 5 assertions)\n", CountedTests(passed=3)),
        (MAKE, "Tests: 3, Assertions: 5, Failures: 1.\n", CountedTests(passed=2, failed=1)),
    ],
)  # fmt: skip
def test_tests_are_counted_where_their_runner_counts_them(
    argv: tuple[str, ...], said: str, expected: CountedTests | None
):
    assert count_tests(ran(argv, said)) == expected


@pytest.mark.parametrize(
    ("then", "was_green", "now", "cut"),
    [
        ("1 failed, 1 passed", False, "1 passed, 1 skipped", True),
        ("1 failed", False, "1 skipped", True),
        ("1 error", False, "1 skipped", True),
        ("1 failed, 1 passed", False, "1 passed, 1 xfailed", True),
        ("1 failed, 1 passed, 1 skipped", False, "2 passed, 1 skipped", False),
        ("1 error, 5 passed", False, "6 passed, 1 skipped", False),
        ("1 failed, 5 passed", False, "5 passed", False),
        ("2 passed", True, "1 passed, 1 skipped", True),
        ("1 failed", False, "1 failed", True),
        ("2 failed", False, "1 failed, 1 passed", False),
        ("1 failed, 1 passed", True, "1 failed, 1 passed", False),
        ("1 passed", True, "1 failed", True),
        ("2 passed", True, "2 passed, 1 skipped", False),
        ("2 passed, 1 skipped", True, "1 passed, 1 skipped", False),
    ],
)
def test_a_test_that_is_skipped_or_fails_now_has_not_passed(
    then: str, was_green: bool, now: str, cut: bool
):
    """Whoever starts the runner; one whose failures do not count here may go on to fail."""
    before, after = ran(MAKE, f"{then} in 0.1s\n"), ran(MAKE, f"{now} in 0.1s\n")

    assert compare_counts(after, count_tests(before), was_green=was_green).green is not cut


def test_who_spoke_of_tests_that_passed_must_go_on_to_speak_of_them():
    assert compare_counts(ran(MAKE, "compiled\n"), CountedTests(failed=1), was_green=False).green
    assert not compare_counts(ran(MAKE, "compiled\n"), CountedTests(passed=1), was_green=True).green


def of_node(first: str, passed: int, failed: int) -> str:
    return f"TAP version 13\n{first}\n  ---\n  ...\n1..1\n# tests 1\n# pass {passed}\n# fail {failed}\n# skipped 0\n# todo 0\n"


SPECIFIED = (
    "✔ /workspace/a.test.js (45.1ms)\nℹ tests 1\nℹ pass 1\nℹ fail 0\nℹ skipped 0\nℹ todo 0\n"
)


@pytest.mark.parametrize(
    ("before", "after", "green"),
    [
        (of_node("not ok 1 - adds", 0, 1), of_node("ok 1 - adds", 1, 0), True),
        (of_node("not ok 1 - adds", 0, 1), of_node("ok 1 - /workspace/a.test.js", 1, 0), False),
        (of_node("not ok 1 - adds", 0, 1), SPECIFIED, False),
        # Assertions without tests: the file is all there is, before and after.
        (of_node("not ok 1 - /workspace/a.test.js", 0, 1), SPECIFIED, True),
        (of_node("not ok 1 - /workspace/a.test.js", 0, 1), of_node("ok 1 - adds", 1, 0), True),
    ],
)
def test_a_file_of_node_that_ends_before_its_tests_has_passed_none(
    before: str, after: str, green: bool
):
    then = count_tests(ran(("node", "--test"), before, code=1))

    assert compare_counts(ran(("node", "--test"), after), then, was_green=False).green is green


@pytest.mark.parametrize(
    ("after", "green"),
    [
        ("test tests::adds ... ok\ntest tests::more ... ok\n", True),
        ("test tests::more ... ok\n", False),
        ("test tests::adds ... ignored\ntest tests::more ... ok\n", False),
        ("test tests::adds - should panic ... ok\ntest tests::more ... ok\n", True),
    ],
)
def test_a_test_of_rust_that_failed_is_not_taken_away(after: str, green: bool):
    """It stands in the file of the work, and may be deleted with what it says."""
    cargo = ("cargo", "test")
    said = "test tests::adds ... FAILED\ntest tests::more ... ok\ntest result: FAILED. 1 passed; 1 failed; 0 ignored\n"
    end = f"test result: ok. {after.count(' ok')} passed; 0 failed; {after.count('ignored')} ignored\n"

    assert confirm_by_output(ran(cargo, after + end), ran(cargo, said, code=101)).green is green


def test_an_end_that_may_not_have_been_kept_is_not_missed():
    assert compare_counts(
        ran(MAKE, f"{SHORTENED}9 characters before]\ncompiled\n"),
        CountedTests(passed=1),
        was_green=True,
    ).green


def test_nothing_is_held_against_a_run_of_which_nothing_is_known():
    assert compare_counts(ran(MAKE, "..\n"), None, was_green=True).green
    assert compare_counts(ran(PYTEST, "1 passed, 1 skipped in 0.1s"), None, was_green=True).green
    assert not compare_counts(ran(PYTEST, "1 skipped in 0.1s"), None, was_green=False).green
