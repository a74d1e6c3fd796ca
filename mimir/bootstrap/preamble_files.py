"""Preamble files of a project, with the user's trust in them."""

from pathlib import Path

from mimir.agents.preambles.trust import OwnPreambles
from mimir.settings import LoadedSettings
from mimir.workspace.state_dir import ROOM


def open_preambles(project: Path, loaded: LoadedSettings) -> OwnPreambles:
    """Return the preamble files of a project."""
    return OwnPreambles(
        project=project, user_directory=loaded.directory, state_directory=project / ROOM
    )
