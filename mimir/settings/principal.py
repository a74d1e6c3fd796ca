"""Principal of a process: the client for which the server has started a command."""

import json
import os
from pathlib import Path

from mimir.domain.invocation import SpawnCaller
from mimir.domain.json_value import as_object, as_text

VARIABLE = "MIMIR_PRINCIPAL"
SESSION = "MIMIR_SESSION"
_SETTINGS = ("MIMIR_", "SECONDBRAIN_")
SPAWNED = "MIMIR_SPAWNED_BY"


def find_principal() -> str:
    """Return the principal of this process; empty: the user typed the command."""
    return os.environ.get(VARIABLE, "")


def find_session() -> str:
    """Return the session whose limits hold for invocations of this process; empty: none."""
    return os.environ.get(SESSION, "")


def environment_for(principal: str, session: str = "") -> dict[str, str]:
    """Return the environment of a command that is started for a principal."""
    given = {SESSION: session} if session else {}
    return {**os.environ, VARIABLE: principal, **given}


def isolated_environment(settings: Path) -> dict[str, str]:
    """Return the environment of a command that reads this settings file alone."""
    kept = {name: value for name, value in os.environ.items() if not name.startswith(_SETTINGS)}
    return {**kept, "MIMIR_CONFIG": str(settings)}


def find_spawn_caller() -> SpawnCaller | None:
    """Return the agent that spawns the invocation of this process; None: no agent does."""
    text = os.environ.get(SPAWNED, "")
    if not text:
        return None
    given = as_object(json.loads(text))
    return SpawnCaller(
        run=as_text(given.get("run")),
        agent=as_text(given.get("agent")),
        key=as_text(given.get("key")),
    )


def environment_for_child(caller: SpawnCaller, model: str) -> dict[str, str]:
    """Return the environment of an invocation that an agent spawns, with its model."""
    text = json.dumps({"run": caller.run, "agent": caller.agent, "key": caller.key})
    # Session and client are those of the run of the caller.
    kept = {name: value for name, value in os.environ.items() if name not in (SESSION, VARIABLE)}
    return {**kept, SPAWNED: text, **({"MIMIR_MODEL": model} if model else {})}
