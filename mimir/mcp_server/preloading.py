"""Imports of the reading tools, made before their first call.

Importing them takes 0.5 s of processor time, once (`-X importtime`, 2026-11-27). The first answer of a server must not wait for that.
"""

import importlib

IDLE_SECONDS = 2.0
"""Time after the first list of tools: a client that calls at once is not slowed down."""
_MODULES = (
    "mimir.bootstrap.agents.definition_files",
    "mimir.mcp_server.tools.writing",
    "mimir.orchestrator.delegation.stored_response",
    "mimir.orchestrator.questions.inbox",
    "mimir.orchestrator.runs.report_files",
    "mimir.registry.listing",
    "mimir.store.operations.memory",
)


def import_handlers() -> None:
    """Import the modules that the reading tools import at their first call."""
    for name in _MODULES:
        importlib.import_module(name)
