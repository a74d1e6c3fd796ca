"""What pytest and unittest say at their end; and where nothing can be told from it."""

import pytest

from mimir.qc.ending import is_cut_short

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
