"""Paths that the setting `sandbox.share` names: files, directories and globs."""

import glob
import os
from collections.abc import Sequence
from pathlib import Path

from mimir.errors import ConfigurationError
from mimir.workspace.sandbox.secret_names import may_be_secret
from mimir.workspace.sandbox.sharing.project_folders import SharedPath


def find_named_paths(project: Path, share: Sequence[str]) -> list[SharedPath]:
    """Return the paths that `share` names, in its order.

    Raises:
        ConfigurationError: An entry matches nothing.
    """
    return [path for entry in share for path in _match(project, entry)]


def require_directories(paths: Sequence[Path]) -> None:
    """Raise ConfigurationError if a path of `sandbox.read_only` does not exist."""
    for path in paths:
        if not os.path.exists(path):  # noqa: PTH110  Path.exists raises
            raise ConfigurationError(
                f"sandbox.read_only names {str(path)!r}, which does not exist.",
                next_step="Correct or remove the entry in your own settings.",
            )


def _match(project: Path, entry: str) -> list[SharedPath]:
    has_glob = glob.has_magic(entry)
    whole = os.path.normpath(project / entry)
    if has_glob:
        top, pattern = (Path("/"), entry.lstrip("/")) if entry.startswith("/") else (project, entry)
        # A glob must not share a secret that its author did not think of.
        found = [str(path) for path in sorted(top.glob(pattern)) if not may_be_secret(path.name)]
    else:
        found = [whole] if os.path.exists(whole) else []  # noqa: PTH110  Path.exists raises
    if not found:
        raise ConfigurationError(
            f"sandbox.share names {entry!r}, and nothing in {project} matches it.",
            next_step="Correct or remove the entry in your own settings.",
        )
    return [_share_path(project, os.path.normpath(path)) for path in found]


def _share_path(project: Path, path: str) -> SharedPath:
    inside = Path(path).is_relative_to(project)
    name = str(Path(path).relative_to(project)) if inside else path
    return SharedPath(source=Path(os.path.realpath(path)), name=name)
