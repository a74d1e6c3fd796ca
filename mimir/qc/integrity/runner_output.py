"""Verification of runner outputs: do they support the exit code 0? Pure.

The work runs in the process of its tests. It may end that process (`os._exit(0)`, `pytest.exit`) or skip tests. A runner that ended with 0
without its closing summary, or that reported failures, was *cut short*. This is known only of a runner that the check itself starts,
with visible output. For all runners, the counts after the work are compared with those before it: missing counts, failures and skipped
tests are not passed tests.
"""

import re
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial

from mimir.domain.evidence import CheckRun
from mimir.qc.integrity.command_line import ProgramCall, find_programs, shell_line
from mimir.qc.integrity.test_counts import (
    RUST,
    CountedTests,
    parse_counts,
    parse_pattern,
    parse_pytest,
    parse_unittest,
    strip_colour_codes,
)

_REDIRECTS = re.compile(r"[|>`]|\$\(|(?<!&)&(?!&)")
"""Shell syntax that may hide a program's output, or end the line before the program."""
_DECIDES_OTHERWISE = re.compile(r"[;!\n]|\b(?:if|while|until)\b")
"""Shell syntax with which a line may end with 0 although a program in it did not."""
_LIST_TESTS = {"GOFLAGS": "-v"}
"""Environment in which silent runners list the tests that pass."""
SHORTENED = "[… "
"""Beginning of the kept end of an output that was cut."""


@dataclass(frozen=True, slots=True, kw_only=True)
class _OutputPattern:
    """Test runner, and the form of its output."""

    ended: Callable[[str, int], bool]
    """(output, number of starts) → whether every start reported its end."""
    tallies: Callable[[str], Sequence[CountedTests]] | None = None
    """Counts of each summary. None: its summaries have no counts."""
    other: str = ""
    """Options with which it runs no tests, or reports nothing."""
    verb: str = ""
    """Word that makes it run tests; empty: it always does."""

    def is_meant(self, arguments: Sequence[str]) -> bool:
        """True if it is to run tests and to report them."""
        return (not self.verb or self.verb in arguments) and set(self.other.split()).isdisjoint(
            arguments
        )


_ENDS_OF_PYTEST = re.compile(
    "|".join(
        (
            r"(?:passed|failed|errors?|skipped|deselected|xfailed|xpassed|warnings?|ran)\S{0,40} in \d+\.\d+s",
            r"\[100%\]|\[(\d+)/\1\]",  # -qq
            r"^[.sxX]+\n\Z|^(?:PASSED|SKIPPED|XFAIL|XPASS) .*\n\Z",  # -qq without progress, or with -r
            r"^Results \(\d+\.\d+s\):",  # of the plugin pytest-sugar
        )
    ),
    re.MULTILINE,
)
_STOPPED = re.compile(
    r"^!+ [^\n]{0,200}\b(?:Exit|KeyboardInterrupt)\b[^\n]{0,500} !+$", re.MULTILINE
)
_OK_IN_GO = re.compile(r"^ok\s+\S+\s", re.MULTILINE)
_PASS_IN_GO = re.compile(r"^PASS$", re.MULTILINE)
_FAILED_IN_RUST = re.compile(r"^test (\S+) \.\.\. FAILED$", re.MULTILINE)
_NAMED_IN_RUST = re.compile(r"^test (\S+)(?: - [^\n]*)? \.\.\. ", re.MULTILINE)
_BEGINNING_IN_RUST = re.compile(r"^running \d+ tests?$", re.MULTILINE)


def _is_pytest_complete(output: str, times: int) -> bool:
    # `pytest.exit(0)` prints a summary, but not of all tests.
    if _STOPPED.search(output) or not _ENDS_OF_PYTEST.search(output):
        return False
    counted = len(parse_pytest(output))
    return not counted or counted >= times  # otherwise the summary is that of another start


def _is_unittest_complete(output: str, times: int) -> bool:
    return len(parse_unittest(output)) >= times


def _is_rust_complete(output: str, _: int) -> bool:
    """True if as many test programs ended as began."""
    return len(parse_pattern(RUST, output)) >= len(_BEGINNING_IN_RUST.findall(output))


def _is_go_complete(output: str, _: int) -> bool:
    """True if as many test programs reported PASS as ended with 0."""
    # A program may end with 0 before its first test began.
    return len(_PASS_IN_GO.findall(output)) >= len(_OK_IN_GO.findall(output))


_PYTEST = _OutputPattern(
    ended=_is_pytest_complete,
    tallies=parse_pytest,
    other=(
        "-h --help -V --version --co --collect-only --fixtures --funcargs --fixtures-per-test "
        "--markers --cache-show no:terminal -pno:terminal"
    ),
)
_RUNNERS: Mapping[str, _OutputPattern] = {
    "pytest": _PYTEST,
    "py.test": _PYTEST,
    "unittest": _OutputPattern(
        ended=_is_unittest_complete, tallies=parse_unittest, other="-h --help"
    ),
    "go": _OutputPattern(
        ended=_is_go_complete, verb="test", other="-json --json -c -n -list --list -h"
    ),
    "cargo": _OutputPattern(
        ended=_is_rust_complete, tallies=partial(parse_pattern, RUST), verb="test"
    ),
}


def verbose_environment(argv: Sequence[str]) -> Mapping[str, str]:
    """Return the environment in which a command's runners report their end.

    `go test` reports of a package only that its program ended with 0, unless it lists each test.
    """
    return _LIST_TESTS if _runs_go(argv) else {}


def _runs_go(argv: Sequence[str]) -> bool:
    """True if a command starts `go test` and does not set GOFLAGS itself."""
    # A plan that sets GOFLAGS itself has its reasons; its output may be silent.
    goes = any(one.program == "go" and "test" in one.arguments for one in find_programs(argv))
    return goes and not any("GOFLAGS" in word for word in argv)


def is_output_known(argv: Sequence[str], one: ProgramCall) -> bool:
    """True if a program of a command is a known runner with visible output."""
    runner = _RUNNERS.get(one.program)
    return (
        runner is not None
        and runner.is_meant(one.arguments)
        and not _REDIRECTS.search(shell_line(argv) or "")
    )


def is_cut_short(argv: Sequence[str], output: str) -> bool:
    """True if a runner of a green command did not report its end, or reported failures."""
    text = strip_colour_codes(output)
    started = Counter(_find_runners(argv))
    if not all(runner.ended(text, times) for runner, times in started.items()):
        return True
    if _DECIDES_OTHERWISE.search(shell_line(argv) or ""):
        return False
    return any(one.failed for runner in started if runner.tallies for one in runner.tallies(text))


def count_tests(run: CheckRun) -> CountedTests | None:
    """Return the sum of all test counts in a run's output; None: it has none."""
    counts = parse_counts(run.output_tail)
    return sum(counts, CountedTests()) if counts else None


def confirm_by_output(run: CheckRun, before: CheckRun) -> CheckRun:
    """Return a run on the deliverable, as cut short if the run before the work contradicts it."""
    # Tests of Rust are in the files that they test, where they cannot be restored: a failed one must still exist.
    # Names may be missing from the kept end of a long output.
    if run.green and not run.output_tail.startswith(SHORTENED):
        failed = set(_FAILED_IN_RUST.findall(before.output_tail))
        if failed.difference(_NAMED_IN_RUST.findall(run.output_tail)):
            return replace(run, cut_short=True)
    return compare_counts(run, count_tests(before), was_green=before.green)


def compare_counts(run: CheckRun, then: CountedTests | None, *, was_green: bool) -> CheckRun:
    """Return a run, as cut short if another run shows that its tests have not passed.

    It shows this if the run reports no tests although the other passed with some; if at least as many failed; or if more are skipped
    and fewer ran or passed (or no more passed, if some failed). `then` and `was_green` are of the other run.
    """
    now = count_tests(run)
    if now is None:
        # Some runners report failures only, and nothing is known of the cut part of an output.
        worse = was_green and then is not None and not run.output_tail.startswith(SHORTENED)
    else:
        worse = _worse(now, then or CountedTests(), gain=0 if was_green else 1)
    return replace(run, cut_short=True) if run.green and worse else run


def _worse(now: CountedTests, then: CountedTests, gain: int) -> bool:
    if now.failed and now.failed > then.failed - gain:
        return True
    # A test that ran before, with any result, may not be skipped now.
    ran_fewer = now.passed + now.failed < then.passed + then.failed
    return now.skipped > then.skipped and (ran_fewer or now.passed < then.passed + gain)


def _find_runners(argv: Sequence[str]) -> list[_OutputPattern]:
    """Return a command's known runners, once a start; empty: their output may be hidden."""
    lists_tests = _runs_go(argv)
    return [
        _RUNNERS[one.program]
        for one in find_programs(argv)
        if is_output_known(argv, one) and (lists_tests or one.program != "go")
    ]
