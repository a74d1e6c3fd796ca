"""What a check starts by files of the project: the recipe that `make` follows, the lines of a shell script.

The check names neither the tests nor the runner then; the file does, as it was before the work. What it starts makes up the check as if the
check had started it itself: `find_check_files`.
"""

import posixpath
from collections.abc import Awaitable, Callable, Iterator, Sequence
from dataclasses import fields, replace

from mimir.domain.evidence import CheckRun
from mimir.domain.globs import is_outside
from mimir.domain.plan import Check
from mimir.qc.integrity.check_files import CheckFiles, find_check_files
from mimir.qc.integrity.command_line import SHELLS, ProgramCall, find_programs

_MOST = 12
"""Files and recipes that are read for one check."""
_SECONDS = 20
_MAKE = ("make", "gmake")


async def expand_recipes(check: Check, run: Callable[[Check], Awaitable[CheckRun]]) -> CheckFiles:
    """Return which files make up a check, with those of what it starts by files of the project.

    Args:
        check: The check; where its plan lists its tests, these are all.
        run: Runs a command where these files are as they were before the work.
    """
    found = find_check_files(check)
    if check.tests is not None:
        return found
    asked = list(dict.fromkeys(_listing_commands(check.argv)))
    for question in asked:  # grows by what the answers lead to
        said = await run(replace(check, run=question, timeout_seconds=_SECONDS))
        for line in _lines(said):
            argv = ("sh", "-c", line)
            found = _merge(found, find_check_files(replace(check, run=argv)))
            asked += [one for one in dict.fromkeys(_listing_commands(argv)) if one not in asked]
            del asked[_MOST:]
    return found


def _listing_commands(argv: Sequence[str]) -> Iterator[tuple[str, ...]]:
    """Yield commands that say what programs of a command line will start."""
    for one in find_programs(argv):
        words = one.arguments[1:] if one.path else one.arguments
        if one.program in _MAKE:
            yield (one.program, "-n", "--no-print-directory", "-C", one.below, *words)
        elif script := _script(one, words):
            # By a program: links are followed, as the check follows them.
            yield ("cat", "--", script)


def _script(command: ProgramCall, words: Sequence[str]) -> str:
    """Return the path of the file whose lines a shell may read; empty: there is none."""
    path = command.path
    if command.program in SHELLS:
        path = next((word for word in words if not word.startswith("-")), "")
    if not path:
        return ""
    path = posixpath.normpath(posixpath.join(command.below, path))
    return "" if is_outside(path) or not path.isprintable() else path


def _lines(said: CheckRun) -> Sequence[str]:
    """Return the lines that a shell would read; none of what is no shell's."""
    text = said.output_tail.replace("\\\n", " ")
    first = text.partition("\n")[0]
    names = {posixpath.basename(word) for word in first[2:].split()}
    is_of_shell = not first.startswith("#!") or not names.isdisjoint(SHELLS)
    return text.splitlines() if said.exit_code == 0 and is_of_shell else ()


def _merge(found: CheckFiles, more: CheckFiles) -> CheckFiles:
    """Join two: tests of the second are such as the first reaches."""
    both = {
        one.name: tuple(dict.fromkeys((*getattr(found, one.name), *getattr(more, one.name))))
        for one in fields(CheckFiles)
        if one.name not in ("tests", "reached")
    }
    reached = tuple(dict.fromkeys((*found.reached, *more.tests, *more.reached)))
    return replace(found, reached=reached, **both)
