"""The SQLite file of a project, read without the settings: the way of all that only looks.

A look needs the address of the store and nothing else of the settings. They are loaded if the store is a server, or if the user's own file
cannot be read.
"""

import os
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import TypeVar

from mimir.bootstrap import stores
from mimir.bootstrap.clock import SystemClock
from mimir.bootstrap.stored_project import ProjectPlace, find_place
from mimir.domain.json_value import as_object
from mimir.store.protocol import ReadOps
from mimir.store.sqlite.read_ops import view_file
from mimir.workspace.state_dir import ROOM

T = TypeVar("T")


def find_uri(flag: str = "", environment: Mapping[str, str] | None = None) -> str | None:
    """Return the URI of the store, empty for the project's own file; None: ask the settings."""
    env = os.environ if environment is None else environment
    # As in the settings: two underscores count as one, and the last name decides.
    named = [env[name] for name in sorted(env) if name.replace("__", "_") == "MIMIR_STORE"]
    own: object = "" if flag or named else read_own_file(env).get("store", "")
    uri = flag or (named[-1] if named else own)
    is_file = isinstance(uri, str) and ("://" not in uri or uri.startswith("sqlite:"))
    return uri if isinstance(uri, str) and is_file else None


def read_own_file(env: Mapping[str, str]) -> Mapping[str, object]:
    """Return the user's own settings file as it is; a store that is no text asks the settings."""
    base = env.get("XDG_CONFIG_HOME") or (f"{env['HOME']}/.config" if env.get("HOME") else "")
    path = env.get("MIMIR_CONFIG", f"{base}/mimir/mimir.toml" if base else "/dev/null")
    try:
        text = Path(path).read_text(encoding="utf-8")
        import tomllib  # most users have no such file

        return as_object(tomllib.loads(text))
    except FileNotFoundError:
        return {}
    except (OSError, ValueError):
        return {"store": None}


def look(
    project: Path,
    uri: str,
    work: Callable[[ReadOps, ProjectPlace], T],
    *,
    say: Callable[[str], None],
) -> T:
    """Run `work` on one view of the SQLite file that `uri` names; nothing is created.

    Raises:
        UsageError: There is no such file.
        StoreError: The file is foreign, damaged or of a newer schema.
        PlanError: Git tracks the state directory.
    """
    place = find_place(project)
    path = stores.find_file(uri, project / ROOM, say=say, create=False)
    with view_file(path, SystemClock()) as reads:
        return work(reads, place)
