"""Products of checks: new files in their checkouts, such as `build/` or `junit.xml`.

A check that is tried before the work shows them. They are no work, so a deliverable leaves them out unless the task's `files` name them.
"""

import os
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence, Set
from pathlib import Path

from mimir.domain.globs import matches
from mimir.qc.controls.surface import read_text
from mimir.workspace.git.user_ignores import TOOL_FOLDERS

_MOST = 200
_SNAPSHOTS = (".snap", ".ambr")
"""Endings of expected values that vitest, jest, insta and syrupy store."""
_SKIPPED = TOOL_FOLDERS | {".git", ".mimir"}


def list_paths(checkout: Path) -> frozenset[str]:
    """Return the files and folders of a checkout; a folder ends with `/`."""
    return frozenset(_walk(checkout, ""))


def find_products(before: Set[str], checkout: Path) -> tuple[str, ...]:
    """Return the new files of a checkout; of a new folder, its name alone."""
    found = {path for path in _walk(checkout, "") if path not in before}
    return tuple(sorted({_top(path, before) for path in found if not path.endswith("/")})[:_MOST])


def read_snapshots(checkout: Path, paths: Iterable[str]) -> Mapping[str, Counter[str]]:
    """Return the lines of the stored snapshots among some paths."""
    stored = (path for path in paths if path.endswith(_SNAPSHOTS))
    return {path: Counter((read_text(checkout, path) or "").splitlines()) for path in stored}


def describe_renewed(before: Mapping[str, Counter[str]], checkout: Path) -> str:
    """Describe a stored snapshot that lost lines; new ones may come."""
    now = read_snapshots(checkout, before)
    lost = [path for path, lines in before.items() if lines - now[path]]
    return f"The run changed the stored snapshot {lost[0]!r}." if lost else ""


def select_products(
    products: Sequence[str], added: Iterable[str], files: Sequence[str]
) -> list[str]:
    """Return the added paths that are products and that no glob of `files` names."""
    folders = tuple(one for one in products if one.endswith("/"))
    known = {one for one in products if not one.endswith("/")}
    return [
        path
        for path in added
        if (path in known or path.startswith(folders)) and not matches(path, files)
    ]


def describe_products(paths: Sequence[str]) -> str:
    """Return the note on products that a deliverable leaves out."""
    return (
        f"Not in the deliverable: {len(paths)} new files, such as {paths[0]!r}. Checks write them before the work too, and the task's "
        "`files` do not name them."
    )


def _top(path: str, before: Set[str]) -> str:
    """Return the outermost new folder around a path, or the path."""
    parts = path.split("/")
    folders = ("/".join(parts[:end]) + "/" for end in range(1, len(parts)))
    return next((folder for folder in folders if folder not in before), path)


def _walk(folder: Path, prefix: str) -> Iterator[str]:
    with os.scandir(folder) as entries:
        for entry in entries:
            path = prefix + entry.name
            if not entry.is_dir(follow_symlinks=False):
                yield path
            elif entry.name not in _SKIPPED:
                yield f"{path}/"
                yield from _walk(Path(entry.path), f"{path}/")
