"""Preamble files and agent definitions of a project, with the user's trust in them."""

import os
from collections.abc import Mapping
from pathlib import Path

from mimir.agents.preambles.trust import OwnPreambles
from mimir.orchestrator.project_ids import path_id
from mimir.registry.agent_files import AgentFiles
from mimir.registry.trust import AgentTrust
from mimir.settings.layers import LoadedSettings
from mimir.workspace.state_dir import ROOM


def open_preambles(project: Path, loaded: LoadedSettings) -> OwnPreambles:
    """Return the preamble files of a project."""
    return OwnPreambles(
        project=project, user_directory=loaded.directory, state_directory=project / ROOM
    )


def open_agent_files(project: Path, loaded: LoadedSettings) -> AgentFiles:
    """Return the agent definitions of a project and its user."""
    agents = loaded.settings.agents
    environment: Mapping[str, str] = os.environ
    home = environment.get("HOME") or None
    config = environment.get("XDG_CONFIG_HOME") or (f"{home}/.config" if home else None)
    state = environment.get("XDG_STATE_HOME") or (f"{home}/.local/state" if home else None)
    return AgentFiles(
        project=project,
        home=Path(home) if home else None,
        config=Path(config) if config else None,
        extra=[Path(one) for one in (*agents.path, agents.vscode_prompts) if one],
        project_first=agents.project_first,
        default_tools=tuple(agents.default_tools),
        models=agents.models,
        trust=AgentTrust(
            directory=Path(state) / "mimir" if state else None,
            project_id=path_id(project),
        ),
    )
