"""Whether a test runner came to its end. Pure.

The work runs in the process of its tests, and may end it: `os._exit(0)` leaves exit code 0 behind, and no test has spoken. Runners say
something when all is done; one that ended with 0 and did not say it was cut short. Only where it is known what would be said: a runner
that the check starts itself, whose output nothing takes away.
"""

import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

from mimir.qc.commandline import commands, shell_line

_REDIRECTS = re.compile(r"[|>`]|\$\(|(?<!&)&(?!&)")
"""What may keep a program's output from being seen, or let the line end before the program."""


@dataclass(frozen=True, slots=True, kw_only=True)
class _Runner:
    """A test runner."""

    ended: Callable[[str], bool]
    """Whether it said in its output what it says when all is done."""
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
_END_OF_UNITTEST = re.compile(r"^Ran \d+ tests? in ", re.MULTILINE)
_BEGINNING_IN_RUST = re.compile(r"^running \d+ tests?$", re.MULTILINE)
_END_IN_RUST = re.compile(r"^test result: ", re.MULTILINE)


def _in_pytest(output: str) -> bool:
    return _ENDS_OF_PYTEST.search(output) is not None


def _in_unittest(output: str) -> bool:
    return _END_OF_UNITTEST.search(output) is not None


def _in_rust(output: str) -> bool:
    """Compare how many of its programs began, and how many came to their end."""
    return len(_END_IN_RUST.findall(output)) >= len(_BEGINNING_IN_RUST.findall(output))


_PYTEST = _Runner(
    ended=_in_pytest,
    other=(
        "-h --help -V --version --co --collect-only --fixtures --funcargs --fixtures-per-test "
        "--markers --cache-show no:terminal -pno:terminal"
    ),
)
_RUNNERS: Mapping[str, _Runner] = {
    "pytest": _PYTEST,
    "py.test": _PYTEST,
    "unittest": _Runner(ended=_in_unittest, other="-h --help"),
    "cargo": _Runner(ended=_in_rust, verb="test"),
}


def is_cut_short(argv: Sequence[str], output: str) -> bool:
    """True if a test runner that a command starts has not said what it says at its end.

    Args:
        argv: The command, which ended with 0.
        output: All that it said.
    """
    if _REDIRECTS.search(shell_line(argv) or ""):
        return False
    return any(
        runner.is_meant(one.arguments) and not runner.ended(output)
        for one in commands(argv)
        if (runner := _RUNNERS.get(one.program)) is not None
    )
