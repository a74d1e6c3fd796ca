"""Principal of a process: the client for which the server has started a command."""

import os

VARIABLE = "MIMIR_PRINCIPAL"


def find_principal() -> str:
    """Return the principal of this process; empty: the user typed the command."""
    return os.environ.get(VARIABLE, "")


def environment_for(principal: str) -> dict[str, str]:
    """Return the environment of a command that is started for a principal."""
    return {**os.environ, VARIABLE: principal}
