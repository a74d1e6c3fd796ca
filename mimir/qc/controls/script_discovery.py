"""Discovery of the scripts that a check starts: by its text, and by trying.

A script that no text names may be started by a pattern, a pipe or another program. It is started if the check fails without it.
"""

from collections.abc import Awaitable, Callable, Sequence
from functools import partial
from pathlib import Path

from mimir.domain.evidence import CheckRun
from mimir.qc.controls import scripts, surface
from mimir.qc.controls.scripts import Script, StartedPrograms, find_started
from mimir.qc.controls.surface import TrustedFiles
from mimir.qc.integrity.command_line import ProgramCall

Alter = Callable[[Path], Sequence[str] | None]
"""Changes a checkout and returns the command to run there; None: nothing is to run."""
Try = Callable[[Alter], Awaitable[bool]]
"""Tells whether a variant of the deliverable turns the check red."""
Look = Callable[[Alter, str], Awaitable[CheckRun | None]]
"""Looks at a tree; None: nothing was to run there."""


class ScriptDiscovery:
    """Discovery of the scripts of one check."""

    def __init__(
        self,
        argv: Sequence[str],
        trees: tuple[str, str],
        trusted: TrustedFiles,
        look: Look,
        is_red: Try,
    ) -> None:
        """Bind the discovery to a command, base and deliverable, and the files that may test."""
        self._argv = argv
        self._base, self._tree = trees
        self._trusted = trusted
        self._look = look
        self._is_red = is_red

    async def find_started(self) -> StartedPrograms:
        """Find the programs of the command, with recipes as they were before the work."""
        recipes: dict[ProgramCall, Sequence[str]] = {}
        found = StartedPrograms()
        for _ in range(3):  # a recipe may start a build tool
            missing: dict[ProgramCall, None] = {}

            def recipe(call: ProgramCall, missing: dict[ProgramCall, None] = missing) -> Sequence[str]:  # fmt: skip
                if call not in recipes:
                    missing[call] = None
                return recipes.get(call, ())

            def look(checkout: Path, recipe: Callable[[ProgramCall], Sequence[str]] = recipe) -> None:  # fmt: skip
                nonlocal found
                found = find_started(self._argv, partial(surface.read_text, checkout), recipe)

            await self._look(look, self._tree)
            if not missing:
                break
            for call in missing:
                recipes[call] = await self._recipe(call)
        return found

    async def _recipe(self, call: ProgramCall) -> Sequence[str]:
        """Return the lines of `make -n`, which executes nothing."""
        command = (
            *(call.program, "-n", "--no-print-directory", "-C", call.below),
            *(call.arguments[1:] if call.path else call.arguments),
        )
        for tree in (self._base, self._tree):
            listing = await self._look(lambda _: command, tree)
            if listing and listing.exit_code == 0:
                return listing.output_tail.replace("\\\n", " ").splitlines()
        return ()

    async def find_unnamed(self, started: StartedPrograms) -> list[Script]:
        """Find the test scripts that the check starts, although no text names them."""
        known = {one.path for one in started.scripts}
        found: list[Script] = []

        def look(checkout: Path) -> None:
            unnamed = surface.find_scripts(checkout, self._trusted)
            found[:] = [one for one in unnamed if one.path not in known][: scripts.MOST]

        await self._look(look, self._tree)
        if not (found and await self._is_started(found)):
            return []
        return [one for one in found if await self._is_started([one])]

    async def _is_started(self, some: Sequence[Script]) -> bool:
        def alter(checkout: Path) -> Sequence[str] | None:
            changed = [
                surface.mutate_scripts(checkout, one, self._argv, "replaced") for one in some
            ]
            return self._argv if any(changed) else None

        return await self._is_red(alter)
