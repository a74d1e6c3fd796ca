"""Discovery of the scripts that a check starts: by its text, and by trying.

A script that no text names may be started by a pattern, a pipe or another program. It is started if the check fails without it.
"""

from collections.abc import Sequence
from functools import partial
from pathlib import Path

from mimir.qc.controls import scripts, surface
from mimir.qc.controls.control_case import ControlCase
from mimir.qc.controls.scripts import Script, StartedPrograms, find_started
from mimir.qc.controls.surface import TrustedFiles
from mimir.qc.controls.variants import Variants
from mimir.qc.integrity.command_line import ProgramCall


async def find_programs(case: ControlCase, variants: Variants) -> StartedPrograms:
    """Find what the command of a check starts, with recipes as they were before the work."""
    recipes: dict[ProgramCall, Sequence[str]] = {}

    def look(checkout: Path) -> StartedPrograms:
        return find_started(case.check.argv, partial(surface.read_text, checkout), recipes)

    for _ in range(2):  # a recipe may start a build tool
        found = await variants.inspect(look)
        missing = [call for call in found.build_calls if call not in recipes]
        if not missing:
            return found
        for call in missing:
            recipes[call] = await _list_recipe(call, case, variants)
    return await variants.inspect(look)


async def _list_recipe(call: ProgramCall, case: ControlCase, variants: Variants) -> Sequence[str]:
    """Return the lines of `make -n`, which executes nothing."""
    command = (
        *(call.program, "-n", "--no-print-directory", "-C", call.below),
        *(call.arguments[1:] if call.path else call.arguments),
    )
    for tree in (case.base_tree, case.after.tree):
        listing = await variants.list_output(command, tree)
        if listing and listing.exit_code == 0:
            return listing.output_tail.replace("\\\n", " ").splitlines()
    return ()


async def find_unnamed(
    started: StartedPrograms, argv: Sequence[str], trusted: TrustedFiles, variants: Variants
) -> list[Script]:
    """Find the test scripts that a command starts, although no text names them."""
    known = {one.path for one in started.scripts}

    def look(checkout: Path) -> list[Script]:
        unnamed = surface.find_scripts(checkout, trusted)
        return [one for one in unnamed if one.path not in known][: scripts.MOST]

    async def is_started(some: Sequence[Script]) -> bool:
        def alter(checkout: Path) -> Sequence[str] | None:
            changed = [surface.mutate_started(checkout, one, argv, "replaced") for one in some]
            return argv if any(changed) else None

        return await variants.is_red(alter)

    found = await variants.inspect(look)
    if not (found and await is_started(found)):
        return []
    return [one for one in found if await is_started([one])]
