"""Directory of the user's state, outside of every project."""

import os
from pathlib import Path


def find_state_directory(project_id: str) -> Path | None:
    """Return the directory of a project's state; None: there is no home directory."""
    home = os.environ.get("HOME")
    base = os.environ.get("XDG_STATE_HOME") or (f"{home}/.local/state" if home else "")
    return Path(base) / "mimir" / project_id if base else None
