"""Discovery of the scripts that a check starts: by its text, and by trying.

A script that no text names may be started by a pattern, a pipe or another program. It is started if the check fails without it.
"""

from collections.abc import Awaitable, Callable, Sequence
from functools import partial
from pathlib import Path
from typing import TypeVar

from mimir.qc.controls import scripts, surface
from mimir.qc.controls.continuation import Alter, Execute
from mimir.qc.controls.control_case import ControlCase
from mimir.qc.controls.scripts import Script, StartedPrograms, find_started
from mimir.qc.controls.surface import TrustedFiles
from mimir.qc.integrity.command_line import ProgramCall

_LISTING_SECONDS = 20.0
_Found = TypeVar("_Found")


async def inspect(execute: Execute, tree: str, look: Callable[[Path], _Found]) -> _Found:
    """Return what a function finds in a checkout of a tree, where no command runs."""
    found: list[_Found] = []
    await execute(tree, lambda checkout: found.append(look(checkout)), _LISTING_SECONDS)
    return found[0]


class ScriptDiscovery:
    """Discovery of the scripts of one check."""

    def __init__(
        self,
        case: ControlCase,
        trusted: TrustedFiles,
        execute: Execute,
        is_red: Callable[[Alter], Awaitable[bool]],
    ) -> None:
        """Bind the discovery; `is_red` runs a variant of the deliverable."""
        self._argv = case.check.argv
        self._trees = (case.base_tree, case.after.tree)
        self._trusted = trusted
        self._execute = execute
        self._is_red = is_red

    async def find_started(self) -> StartedPrograms:
        """Find the programs of the command, with recipes as they were before the work."""
        recipes: dict[ProgramCall, Sequence[str]] = {}

        def look(checkout: Path) -> StartedPrograms:
            return find_started(self._argv, partial(surface.read_text, checkout), recipes)

        for _ in range(2):  # a recipe may start a build tool
            found = await inspect(self._execute, self._trees[1], look)
            missing = [call for call in found.build_calls if call not in recipes]
            if not missing:
                return found
            for call in missing:
                recipes[call] = await self._recipe(call)
        return await inspect(self._execute, self._trees[1], look)

    async def _recipe(self, call: ProgramCall) -> Sequence[str]:
        """Return the lines of `make -n`, which executes nothing."""
        command = (
            *(call.program, "-n", "--no-print-directory", "-C", call.below),
            *(call.arguments[1:] if call.path else call.arguments),
        )
        for tree in self._trees:
            listing = await self._execute(tree, lambda _: command, _LISTING_SECONDS)
            if listing and listing.exit_code == 0:
                return listing.output_tail.replace("\\\n", " ").splitlines()
        return ()

    async def find_unnamed(self, started: StartedPrograms) -> list[Script]:
        """Find the test scripts that the check starts, although no text names them."""
        known = {one.path for one in started.scripts}

        def look(checkout: Path) -> list[Script]:
            unnamed = surface.find_scripts(checkout, self._trusted)
            return [one for one in unnamed if one.path not in known][: scripts.MOST]

        found = await inspect(self._execute, self._trees[1], look)
        if not (found and await self._is_started(found)):
            return []
        return [one for one in found if await self._is_started([one])]

    async def _is_started(self, some: Sequence[Script]) -> bool:
        def alter(checkout: Path) -> Sequence[str] | None:
            changed = [
                surface.mutate_started(checkout, one, self._argv, "replaced") for one in some
            ]
            return self._argv if any(changed) else None

        return await self._is_red(alter)
