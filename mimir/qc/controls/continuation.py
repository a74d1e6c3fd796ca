"""Continuation of a check after a failing step, such as a linter before tests.

It serves controls that know single tests: those decide, and not the exit code.
"""

import contextlib
import json
import re
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import replace
from pathlib import Path

from mimir.domain.evidence import CheckRun
from mimir.domain.json_value import as_object
from mimir.qc.controls import surface
from mimir.qc.controls.decision import ends_before_tests
from mimir.qc.integrity.command_line import shell_line

_IGNORE = "MAKEFLAGS=i"
"""Lets make run all lines of its recipes."""
_STOPS = re.compile(r"^(\s*)set -\w*e\w*", re.MULTILINE)

Alter = Callable[[Path], Sequence[str] | None]
"""Changes a checkout and returns the command to run there; None: nothing is to run."""
Execute = Callable[[str, Alter, float], Awaitable[CheckRun | None]]
"""Runs an altered checkout of a tree for some seconds; None: nothing was to run."""


def reach_tests(execute: Execute, green: CheckRun) -> Execute:
    """Return an executor whose variants of a green run continue until their tests ran."""

    async def execute_all(tree: str, alter: Alter, seconds: float) -> CheckRun | None:
        run = await execute(tree, alter, seconds)
        if run is None or not ends_before_tests(green, run):
            return run
        whole = await execute(tree, continue_after_failures(alter), seconds)
        return replace(whole, exit_code=whole.exit_code or run.exit_code) if whole else run

    return execute_all


def continue_after_failures(alter: Alter) -> Alter:
    """Return a change of a checkout that also lets the command run all of its steps."""

    def alter_all(checkout: Path) -> Sequence[str] | None:
        argv = alter(checkout)
        if argv is None:
            return None
        # Files that cannot be read or written keep their steps.
        with contextlib.suppress(OSError, ValueError):
            _continue_files(checkout)
        line = shell_line(argv)
        if line is None or argv[-1] != line:
            return ("env", _IGNORE, *argv)
        return (*argv[:-1], f"export {_IGNORE}; {_split_steps(line)}")

    return alter_all


def _continue_files(checkout: Path) -> None:
    if package := surface.read_text(checkout, "package.json"):
        content = dict(as_object(json.loads(package)))
        content["scripts"] = {
            name: f"{_split_steps(str(step))}{' ; true' if name.startswith('pre') else ''}"
            for name, step in as_object(content.get("scripts")).items()
        }
        surface.write_text(checkout, "package.json", json.dumps(content, indent=2))
    for script in (*checkout.glob("*.sh"), *checkout.glob("*/*.sh")):
        path = script.relative_to(checkout).as_posix()
        if text := surface.read_text(checkout, path):
            surface.write_text(checkout, path, _split_steps(text))


def _split_steps(text: str) -> str:
    return _STOPS.sub(r"\1set +e", text.replace("&&", ";"))
