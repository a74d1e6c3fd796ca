"""Principal of a process: the client for which the server has started a command."""

import os
from pathlib import Path

VARIABLE = "MIMIR_PRINCIPAL"
SESSION = "MIMIR_SESSION"
_SETTINGS = ("MIMIR_", "SECONDBRAIN_")


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
