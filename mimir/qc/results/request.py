"""Request of a structured report from the test runners that a command starts. Pure.

The environment carries it, so it passes through `make`, `npm` and scripts. A command that names a known runner must bring a report;
for another program a report is used if there is one.
"""

import re
from collections.abc import Mapping, Sequence, Set

from mimir.domain.value_class import value_class
from mimir.qc.integrity.command_line import ProgramCall, find_programs
from mimir.qc.integrity.test_runners import TEST_VERBS
from mimir.qc.results.reporters import programs

WORKSPACE = "/workspace"
"""Path of the checkout inside the sandbox; it replaces real paths in outputs."""
FOLDER = "/mimir/results"
"""Path of the reports inside the sandbox."""
REPORTERS = "/mimir/reporters"
PROGRAMS = "/mimir/programs"
"""Folder before all others in the search path, with `STARTED`."""
STARTED = ("go", "cargo", "ctest")
"""Programs that `reporters/programs.py` starts in their place."""
STARTER = (
    '#!/bin/sh\nexec "${MIMIR_PYTHON:-python3}" -I '
    f'"${{MIMIR_REPORTERS:-{REPORTERS}}}/programs.py" "$0" "$@"\n'
)
"""Text of such a program."""

_PYTHON_PATH = re.compile(r"\bPYTHONPATH=")
_NO_TEST_RUN: Mapping[str, Set[str]] = {
    "pytest": frozenset(
        (
            *("-h", "--help", "-V", "--version", "--fixtures", "--funcargs"),
            *("--fixtures-per-test", "--markers", "--cache-show", "--setup-plan"),
        )
    ),
    "unittest": frozenset(("-h", "--help")),
    **programs.NO_TEST_RUN,
    # Its report has another form.
    "cargo": programs.NO_TEST_RUN["cargo"] | {"nextest"},
}
"""Options with which a runner runs no tests, or reports them itself."""
_LISTING = frozenset(
    ("--co", "--collect-only", "--listTests", "--no-run", "-list", "--list", "-N", "--show-only")
)
"""Options with which a runner loads tests, and runs none."""
_ALWAYS = frozenset(("pytest", "py.test", "unittest", "node --test", "vitest", "jest", "ctest"))
_ISOLATED = re.compile(r"-[bBdOqsuvx]*[EIS]")
"""Options with which Python ignores the environment or its start module."""


@value_class
class ReportRequest:
    """What the engine asks of a command, and expects of it."""

    argv: tuple[str, ...]
    environment: Mapping[str, str]
    first: Mapping[str, str]
    """Values to put before those of variables that hold lists."""
    expected: tuple[str, ...] = ()
    """Runners that the command names, one of which must report; empty: no report is required."""
    fallback: str = ""
    """Why the report of a named runner cannot be required."""


def request_report(argv: Sequence[str], python: str) -> ReportRequest:
    """Return a command with its request; `python` is the engine's interpreter."""
    expected = tuple(dict.fromkeys(one.program for one in find_programs(argv) if _runs_tests(one)))
    fallback = ""
    if expected and _hides_environment(argv):
        fallback = f"The command hides the engine's environment from {expected[0]}, so the exit code decides."
    return ReportRequest(
        # A command that sets PYTHONPATH would hide the reporters.
        argv=tuple(_PYTHON_PATH.sub(f"PYTHONPATH={REPORTERS}:", word) for word in argv),
        environment={
            # Listed tests never run, so each of them would count as missing.
            "MIMIR_RESULTS": "" if lists_tests(argv) else FOLDER,
            "MIMIR_WORKSPACE": WORKSPACE,
            "MIMIR_REPORTERS": REPORTERS,
            "MIMIR_PYTHON": python,
            "GTEST_OUTPUT": f"xml:{FOLDER}/",
        },
        first={
            "PATH": PROGRAMS,
            "PYTHONPATH": REPORTERS,
            "NODE_OPTIONS": f"--require={REPORTERS}/node_start.cjs",
        },
        expected=() if fallback else expected,
        fallback=fallback,
    )


def reads_folder(expected: Sequence[str]) -> bool:
    """True if a runner writes JUnit files into the checkout itself."""
    return not {"mvn", "gradle"}.isdisjoint(expected)


def lists_tests(argv: Sequence[str]) -> bool:
    """True if a command starts known runners only to list tests, or to compile them."""
    runners = [one for one in find_programs(argv) if _is_runner(one)]
    return bool(runners) and not any(_LISTING.isdisjoint(one.arguments) for one in runners)


def _runs_tests(one: ProgramCall) -> bool:
    other = _LISTING | _NO_TEST_RUN.get(one.program, frozenset())
    # The search path does not lead to a program that is named by its path.
    is_hidden = one.program in STARTED and one.path
    return _is_runner(one) and other.isdisjoint(one.arguments) and not is_hidden


def _is_runner(one: ProgramCall) -> bool:
    verbs = TEST_VERBS.get(one.program)
    return one.program in _ALWAYS if verbs is None else not verbs.isdisjoint(one.arguments)


def _hides_environment(argv: Sequence[str]) -> bool:
    words = [word for text in argv for word in text.split()]
    return any(_ISOLATED.fullmatch(word) for word in words) or (
        "env" in words and ("-i" in words or "-" in words)
    )
