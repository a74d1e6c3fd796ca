"""Write scope: which paths a task may change, and the rule that refuses a change. Pure.

A check is evidence only if the work cannot change what the check means. So the files that decide this are outside of every task, unless
its `files` name that very file: tests, files that configure a test runner, build tool or package manager, files that these load, and new
modules that hide others. The file tools, the deliverable and the trees of checks follow the same decision.
"""

import posixpath
import re
from collections.abc import Container, Iterator

from mimir.domain.globs import matches
from mimir.domain.plan import Task
from mimir.domain.value_class import value_class
from mimir.qc.integrity import test_runners
from mimir.qc.integrity.check_files import is_declared_file, is_named
from mimir.qc.scope.check_surface import CheckSurface
from mimir.qc.scope.loaded_files import is_loaded, is_makefile

_PACKAGE = "__init__.py"
_Refused = tuple[str, str]
"""Rule and reason of a refusal."""
_INSTALLED: _Refused = ("config", "belongs to an installed package.")
_PACKAGE_FOLDER = re.compile(r"(?:.*/)?(?:node_modules/(?:@[^/]+/)?|site-packages/)[^/]+(?=/|$)")
_RESOLVED = ("mjs", "js", "cjs", "mts", "cts", "jsx", "ts", "tsx", "json", "node")
"""Endings in the order in which an import without one finds its file."""
_SOURCES = frozenset(("sh", "c", "cc", "C", "cpp", "p", "f", "F", "m", "r", "s", "S", "o", "mod"))
"""Endings of files from which make builds a file without one."""
_PLAIN = ("mjs", "js", "cjs")
_TYPED = ("mts", "cts", "jsx", "ts", "tsx")
_LOADED: _Refused = ("loaded", "is loaded by the project's build or test settings.")


@value_class
class WriteRefusal:
    """Refusal of a change, with the rule that refuses it."""

    rule: str
    """`files`, `owner`, `test`, `config`, `loaded`, `target`, `package` or `shadow`."""
    reason: str
    """End of a sentence about the path."""

    def message(self, path: str) -> str:
        """Return the finding about a path."""
        return f"{path!r} is not in the deliverable: it {self.reason} The task's `files` do not name it."


NOTHING: frozenset[str] = frozenset()


def refuse_write(
    path: str, task: Task, surface: CheckSurface, gone: Container[str] = NOTHING
) -> WriteRefusal | None:
    """Return the rule that refuses a change of a path by a task; None: it is permitted.

    `gone` are paths of the base that the attempt deleted.
    """
    if is_named(path, task.files):
        return None
    if task.files and not matches(path, task.files):
        return WriteRefusal(rule="files", reason="is outside of the task's files.")
    rules = _change_rules if path in surface.paths and path not in gone else _creation_rules
    found = next(rules(path, task, surface, gone), None)
    return WriteRefusal(rule=found[0], reason=found[1]) if found else None


def _change_rules(
    path: str, task: Task, surface: CheckSurface, gone: Container[str]
) -> Iterator[_Refused]:
    """Yield the rules that refuse a change or deletion of a file of the base."""
    owners = ", ".join(surface.owners.owners_of(path, in_base=True))
    if surface.is_test(path):
        yield ("owner", f"is a test of {owners}.") if owners else ("test", "is an existing test.")
    elif surface.is_beside_tests(path):
        yield "test", "is an existing file next to tests."
    if surface.configures(path) and not is_declared_file(path, task.files):
        yield "config", "configures a test runner, build tool, linter or package manager."
    if is_loaded(path, surface.loaded):
        yield _LOADED
    if _package_of(path):
        yield _INSTALLED


def _creation_rules(
    path: str, task: Task, surface: CheckSurface, gone: Container[str]
) -> Iterator[_Refused]:
    """Yield the rules that refuse a new file."""
    if surface.is_test(path) and not surface.owners.may_create(task.id, path):
        owners = ", ".join(surface.owners.owners_of(path, in_base=False))
        yield "owner", f"is a test of {owners}."
    if is_loaded(path, surface.loaded):
        yield _LOADED
    if any(path == target or path.startswith(f"{target}/") for target in surface.targets):
        yield "target", "has the name of a make target, so that make would not run its recipe."
    if _remakes(path, surface):
        yield "target", "would be made into an existing file by make."
    if _bypasses(path, surface) and not is_declared_file(path, task.files):
        yield "config", "is a new setting of a tool that existing tests or build files use."
    folder, name = posixpath.split(path)
    if name == _PACKAGE and folder in surface.test_folders:
        yield "package", "would be imported with the existing tests."
    if _package_of(path) in surface.folders - {""}:
        yield _INSTALLED
    hidden = surface.roots.hidden_by(path, gone) or _replaced_by(path, surface, gone)
    if hidden := hidden or _preceded_by(path, task, surface, gone):
        yield "shadow", f"would hide {hidden}."


def _remakes(path: str, surface: CheckSurface) -> bool:
    """True if an implicit rule of make writes an existing file: `Makefile` from `Makefile.sh`."""
    stem, _, ending = path.rpartition(".")
    return ending in _SOURCES and stem in surface.paths and any(map(is_makefile, surface.paths))


def _bypasses(path: str, surface: CheckSurface) -> bool:
    """True if a setting affects tests or judged files, or is next to a build file."""
    # A new `tests/conftest.py` decides about the tests below it, `GNUmakefile` replaces a `Makefile`.
    is_above_tests = posixpath.dirname(path) in surface.test_folders and surface.configures(path)
    # Test runners of Java find their plug-ins anywhere on the class path.
    is_rule = matches(path, (*surface.rules, *test_runners.CONFIG["junit"]))
    return is_above_tests or is_rule or surface.is_beside_build_file(path)


def _package_of(path: str) -> str:
    """Return the folder of the installed package that a file belongs to; empty: to none."""
    found = _PACKAGE_FOLDER.match(path)
    return found[0] if found else ""


def _preceded_by(path: str, task: Task, surface: CheckSurface, gone: Container[str]) -> str:
    """Return the file that a new module of JavaScript hides.

    Only a runner finds a script before its typed source; builds do not. Of other files, those count that the task may not change.
    """
    stem, _, ending = path.rpartition(".")
    if ending not in _RESOLVED:
        return ""
    later = [f"{stem}.{other}" for other in _RESOLVED[_RESOLVED.index(ending) + 1 :]]
    for other in (*later, *(f"{stem}/index.{ending}" for ending in _RESOLVED)):
        is_typed = ending in _PLAIN and other.rpartition(".")[2] in _TYPED
        if other in surface.paths and other not in gone and (is_typed or any(_change_rules(other, task, surface, gone))):  # fmt: skip
            return f"the existing file {other!r}"
    return ""


def _replaced_by(path: str, surface: CheckSurface, gone: Container[str]) -> str:
    """Return a file of the base that a new path replaces, or whose folder it replaces."""
    parents = (path[:at] for at, sign in enumerate(path) if sign == "/")
    below = (one for one in surface.paths if path in surface.folders and one.startswith(f"{path}/"))
    for one in (*parents, *below):
        if one in surface.paths and one not in gone:
            return f"the existing file {one!r}"
    return ""
