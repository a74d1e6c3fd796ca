"""Modules of the library, of packages and of the project that a new file hides. Pure.

Python imports the first module of a name on its path. A new file in a folder of that path therefore replaces a module that a test or
its runner imports.
"""

import posixpath
import sys
from collections.abc import Collection, Container, Iterable, Iterator

from mimir.domain.value_class import value_class
from mimir.qc.integrity.check_files import says_it_tests

_ENDINGS = (".py", ".pyc", ".so", ".pyd")
_PACKAGE = "__init__"
_STARTED = frozenset(("sitecustomize", "usercustomize"))
"""Modules that Python imports at its start, if they exist."""
_USUAL_ROOTS = ("", "src", "lib")


@value_class
class ImportRoots:
    """Folders from which a project's Python imports, and the modules in them."""

    folders: frozenset[str]
    modules: frozenset[tuple[str, str]]
    """(folder, name) of each module and package of the base."""
    installed: Collection[str] = ()
    """Top-level modules of installed packages."""

    def module_at(self, path: str) -> str:
        """Return the top-level name under which a file is imported; empty: it is no such module."""
        folder, name = _place_of(path)
        return name if folder in self.folders else ""

    def hidden_by(self, path: str, gone: Container[str] = ()) -> str:
        """Describe the module that a new file hides; empty: it hides none.

        `gone` are paths of the base that do not exist any more.
        """
        if _has_metadata(path, self.folders):
            return "the installed packages, in whose metadata tools find their plug-ins"
        name = self.module_at(path)
        if not name:
            return ""
        if name in _STARTED:
            return f"{name!r}, which Python imports at its start"
        for root in sorted(self.folders):
            is_gone = any(path in gone for path in _files_of(root, name))
            if (root, name) in self.modules and not is_gone:
                return f"the project's module {posixpath.join(root, name)!r}"
        if name in sys.stdlib_module_names:
            return f"the standard library's module {name!r}"
        if name in self.installed and not says_it_tests(name):
            return f"the installed module {name!r}"
        return ""


def find_import_roots(
    base: Iterable[str], tests: Iterable[str], scripts: Iterable[str]
) -> ImportRoots:
    """Return the import roots of a base, and of the scripts that checks start.

    Runners import test files from the first folder that is no package.
    """
    paths = frozenset(path for path in base if path.endswith(_ENDINGS))
    packages = {posixpath.dirname(path) for path in paths if _stem(path) == _PACKAGE}
    folders: set[str] = {*_USUAL_ROOTS, *(posixpath.dirname(script) for script in scripts)}
    for path in tests:
        folder: str = posixpath.dirname(path)
        while folder in packages:
            folder = posixpath.dirname(folder)
        folders.add(folder)
    places = [_place_of(path) for path in paths]
    return ImportRoots(
        folders=frozenset(folders),
        modules=frozenset((folder, name) for folder, name in places if name),
    )


def _has_metadata(path: str, folders: Collection[str]) -> bool:
    """True for a file in `NAME.dist-info` of an import root."""
    parts = path.split("/")
    return any(
        part.endswith((".dist-info", ".egg-info")) and "/".join(parts[:at]) in folders
        for at, part in enumerate(parts)
    )


def _files_of(folder: str, name: str) -> Iterator[str]:
    for path in (name, f"{name}/{_PACKAGE}"):
        yield from (posixpath.join(folder, f"{path}{ending}") for ending in _ENDINGS)


def name_module(path: str) -> str:
    """Return the name under which a file is imported from its folder; empty: it is no module."""
    return _place_of(path)[1]


def _place_of(path: str) -> tuple[str, str]:
    """Return (folder, name) of a module; an empty name: the file is none."""
    if not path.endswith(_ENDINGS):
        return "", ""
    folder, stem = posixpath.dirname(path), _stem(path)
    if stem != _PACKAGE:
        return folder, stem
    return posixpath.dirname(folder), posixpath.basename(folder)


def _stem(path: str) -> str:
    # `json.cpython-311-x86_64-linux-gnu.so` is the module `json`.
    return posixpath.basename(path).split(".", 1)[0]
