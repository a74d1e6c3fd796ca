"""New Python modules that stand in for the project's own, where its tests lie: Python looks beside a program before it looks anywhere else.

`tests/calc.py` is what `tests/test_calc.py` imports, whatever `calc.py` beside `tests/` says. It is treated as a new module of a runner's is
(`CheckFiles.shadows`): the check must pass without it, too, unless the task's `files` name it.
"""

import posixpath
from collections.abc import Awaitable, Callable, Iterable, Sequence
from dataclasses import replace

from mimir.domain.globs import matches
from mimir.qc.integrity.check_files import CheckFiles, says_it_tests

_PACKAGE = "__init__.py"

Paths = Callable[[str, Sequence[str]], Awaitable[Sequence[str]]]
"""Lists the paths of a tree that globs name."""


async def add_shadow_modules(
    found: CheckFiles, added: Iterable[str], tree: str, paths: Paths
) -> CheckFiles:
    """Return which files make up a check, with the new modules that would be taken for others.

    Args:
        found: Of the check.
        added: New files of a deliverable.
        tree: The deliverable's.
        paths: Lists its files.
    """
    if not found.all_tests:
        return found
    may = [path for path in added if _may_shadow(path) and not matches(path, found.tests)]
    if not may:
        return found
    modules = await paths(tree, [f"**/{_PACKAGE}", *(g for one in may for g in _globs(_name(one)))])
    packages = frozenset(posixpath.dirname(path) for path in modules if _is_package(path))
    ours = {
        _name(path)
        for path in modules
        # Below a package it has another name: `app.calc`.
        if not says_it_tests(path) and _folder(path) not in packages
    }
    stand_ins = [path for path in may if _name(path) in ours]
    return replace(found, shadows=(*found.shadows, *stand_ins))


def _may_shadow(path: str) -> bool:
    folder = _folder(path)
    is_module = path.endswith(".py") and _name(path).isidentifier()
    return is_module and folder != "" and says_it_tests(folder)


def _is_package(path: str) -> bool:
    return posixpath.basename(path) == _PACKAGE


def _folder(path: str) -> str:
    """Return where a module lies; of a package, where its folder does."""
    folder = posixpath.dirname(path)
    return posixpath.dirname(folder) if _is_package(path) else folder


def _name(path: str) -> str:
    """Return by which name a module is imported from its folder."""
    own = posixpath.dirname(path) if _is_package(path) else path.removesuffix(".py")
    return posixpath.basename(own)


def _globs(name: str) -> tuple[str, str]:
    return f"**/{name}.py", f"**/{name}/{_PACKAGE}"
