"""What a test runner says at its end, and whether that bears out the exit code 0 that it left behind. Pure.

The work runs in the process of its tests. It may end that process (`os._exit(0)`, `pytest.exit`), now or when all has been said, and have tests
skipped. Runners say something when all is done: one that ended with 0 and did not say it, or spoke of tests that failed, was *cut short*: that
is known of a runner that the check starts itself, whose output nothing takes away. Whoever starts it, what it said before the work is held
against what it says after it: silence, failures and skipped tests are no passed ones.
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
"""What may keep a program's output from being seen, or let the line end before the program."""
_DECIDES_OTHERWISE = re.compile(r"[;!\n]|\b(?:if|while|until)\b")
"""What lets a line end with 0 though a program in it did not."""
_TELL_OF_EACH = {"GOFLAGS": "-v"}
"""Environment in which runners that are silent about what passes name it."""
SHORTENED = "[… "
"""How the kept end of an output begins, if it is not all of it."""


@dataclass(frozen=True, slots=True, kw_only=True)
class _OutputPattern:
    """A test runner."""

    ended: Callable[[str, int], bool]
    """(output, how often it was started) → whether it said each time what it says when all is done."""
    tallies: Callable[[str], Sequence[CountedTests]] | None = None
    """What it said at each of its ends, where those count tests."""
    other: str = ""
    """Options with which it does something else, or says nothing."""
    verb: str = ""
    """What it is told to run tests; empty: it does nothing else."""

    def is_meant(self, arguments: Sequence[str]) -> bool:
        """True if it is to run tests, and to tell of them."""
        return (not self.verb or self.verb in arguments) and set(self.other.split()).isdisjoint(
            arguments
        )


_ENDS_OF_PYTEST = re.compile(
    "|".join(
        (
            r"(?:passed|failed|errors?|skipped|deselected|xfailed|xpassed|warnings?|ran)\S{0,40} in \d+\.\d+s",
            r"\[100%\]|\[(\d+)/\1\]",  # -qq
            r"^[.sxX]+\n\Z|^(?:PASSED|SKIPPED|XFAIL|XPASS) .*\n\Z",  # -qq without progress, or with -r
            r"^Results \(\d+\.\d+s\):",  # a plugin's own words
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
    if _STOPPED.search(output) or not _ENDS_OF_PYTEST.search(output):
        return False
    counted = len(parse_pytest(output))
    return not counted or counted >= times  # else the end that is there is that of another one


def _is_unittest_complete(output: str, times: int) -> bool:
    return len(parse_unittest(output)) >= times


def _is_rust_complete(output: str, _: int) -> bool:
    """Compare how many of its programs began, and how many came to their end."""
    return len(parse_pattern(RUST, output)) >= len(_BEGINNING_IN_RUST.findall(output))


def _is_go_complete(output: str, _: int) -> bool:
    """Compare how many test programs ended with 0, and how many said that their tests passed: one may end before any began."""
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
    """Return what a command needs in its environment so that its runners say at their end what is asked of them here.

    `go test` says of a package only that its program ended with 0, unless it is to tell of each test.
    """
    return _TELL_OF_EACH if _runs_go(argv) else {}


def _runs_go(argv: Sequence[str]) -> bool:
    """True if `go test` is started, and not told otherwise."""
    goes = any(one.program == "go" and "test" in one.arguments for one in find_programs(argv))
    return goes and not any("GOFLAGS" in word for word in argv)


def is_output_known(argv: Sequence[str], one: ProgramCall) -> bool:
    """True if one of the programs that `argv` starts is a known runner, and what it says at its end is seen."""
    runner = _RUNNERS.get(one.program)
    return (
        runner is not None
        and runner.is_meant(one.arguments)
        and not _REDIRECTS.search(shell_line(argv) or "")
    )


def is_cut_short(argv: Sequence[str], output: str) -> bool:
    """True if a test runner that a command starts has not said what it says at its end, or said that tests failed.

    Args:
        argv: The command, which ended with 0.
        output: All that it said.
    """
    said = strip_colour_codes(output)
    started = Counter(_find_runners(argv))
    if not all(runner.ended(said, times) for runner, times in started.items()):
        return True
    if _DECIDES_OTHERWISE.search(shell_line(argv) or ""):
        return False
    return any(one.failed for runner in started if runner.tallies for one in runner.tallies(said))


def count_tests(run: CheckRun) -> CountedTests | None:
    """Return the tests that runners spoke of at their ends, whoever started them; None: none did, as far as can be told."""
    told = parse_counts(run.output_tail)
    return sum(told, CountedTests()) if told else None


def confirm_by_output(run: CheckRun, before: CheckRun) -> CheckRun:
    """Return a run on the deliverable as it is; as cut short, if the one before the work shows that its tests have not passed.

    Tests of Rust stand in the files that they test, where nobody can put them back: one that failed must not be gone.
    """
    if run.green and not run.output_tail.startswith(SHORTENED):
        failed = set(_FAILED_IN_RUST.findall(before.output_tail))
        if failed.difference(_NAMED_IN_RUST.findall(run.output_tail)):
            return replace(run, cut_short=True)
    return compare_counts(run, count_tests(before), was_green=before.green)


def compare_counts(run: CheckRun, then: CountedTests | None, *, was_green: bool) -> CheckRun:
    """Return a run as it is; as cut short, if another one of the same check shows that its tests have not passed.

    Nothing is said of them, where it was when they passed; or of no fewer that failed; or more are skipped, and fewer pass, or no more
    where some failed.

    Args:
        run: Of a check.
        then: What the other one spoke of. None: nothing.
        was_green: Whether the other one was.
    """
    now = count_tests(run)
    if now is None:
        # Some speak only of failures; and of what is not kept of an output nothing is known.
        worse = was_green and then is not None and not run.output_tail.startswith(SHORTENED)
    else:
        worse = _worse(now, then or CountedTests(), gain=0 if was_green else 1)
    return replace(run, cut_short=True) if run.green and worse else run


def _worse(now: CountedTests, then: CountedTests, gain: int) -> bool:
    if now.failed and now.failed > then.failed - gain:
        return True
    return now.skipped > then.skipped and now.passed < then.passed + gain


def _find_runners(argv: Sequence[str]) -> list[_OutputPattern]:
    """Return the known runners that a command starts, each as often as it does; none: their output may not be seen."""
    tells = _runs_go(argv)
    return [
        _RUNNERS[one.program]
        for one in find_programs(argv)
        if is_output_known(argv, one) and (tells or one.program != "go")
    ]
