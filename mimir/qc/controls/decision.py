"""Decision of a control: what the runs of its variants say of the check. Pure.

A test is *sensitive* if a variant turns it red. A test with an unconditional equality that stays green with another expected value is
*deceived*: its comparison decides nothing, although its failing first statement is noticed.
"""

import re
from collections import Counter
from collections.abc import Awaitable, Callable, Iterable, Mapping, Sequence
from collections.abc import Set as AbstractSet
from dataclasses import dataclass, field

from mimir.domain.evidence import CheckRun, ControlState
from mimir.qc.mutations.mutation import ChangedTests, Step
from mimir.qc.mutations.test_programs import TestProgram

Failed = Callable[[Step, Sequence[TestProgram]], Awaitable[frozenset[str]]]
"""Runs the variant of a step of programs; returns the counted tests that it turned red."""
WHOLE = frozenset(("",))
"""Placeholder for the tests of a check whose exit code alone is known."""
TestNames = Mapping[str, AbstractSet[str]]
"""File → names of tests."""
_WORDS = re.compile(r"::|[\[/.]")
_NO_RESULT_EXITS = frozenset((None, 0, 64, 126, 127))
"""No end, success, usage error, not executable, command not found."""


def counted_tests(run: CheckRun) -> frozenset[str]:
    """Return the tests that a green run counts as passed."""
    results = run.results
    return frozenset(results.passed) if results and results.passed else WHOLE


def failed_tests(counted: frozenset[str], run: CheckRun) -> frozenset[str]:
    """Return the counted tests that a variant turned red."""
    if run.timed_out or run.missing or run.exit_code in _NO_RESULT_EXITS:
        return frozenset()
    if counted == WHOLE:
        return counted
    results = run.results
    if results is None or not results.counted:
        # The runner ended before its report, so no test failed for the planted reason.
        return frozenset()
    return counted - ignoring_tests(run)


def ends_before_tests(green: CheckRun, run: CheckRun) -> bool:
    """True if a variant of a check with single tests failed before any of them ran."""
    has_tests = run.results is not None and bool(run.results.counted)
    return counted_tests(green) != WHOLE and is_red(run) and not has_tests


def ignoring_tests(run: CheckRun | None) -> frozenset[str]:
    """Return the tests that no change of a variant turned red."""
    results = run.results if run else None
    # A skipped test has shown that one of its comparisons decides nothing.
    return frozenset((*results.passed, *results.skipped)) if results else frozenset()


def is_red(run: CheckRun | None) -> bool:
    """True if a variant ran and turned its check red, for the planted reason."""
    return run is not None and bool(failed_tests(WHOLE, run))


@dataclass(slots=True, kw_only=True)
class SensitiveTests:
    """Tests of one check that variants turned red."""

    counted: frozenset[str]
    sensitive: frozenset[str] = frozenset()
    deceived: frozenset[str] = frozenset()
    step: Step | None = None
    """Variant that turned the first test red. None: none did."""
    runs: list[CheckRun] = field(default_factory=list[CheckRun])

    @property
    def survivors(self) -> frozenset[str]:
        """Tests that no variant turned red yet."""
        return self.counted - self.sensitive - self.deceived

    def note(self, step: Step, run: CheckRun, changed: ChangedTests | None = None) -> None:
        """Add the run of a variant, with the tests of its changed files."""
        failed = failed_tests(self.counted, run) & self.survivors
        if step == "strict":
            deceived = failed
        elif step == "statements" and self.runs and not self.runs[0].timed_out:
            deceived = frozenset(one for one in failed if _strictness(one, changed or {}))
        else:
            deceived = frozenset[str]()
        self.runs.append(run)
        self.deceived |= deceived
        self.sensitive |= failed - deceived
        self.step = self.step or (step if failed - deceived else None)

    def is_red(self, flipped: frozenset[str]) -> bool:
        """True if the check can fail; `flipped` tests failed before the work."""
        if not self.sensitive or self.deceived & flipped:
            return False
        return not flipped or bool(flipped & self.sensitive)


def flipped_tests(before: CheckRun, counted: frozenset[str]) -> frozenset[str]:
    """Return the counted tests that did not pass before the work."""
    return counted - frozenset(before.results.passed if before.results else ())


def leave_out_held(
    flipped: frozenset[str], hidden: frozenset[str], base: CheckRun | None, written: ChangedTests
) -> frozenset[str]:
    """Return the flipped tests without those that passed on the base and were not rewritten.

    Args:
        flipped: Tests that did not pass before the work.
        hidden: Those of them without a result there; only they are left out.
        base: Run without the tests of the task.
        written: Tests of the files that the task changed.
    """
    passed = frozenset(base.results.passed if base and base.results else ())
    held = frozenset(test for test in hidden & passed if _strictness(test, written) is None)
    # Without a new test nothing explains the missing results.
    return flipped - held or flipped


def silenced_tests(tally: SensitiveTests, run: CheckRun, changed: ChangedTests) -> frozenset[str]:
    """Return the tests that pass although their own first statement fails.

    `run` is that of failing statements.
    """
    results = run.results
    if results is None or run.timed_out:
        return frozenset()
    passed = tally.survivors & frozenset(results.passed)
    return frozenset(test for test in passed if _strictness(test, changed) is not None)


def _strictness(test: str, changed: ChangedTests) -> bool | None:
    """Return whether a test always reaches an equality; None: no changed file holds it."""
    file, words = test.partition("::")[0], words_of(test)
    # Go names packages in place of files, cargo programs, Java classes.
    others = [tests for path, tests in changed.items() if path.endswith((".go", ".rs", ".java"))]
    found = [
        is_strict
        for tests in ([changed[file]] if file in changed else others)
        for one, is_strict in tests.items()
        if one in words
    ]
    return all(found) if found else None


def words_of(test: str) -> set[str]:
    """Return the names that may stand in the file of a test."""
    name = test.partition("::")[2]
    return {name, *name.split(" > "), *_WORDS.split(name)}


def unexecuted_tests(runs: Iterable[CheckRun], listed: ChangedTests) -> tuple[TestNames, TestNames]:
    """Return the absent and the skipped tests of files that the runs name."""
    done: set[str] = set()
    skipped: set[str] = set()
    files: set[str] = set()
    whole: set[str] = set()
    for run in runs:
        for test, state in run.results.states.items() if run.results else ():
            (skipped if state in ("skipped", "xfailed") else done).update(words_of(test))
            files.add(test.partition("::")[0])
            # A whole file: its tests skip it.
            whole |= {test} if state == "skipped" else set[str]()
    used = {path: tests.keys() - done for path, tests in listed.items() if path not in whole and (path in files or tests.keys() & done)}  # fmt: skip
    # Parameters are part of a name in Java. Of Python, the reporter tells whose a skip is; of Go, the work has no means.
    absent = {path: names - skipped for path, names in used.items() if path[-5:] != ".java"}
    ignored = {path: names & skipped for path, names in used.items() if path[-3:] not in (".py", ".go")}  # fmt: skip
    return _without_empty(absent), _without_empty(ignored)


def _without_empty(tests: TestNames) -> TestNames:
    return {path: names for path, names in tests.items() if names}


def has_fewer(run: CheckRun, counts: Mapping[tuple[str, str], int]) -> bool:
    """True if a run executed a test with some of its parameters only."""
    states = run.results.states if run.results else ()
    names = (one.partition("[")[0] for one in states if "[" in one)
    found = Counter((name.partition("::")[0], name.rpartition("::")[2]) for name in names)
    # A selection of the command names parameters, or words of them.
    is_whole = not any(word.startswith("-k") or "[" in word for word in run.argv)
    return is_whole and any(0 < found[one] < count for one, count in counts.items())


def time_limit(run: CheckRun, limit: float) -> float:
    """Return the seconds of a control: twice the green run, and enough to print failures."""
    least = _LEAST_SECONDS + _FAILURE_SECONDS * len(counted_tests(run))
    return min(max(2 * run.seconds, least), max(limit, _LEAST_SECONDS))


_LEAST_SECONDS = 60.0
_FAILURE_SECONDS = 0.1
"""Time to print one failure on a busy machine, as Maven does with a trace of each."""


def did_hang(runs: Sequence[CheckRun]) -> bool:
    """True if the last variant did not end."""
    return bool(runs) and runs[-1].timed_out


def has_only_starts(tally: SensitiveTests) -> bool:
    """True if an exit code shows that tests start, but reach none of their assertions."""
    is_ended = bool(tally.runs) and not tally.runs[0].timed_out
    return (
        tally.counted == WHOLE and tally.step == "statements" and is_ended and len(tally.runs) > 1
    )


async def decide_programs(
    programs: Sequence[TestProgram], tally: SensitiveTests, failed: Failed
) -> ControlState | None:
    """Return what the variants of test programs say; None: the check does not depend on them.

    A program proves something only if its end is reached and its assertions decide. Tests that fail by a program without the work, but not by
    its failing end, are ended early.
    """
    # The end comes first: it compiles always, while a changed value may not fit a type.
    own = [one for one in programs if one.has_end]
    called = [one for one in programs if not one.has_end]
    ended = await failed("end", own) if own else frozenset[str]()
    if own and tally.counted - ended and await failed("replaced", own) - ended:
        return "insensitive"
    sensitive = await failed("expectations", programs)
    if left := tally.counted - sensitive:
        # A comparison that computes its values, but holds with another one, decides nothing.
        if (called or ended) and await failed("strict", programs) & left:
            return "insensitive"
        sensitive |= await failed("statements", called) if called else frozenset[str]()
        # What a program without the work turns red is started, so its tests were not reached.
        left -= sensitive | ended
        if called and left and await failed("replaced", called) & left:
            return "insensitive"
    # The end is reached although no assertion decides.
    if ended and not sensitive and all(one.has_expectations for one in programs):
        return "insensitive"
    tally.sensitive = ended | sensitive
    return "red" if tally.sensitive else None
