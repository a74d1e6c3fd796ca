"""Whether a test runner came to its end. Pure.

The work runs in the process of its tests, and may end it: `os._exit(0)` leaves exit code 0 behind, and no test has spoken. Runners say
something when all is done; one that ended with 0 and did not say it was cut short. Only where it is known what would be said: a runner
that the check starts itself, whose output nothing takes away.
"""

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from mimir.qc.commandline import commands, shell_line

_REDIRECTS = re.compile(r"[|>`]|\$\(|(?<!&)&(?!&)")
"""What may keep a program's output from being seen, or let the line end before the program."""


@dataclass(frozen=True, slots=True, kw_only=True)
class _Runner:
    """A test runner."""

    end: re.Pattern[str]
    """What it says when all is done."""
    other: str = ""
    """Options with which it does something else, or says nothing."""


_ENDS_OF_PYTEST = (
    r"(?:passed|failed|errors?|skipped|deselected|xfailed|xpassed|warnings?|ran)\S* in \d+\.\d+s",
    r"\[100%\]|\[(\d+)/\1\]",  # -qq
    r"^[.sxX]+\n\Z|^(?:PASSED|SKIPPED|XFAIL|XPASS) .*\n\Z",  # -qq without progress, or with -r
    r"^Results \(\d+\.\d+s\):",  # a plugin's own words
)
_PYTEST = _Runner(
    end=re.compile("|".join(_ENDS_OF_PYTEST), re.MULTILINE),
    other=(
        "-h --help -V --version --co --collect-only --fixtures --funcargs --fixtures-per-test "
        "--markers --cache-show no:terminal -pno:terminal"
    ),
)
_RUNNERS: Mapping[str, _Runner] = {
    "pytest": _PYTEST,
    "py.test": _PYTEST,
    "unittest": _Runner(end=re.compile(r"^Ran \d+ tests? in ", re.MULTILINE), other="-h --help"),
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
        not runner.end.search(output) and set(runner.other.split()).isdisjoint(one.arguments)
        for one in commands(argv)
        if (runner := _RUNNERS.get(one.program)) is not None
    )
