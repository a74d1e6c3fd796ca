"""Id of a project from its directory, read without heavy imports.

Reasons: docs/decisions/0007-which-project-a-directory-is.md.
"""

import os
from pathlib import Path

FILE = "project"
"""File in `.mimir` with the id, which a moved or rewritten repository keeps."""
DIGITS = 12


def find_project_id(project: Path, room: Path) -> str:
    """Return the saved id, otherwise the id by path; creates nothing."""
    return load_id(room / FILE) or path_id(project)


def path_id(project: Path) -> str:
    """Return the id of a directory without commits."""
    import hashlib  # most projects have a saved id

    return f"project-{hashlib.sha256(os.fsencode(project)).hexdigest()[:DIGITS]}"


def load_id(path: Path) -> str:
    """Return the saved id; empty: there is none."""
    try:
        return path.read_text(encoding="utf-8").strip()
    # A damaged file counts as absent: the id can be derived again.
    except (FileNotFoundError, UnicodeDecodeError):
        return ""
