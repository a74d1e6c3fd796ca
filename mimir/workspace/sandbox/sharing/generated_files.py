"""Ignored files that the code needs: generated sources and built extension modules."""

import os
import re
import subprocess
from collections.abc import Iterator
from pathlib import Path

from mimir.workspace.sandbox.secret_names import may_be_secret
from mimir.workspace.sandbox.sharing.project_folders import SharedPath, find_tool_folders

_BUILT = frozenset({".so", ".pyd", ".dylib", ".node"})
_SOURCES = frozenset(
    [".py", ".pyi", ".go", ".js", ".mjs", ".cjs", ".jsx", ".ts", ".mts", ".cts", ".tsx", ".rs", ".java", ".kt", ".scala", ".c", ".h", ".cc", ".cpp", ".hpp", ".rb", ".php", ".cs", ".swift", ".dart", ".ex", ".erl", ".lock"]
)  # fmt: skip
_HEADER = re.compile(
    rb"generated (?:by|from|with|using|code|file)|auto-?generated|@generated"
    rb"|do(?: not|n't) (?:edit|modify|change)",
    re.IGNORECASE,
)
_HEADER_BYTES = 1000
_MAX_FILES = 3000
_MAX_BYTES = 200_000_000
_GIT_SECONDS = 30


def find_ignored(project: Path) -> list[str]:
    """Return the paths that git ignores in a project; a directory ends with `/`. Blocking."""
    command = ("git", "-c", "core.fsmonitor=false", "-C", str(project), "ls-files", "-z")
    options = ("--others", "--ignored", "--exclude-standard", "--directory")
    try:
        done = subprocess.run(
            [*command, *options],
            stdin=subprocess.DEVNULL,
            capture_output=True,
            timeout=_GIT_SECONDS,
            check=False,
        )
    except (OSError, subprocess.TimeoutExpired):
        return []
    return sorted({os.fsdecode(name) for name in done.stdout.split(b"\0") if name})


def find_generated_files(project: Path, ignored: list[str]) -> list[SharedPath]:
    """Return ignored files with the header of a generator, and extension modules."""
    folders = {folder.name for folder in find_tool_folders(project)}
    found: list[SharedPath] = []
    size = 0
    for name in _ignored_files(project, ignored, folders):
        path = project / name
        try:
            is_wanted = not path.is_symlink() and path.is_file() and _is_generated(path)
            size += path.stat().st_size if is_wanted else 0
        except OSError:
            continue
        if is_wanted and size <= _MAX_BYTES:
            found.append(SharedPath(source=path, name=name))
    return found


def _ignored_files(project: Path, ignored: list[str], made: set[str]) -> Iterator[str]:
    number = 0
    top = "\0"
    for name in sorted(ignored):
        # git lists an ignored directory, and those below it, too.
        if name.startswith(top) or _is_hidden(name) or name.rstrip("/") in made:
            continue
        top = name if name.endswith("/") else top
        names = _files_below(project, name.rstrip("/"), made) if name.endswith("/") else (name,)
        for one in names:
            number += 1
            if number > _MAX_FILES:
                return
            if Path(one).suffix in _BUILT | _SOURCES and not _is_hidden(one):
                yield one


def _files_below(project: Path, name: str, made: set[str]) -> Iterator[str]:
    for directory, folders, files in os.walk(project / name):
        top = Path(directory).relative_to(project)
        inner = [one for one in folders if not _is_hidden(one) and str(top / one) not in made]
        folders[:] = sorted(inner)
        yield from (str(top / file) for file in sorted(files))


def _is_hidden(name: str) -> bool:
    """Return whether a name belongs to the engine, a tool's cache or a secret."""
    parts = Path(name).parts
    return parts[:1] in ((), ("chains",), ("generated-agents",), ("preambles",)) or any(
        part.startswith(".") or part == "__pycache__" or may_be_secret(part) for part in parts
    )


def _is_generated(path: Path) -> bool:
    if path.suffix in _BUILT:
        return True
    with path.open("rb") as file:
        return _HEADER.search(file.read(_HEADER_BYTES)) is not None
