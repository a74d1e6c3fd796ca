"""Results of single tests, as a test runner reported them to the engine. Pure."""

import hashlib
from collections.abc import Mapping
from typing import ClassVar, Literal

from mimir.domain.value_class import value_class

TestState = Literal["passed", "failed", "errored", "skipped", "xfailed"]
STATES: tuple[TestState, ...] = ("passed", "failed", "errored", "skipped", "xfailed")
NO_CONTROL = "executed (no control)"
"""Basis of a check that passed without a negative control."""
MAX_NAMED = 20
"""Most tests that a sealed payload names."""


@value_class
class TestResults:
    """Tests of one check run, by state; ids are `FILE::NAME`, each id once, sorted."""

    __test__: ClassVar[bool] = False
    """Tells pytest that this class is no test."""

    runner: str
    """Names of the runners that reported: `pytest`, `go`."""
    passed: tuple[str, ...] = ()
    failed: tuple[str, ...] = ()
    errored: tuple[str, ...] = ()
    """Tests that could not be executed: failed collection or set-up, planned but never run."""
    skipped: tuple[str, ...] = ()
    xfailed: tuple[str, ...] = ()
    """Tests that failed as their mark expects."""
    problem: str = ""
    """Reason of a missing result, which is red; empty: the report is complete."""
    fallback: str = ""
    """Reason to decide by the exit code of a known runner; empty: the report decides."""

    @property
    def states(self) -> Mapping[str, TestState]:
        """State of each test, by its id."""
        return {test: state for state in STATES for test in self.of_state(state)}

    def of_state(self, state: TestState) -> tuple[str, ...]:
        """Return the tests in one state."""
        match state:
            case "passed":
                return self.passed
            case "failed":
                return self.failed
            case "errored":
                return self.errored
            case "skipped":
                return self.skipped
            case "xfailed":
                return self.xfailed

    @property
    def counted(self) -> int:
        """Number of tests that decided something: passed, failed or errored."""
        return len(self.passed) + len(self.failed) + len(self.errored)

    @property
    def is_empty(self) -> bool:
        """True if a complete report names no test."""
        return not (self.problem or self.fallback or self.counted or self.skipped or self.xfailed)

    @property
    def green(self) -> bool:
        """True if nothing in the report contradicts exit code 0."""
        return not self.contradiction

    @property
    def contradiction(self) -> str:
        """Contradiction of the report to exit code 0; empty: none."""
        if self.fallback:
            return ""
        red = len(self.failed) + len(self.errored)
        if red and not self.problem:
            names = ", ".join((*self.failed, *self.errored)[:3])
            return f"{red:,} of {self.counted:,} tests have not passed: {names}."
        return self.problem or ("" if self.passed else "No test has passed.")


def sort_results(runner: str, states: Mapping[str, TestState], problem: str = "") -> TestResults:
    """Return results from the state of each test."""
    by_state: dict[TestState, list[str]] = {state: [] for state in STATES}
    for test in sorted(states):
        by_state[states[test]].append(test)
    return TestResults(
        runner=runner,
        passed=tuple(by_state["passed"]),
        failed=tuple(by_state["failed"]),
        errored=tuple(by_state["errored"]),
        skipped=tuple(by_state["skipped"]),
        xfailed=tuple(by_state["xfailed"]),
        problem=problem,
    )


def file_of(test: str) -> str:
    """Return the file, or the package, that a test id names; empty: none."""
    file, separator, _ = test.partition("::")
    return file if separator else ""


def sealed_results(results: TestResults) -> Mapping[str, object]:
    """Return the sealed form: counts, names of the red tests, and a hash over all states."""
    digest = hashlib.sha256()
    for test, state in results.states.items():
        digest.update(f"{state} {test}\n".encode("utf-8", "surrogatepass"))
    body: dict[str, object] = {state: len(results.of_state(state)) for state in STATES}
    body |= {"runner": results.runner, "green": results.green, "hash": digest.hexdigest()}
    red = (*results.failed, *results.errored)[:MAX_NAMED]
    more = {"red": list(red), "problem": results.problem, "fallback": results.fallback}
    return body | {name: value for name, value in more.items() if value}


def describe_tests(passed: int, counted: int, *, skipped: int = 0, control: str = "") -> str:
    """Describe results in short: `12 of 12 tests, 1 skipped, control red`; empty: no tests.

    `control` is the state of the negative control; empty: it is not part of the text.
    """
    tests = "" if not counted + skipped else f"{passed:,} of {counted:,} tests"
    if counted == 1:
        tests = f"{passed} of 1 test"
    parts = (tests, f"{skipped:,} skipped" if skipped else "", f"control {control}" * bool(control))
    return ", ".join(part for part in parts if part)
