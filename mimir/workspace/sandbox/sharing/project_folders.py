"""Folders that tools made in the project: dependencies, build results, submodules.

Git ignores them, so the workspace has none. A folder counts if a tool marks it (`CACHEDIR.TAG`, `pyvenv.cfg`), or if the manifest of
its package manager is next to it. Other ignored folders stay hidden, because they may hold data of the user.
"""

import os
import re
from collections.abc import Collection, Iterator
from pathlib import Path

from mimir.domain.value_class import value_class
from mimir.workspace.sandbox.secret_names import may_be_secret

_MARKS = frozenset({"CACHEDIR.TAG", "pyvenv.cfg"})
# Folder → manifests; one of them is beside the folder. Empty: the name is enough.
_MADE_BESIDE = {
    "node_modules": (),
    ".venv": (),
    "venv": (),
    "bower_components": ("bower.json",),
    # Not the results of Maven and Gradle: a class whose source is gone would still be found there, and reports would be lost.
    "target": ("Cargo.toml", "build.sbt", "project.clj"),
    "vendor": ("go.mod", "composer.json", "Gemfile", "Cargo.toml"),
    ".gradle": ("build.gradle", "build.gradle.kts", "settings.gradle", "settings.gradle.kts"),
    ".yarn": ("package.json",),
    ".build": ("Package.swift",),
    ".dart_tool": ("pubspec.yaml",),
    "_build": ("mix.exs", "dune-project"),
    "deps": ("mix.exs",),
    "Pods": ("Podfile",),
    "dist-newstyle": ("cabal.project",),
    ".stack-work": ("stack.yaml",),
    "elm-stuff": ("elm.json",),
}
_NEVER = frozenset({".git", ".mimir", "chains", ".hg", ".svn", ".pytest_cache", "__pycache__"})
_MAX_DEPTH = 6
_MAX_DIRECTORIES = 4000
_SUBMODULE_PATH = re.compile(r"^\s*path\s*=\s*(.+?)\s*$", re.MULTILINE)


@value_class
class SharedPath:
    """A file or directory that commands see in the workspace, or next to it."""

    source: Path
    name: str
    """Path relative to the workspace; absolute: a path of the sandbox."""


def find_tool_folders(project: Path) -> list[SharedPath]:
    """Return the folders that tools made in a project, also in the packages of a monorepo."""
    return [
        SharedPath(source=Path(os.path.realpath(path)), name=str(path.relative_to(project)))
        for path in _walk(project)
    ]


def _walk(project: Path) -> Iterator[Path]:
    waiting, visited = [(project, 0)], 0
    while waiting and visited < _MAX_DIRECTORIES:
        directory, depth = waiting.pop(0)
        visited += 1
        try:
            with os.scandir(directory) as found:
                entries = {entry.name: entry for entry in found}
        except OSError:
            continue
        if depth and not _MARKS.isdisjoint(entries):
            yield directory
            continue
        for name, entry in sorted(entries.items()):
            if name in _NEVER or may_be_secret(name):
                continue
            if _is_made(name, entries.keys()):
                # A link to a folder elsewhere is as good as the folder.
                if entry.is_dir():
                    yield directory / name
            elif depth < _MAX_DEPTH and entry.is_dir(follow_symlinks=False):
                waiting.append((directory / name, depth + 1))


def _is_made(name: str, beside: Collection[str]) -> bool:
    manifests = _MADE_BESIDE.get(name)
    return manifests is not None and (not manifests or any(one in beside for one in manifests))


def find_hoisted_folders(project: Path) -> list[SharedPath]:
    """Return the nearest `node_modules` above the project, up to the git root, and its links.

    It appears at the top of the sandbox, where a search from the workspace arrives. The packages of the same repository
    that it links to appear where the links lead from there.
    """
    if (project / ".git").exists():
        return []
    for above in project.parents:
        modules = above / "node_modules"
        is_root = (above / ".git").exists()
        if modules.is_dir() and (is_root or _is_in_repository(above)):
            return [
                SharedPath(source=Path(os.path.realpath(modules)), name="/node_modules"),
                *_linked_packages(modules, project),
            ]
        if is_root:
            break
    return []


def _is_in_repository(directory: Path) -> bool:
    return any((above / ".git").exists() for above in directory.parents)


def _linked_packages(modules: Path, project: Path) -> Iterator[SharedPath]:
    for link in [*modules.iterdir(), *modules.glob("@*/*")]:
        real = Path(os.path.realpath(link))
        if not link.is_symlink() or not real.is_dir() or not real.is_relative_to(modules.parent):
            continue
        name = f"/{real.relative_to(modules.parent)}"
        is_own = real.is_relative_to(project) or project.is_relative_to(real)
        is_taken = os.path.lexists(f"/{name.split('/')[1]}")
        if not is_own and not is_taken and not real.is_relative_to(modules):
            yield SharedPath(source=real, name=name)


def find_submodules(project: Path) -> list[SharedPath]:
    """Return the submodules of a project that are checked out."""
    root = next((one for one in (project, *project.parents) if (one / ".git").exists()), project)
    try:
        text = (root / ".gitmodules").read_text(encoding="utf-8", errors="replace")
    except OSError:
        return []
    paths = [Path(os.path.normpath(root / name)) for name in _SUBMODULE_PATH.findall(text)]
    return [
        SharedPath(source=path, name=str(path.relative_to(project)))
        for path in paths
        if path.is_relative_to(project) and path != project and not path.is_symlink()
        if path.is_dir() and any(one.name != ".git" for one in path.iterdir())
    ]
