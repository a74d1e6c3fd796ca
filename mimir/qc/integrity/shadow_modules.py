"""New Python modules in test folders that replace the project's own. Pure.

`tests/test_calc.py` imports `tests/calc.py` even if `calc.py` lies next to `tests/`. Such a module counts as a new module of a runner does
(`CheckFiles.shadows`): the check must pass without it, unless the task's `files` name it.
"""

import posixpath
from collections.abc import Awaitable, Callable, Iterable, Sequence
from dataclasses import replace

from mimir.domain.globs import matches
from mimir.qc.integrity.check_files import CheckFiles, says_it_tests

_PACKAGE = "__init__.py"

Paths = Callable[[str, Sequence[str]], Awaitable[Sequence[str]]]
"""Lists the paths of a tree that globs match."""


async def add_shadow_modules(
    found: CheckFiles, added: Iterable[str], tree: str, paths: Paths
) -> CheckFiles:
    """Add the new modules that would be imported in place of others."""
    if not found.all_tests:
        return found
    candidates = [path for path in added if _may_shadow(path) and not matches(path, found.tests)]
    if not candidates:
        return found
    modules = await paths(
        tree, [f"**/{_PACKAGE}", *(g for one in candidates for g in _globs(_name(one)))]
    )
    packages = frozenset(posixpath.dirname(path) for path in modules if _is_package(path))
    ours = {
        _name(path)
        for path in modules
        # A module in a package has another name: `app.calc`.
        if not says_it_tests(path) and _folder(path) not in packages
    }
    shadows = [path for path in candidates if _name(path) in ours]
    return replace(found, shadows=(*found.shadows, *shadows))


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


def _globs(name: str) -> tuple[str, str]:
    return f"**/{name}.py", f"**/{name}/{_PACKAGE}"
