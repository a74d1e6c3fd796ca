"""Top-level Python modules of the packages that a project's commands can import."""

import sys
from functools import lru_cache
from pathlib import Path

from mimir.workspace.sandbox.toolchain import ENVIRONMENTS

_PATTERNS = (
    "lib/python3*/site-packages",
    "lib/python3*/dist-packages",
    "lib/python3/dist-packages",
)


@lru_cache(maxsize=8)
def list_installed_modules(project: Path, outside: Path | None = None) -> frozenset[str]:
    """Return the names in the package folders of mimir's and the project's environments.

    `outside` is an environment of the project in another directory.
    """
    prefixes = [sys.prefix, sys.base_prefix, "/usr", "/usr/local"]
    tops = [Path(prefix) for prefix in prefixes] + [project / name for name in ENVIRONMENTS]
    tops += [outside] if outside else []
    folders = {folder for top in tops for pattern in _PATTERNS for folder in top.glob(pattern)}
    return frozenset(
        entry.split(".", 1)[0]
        for folder in folders
        for entry in _list_names(folder)
        if not entry.endswith((".dist-info", ".egg-info", ".pth"))
    )


def _list_names(folder: Path) -> list[str]:
    try:
        return [entry.name for entry in folder.iterdir()]
    except OSError:  # another process removes the environment
        return []
