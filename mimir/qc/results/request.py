"""Request of a structured report from the test runners that a command starts. Pure.

The environment carries it, so it passes through `make`, `npm` and scripts. A command that names a known runner must bring a report;
behind another program a report is used if there is one.
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
            *("-h", "--help", "-V", "--version", "--co", "--collect-only", "--fixtures"),
            *("--funcargs", "--fixtures-per-test", "--markers", "--cache-show", "--setup-plan"),
        )
    ),
    "unittest": frozenset(("-h", "--help")),
    **programs.NO_TEST_RUN,
    # Its report has another form.
    "cargo": programs.NO_TEST_RUN["cargo"] | {"nextest"},
}
"""Options with which a runner runs no tests, or reports them itself."""
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
    calls = find_programs(argv)
    expected = tuple(dict.fromkeys(one.program for one in calls if _runs_tests(one)))
    fallback = ""
    if expected and _hides_environment(argv):
        fallback = f"The command hides the engine's environment from {expected[0]}, so the exit code decides."
    return ReportRequest(
        # A command that sets PYTHONPATH would hide the reporters.
        argv=tuple(_PYTHON_PATH.sub(f"PYTHONPATH={REPORTERS}:", word) for word in argv),
        environment={
            "MIMIR_RESULTS": FOLDER,
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


def _runs_tests(one: ProgramCall) -> bool:
    verbs = TEST_VERBS.get(one.program)
    if verbs is None and one.program not in _ALWAYS:
        return False
    if not _NO_TEST_RUN.get(one.program, frozenset()).isdisjoint(one.arguments):
        return False
    # The search path does not lead to a program that is named by its path.
    if one.program in STARTED and one.path:
        return False
    return verbs is None or not verbs.isdisjoint(one.arguments)


def _hides_environment(argv: Sequence[str]) -> bool:
    words = [word for text in argv for word in text.split()]
    return any(_ISOLATED.fullmatch(word) for word in words) or (
        "env" in words and ("-i" in words or "-" in words)
    )
