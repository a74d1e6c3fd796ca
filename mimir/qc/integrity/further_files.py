"""Further files of a check: files of its recipes, and shadow modules. Pure.

A check that starts a Makefile or a shell script names neither tests nor runner; the file does, as it was before the work. The programs of
such a *recipe* define check files as if the check had started them itself.
"""

import posixpath
from collections.abc import Awaitable, Callable, Iterable, Iterator, Sequence
from dataclasses import fields, replace

from mimir.domain.evidence import CheckRun
from mimir.domain.globs import is_outside, matches
from mimir.domain.plan import Check
from mimir.qc.integrity.check_files import CheckFiles, find_check_files, says_it_tests
from mimir.qc.integrity.command_line import SHELLS, ProgramCall, find_programs

Paths = Callable[[Sequence[str]], Awaitable[Sequence[str]]]
"""Lists the paths of the tree after the work that globs match."""

_MOST = 12
"""Most files and recipes that are read for one check."""
_SECONDS = 20
_MAKE = ("make", "gmake")
_PACKAGE = "__init__.py"


async def find_all_files(
    check: Check,
    run: Callable[[Check], Awaitable[CheckRun]],
    added: Iterable[str],
    paths: Paths,
) -> CheckFiles:
    """Return all files of a check; `run` sees the tree before the work, `added` are new paths."""
    found = await expand_recipes(check, run)
    if not found.all_tests:
        return found
    # A new `tests/calc.py` replaces `calc.py` for `tests/test_calc.py`: the check must pass without it.
    candidates = [path for path in added if _may_shadow(path) and not matches(path, found.tests)]
    if not candidates:
        return found
    globs = [
        f"**/{name}{end}" for name in map(_name, candidates) for end in (".py", f"/{_PACKAGE}")
    ]
    modules = await paths([f"**/{_PACKAGE}", *globs])
    packages = frozenset(posixpath.dirname(path) for path in modules if _is_package(path))
    ours = {
        _name(path)
        for path in modules
        # A module in a package has another name: `app.calc`.
        if not says_it_tests(path) and _folder(path) not in packages
    }
    shadows = [path for path in candidates if _name(path) in ours]
    return replace(found, shadows=(*found.shadows, *shadows))


async def expand_recipes(check: Check, run: Callable[[Check], Awaitable[CheckRun]]) -> CheckFiles:
    """Return a check's files and those of its recipes; `run` sees the tree before the work."""
    found = find_check_files(check)
    if check.tests is not None:
        return found
    pending = list(dict.fromkeys(_listing_commands(check.argv)))
    for command in pending:  # grows during the loop, up to the limit
        listing = await run(replace(check, run=command, timeout_seconds=_SECONDS))
        for line in _lines(listing):
            argv = ("sh", "-c", line)
            found = _merge(found, find_check_files(replace(check, run=argv)))
            new = dict.fromkeys(_listing_commands(argv))
            pending += [one for one in new if one not in pending]
            del pending[_MOST:]
    return found


def _listing_commands(argv: Sequence[str]) -> Iterator[tuple[str, ...]]:
    """Yield commands that list what the programs of a command line will start."""
    for one in find_programs(argv):
        words = one.arguments[1:] if one.path else one.arguments
        if one.program in _MAKE:
            # `make -n` prints the recipe without executing it.
            yield (one.program, "-n", "--no-print-directory", "-C", one.below, *words)
        elif script := _script(one, words):
            # `cat` follows links, as the check does.
            yield ("cat", "--", script)


def _script(command: ProgramCall, words: Sequence[str]) -> str:
    """Return the path of the script that a shell may read; empty: none."""
    path = command.path
    if command.program in SHELLS:
        path = next((word for word in words if not word.startswith("-")), "")
    if not path:
        return ""
    path = posixpath.normpath(posixpath.join(command.below, path))
    return "" if is_outside(path) or not path.isprintable() else path


def _lines(listing: CheckRun) -> Sequence[str]:
    """Return the lines of a listing that a shell would read; empty for other scripts."""
    text = listing.output_tail.replace("\\\n", " ")
    # The first line names the interpreter: `#!/bin/sh`, `#!/usr/bin/env bash`.
    first = text.partition("\n")[0]
    names = {posixpath.basename(word) for word in first[2:].split()}
    is_shell_script = not first.startswith("#!") or not names.isdisjoint(SHELLS)
    return text.splitlines() if listing.exit_code == 0 and is_shell_script else ()


def _merge(found: CheckFiles, more: CheckFiles) -> CheckFiles:
    """Merge two; the tests of the second count as reached by the first."""
    merged = {
        one.name: tuple(dict.fromkeys((*getattr(found, one.name), *getattr(more, one.name))))
        for one in fields(CheckFiles)
        if one.name not in ("tests", "reached")
    }
    reached = tuple(dict.fromkeys((*found.reached, *more.tests, *more.reached)))
    return replace(found, reached=reached, **merged)


def _may_shadow(path: str) -> bool:
    folder = _folder(path)
    is_module = path.endswith(".py") and _name(path).isidentifier()
    # At the top of the project a module replaces nothing: it is the work.
    return is_module and folder != "" and says_it_tests(folder)


def _is_package(path: str) -> bool:
    return posixpath.basename(path) == _PACKAGE


def _folder(path: str) -> str:
    """Return the folder of a module; for a package, the folder around it."""
    folder = posixpath.dirname(path)
    return posixpath.dirname(folder) if _is_package(path) else folder


def _name(path: str) -> str:
    """Return the name under which a module is imported from its folder."""
    own = posixpath.dirname(path) if _is_package(path) else path.removesuffix(".py")
    return posixpath.basename(own)
