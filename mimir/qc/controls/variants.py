"""Variants of a check: runs of its command on altered checkouts.

If a step before the tests, such as a linter, refuses a variant, all steps run once more: single tests decide, and not the exit code.
"""

import contextlib
import json
import re
import shlex
from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import TypeVar

from mimir.domain.evidence import CheckRun
from mimir.domain.json_value import as_object
from mimir.qc.controls import decision, surface
from mimir.qc.controls.control_case import ControlCase
from mimir.qc.integrity.command_line import shell_line

_STYLE = (
    *("checkstyle", "spotless.check", "spotless.apply", "fmt", "formatter", "impsort"),
    *("pmd", "cpd", "spotbugs", "license", "rat", "forbiddenapis"),
)
"""Checks of the text of sources that Maven runs before the tests, and ends with."""
_IGNORE: Mapping[str, str] = {
    "MAKEFLAGS": "i",
    "MAVEN_OPTS": " ".join(f"-D{name}.skip=true" for name in _STYLE),
}
"""Lets make run all lines of its recipes, and Maven no checks of style."""
_STOPS = re.compile(r"^(\s*)set -\w*e\w*", re.MULTILINE)
_LISTING_SECONDS = 20.0
_Found = TypeVar("_Found")

Alter = Callable[[Path], Sequence[str] | None]
"""Changes a checkout and returns the command to run there; None: nothing is to run."""
Execute = Callable[[str, Alter, float], Awaitable[CheckRun | None]]
"""Runs an altered checkout of a tree for some seconds; None: nothing was to run."""


class Variants:
    """Variants of the check of one control."""

    def __init__(self, case: ControlCase, execute: Execute) -> None:
        self._green = case.after
        self._execute = execute
        self.limit = decision.time_limit(case.after, case.check.timeout_seconds)
        """Seconds of a run."""
        self.count = 0
        """Runs until now."""

    async def run(self, alter: Alter, tree: str | None = None) -> CheckRun | None:
        """Run a variant of a tree, or of the deliverable; None: nothing was to run."""
        tree = self._green.tree if tree is None else tree
        run = await self._execute(tree, alter, self.limit) if tree else None
        if run is not None and decision.ends_before_tests(self._green, run):
            whole = await self._execute(tree, continue_after_failures(alter), self.limit)
            run = replace(whole, exit_code=whole.exit_code or run.exit_code) if whole else run
        self.count += run is not None
        return run

    async def is_red(self, alter: Alter) -> bool:
        """Return whether a variant of the deliverable turns the check red."""
        return decision.is_red(await self.run(alter))

    async def list_output(self, command: Sequence[str], tree: str) -> CheckRun | None:
        """Run a command that lists something, in place of the check."""
        return await self._execute(tree, lambda _: command, _LISTING_SECONDS)

    async def inspect(self, look: Callable[[Path], _Found]) -> _Found:
        """Return what a function finds in the deliverable, where no command runs."""
        found: list[_Found] = []
        await self._execute(self._green.tree, lambda at: found.append(look(at)), _LISTING_SECONDS)
        return found[0]


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
            return ("env", *(f"{name}={value}" for name, value in _IGNORE.items()), *argv)
        settings = " ".join(f"{name}={shlex.quote(value)}" for name, value in _IGNORE.items())
        return (*argv[:-1], f"export {settings}; {_split_steps(line)}")

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
