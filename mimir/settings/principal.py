"""Principal of a process: the client for which the server has started a command."""

import os

VARIABLE = "MIMIR_PRINCIPAL"
SESSION = "MIMIR_SESSION"


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
