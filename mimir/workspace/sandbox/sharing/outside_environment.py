"""Python environment that Poetry or Pipenv keeps outside of the project, as by default."""

import base64
import hashlib
import os
from collections.abc import Iterator
from pathlib import Path

from mimir.workspace.sandbox.sharing.caches import UserMachine

_POETRY = ".cache/pypoetry"
# Pipenv, and the extensions of virtualenv that it follows.
_BY_NOTE = (".local/share/virtualenvs", ".virtualenvs")
_NOTE = ".project"
"""File of an environment with the path of its project."""


def find_outside_environment(project: Path, user: UserMachine) -> Path | None:
    """Return the newest environment that a tool of the user made for a project. Blocking."""
    found = [one for one in _candidates(project, user) if (one / "pyvenv.cfg").is_file()]
    return max(found, key=lambda one: (one / "pyvenv.cfg").stat().st_mtime_ns, default=None)


def _candidates(project: Path, user: UserMachine) -> Iterator[Path]:
    cache = user.directory("POETRY_CACHE_DIR", _POETRY) / "virtualenvs"
    # Poetry's name has the hash of the project's path: `generate_env_name` in poetry.utils.env.
    digest = hashlib.sha256(os.fsencode(project)).digest()
    mark = base64.urlsafe_b64encode(digest).decode()[:8]
    yield from _list(user.directory("POETRY_VIRTUALENVS_PATH", str(cache)), f"*-{mark}-py*")
    for default in _BY_NOTE:
        for one in _list(user.directory("WORKON_HOME", default), "*"):
            if _read_note(one) == str(project):
                yield one


def _list(folder: Path, pattern: str) -> list[Path]:
    try:
        return sorted(folder.glob(pattern))
    except OSError:  # closed to this user
        return []


def _read_note(environment: Path) -> str:
    try:
        return (environment / _NOTE).read_text(encoding="utf-8", errors="replace").strip()
    except OSError:
        return ""
