"""The `spawn_agent` tool: a specialist works on one bounded task in a context of its own."""

import json
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import replace

from mimir.domain.agent import SPAWN_TOOL
from mimir.domain.invocation import SpawnCaller
from mimir.domain.message import ToolResult
from mimir.domain.text_hash import hash_text
from mimir.tools.calls.arguments import ToolArguments
from mimir.tools.calls.local_tools import Handler, LocalTools, describe_tool, string

Spawn = Callable[[SpawnCaller, str], Awaitable[ToolResult]]
"""Spawns an agent from the arguments of a call, as JSON; waits for its answer."""


class SpawnAgentTool(LocalTools):
    """The toolset of the one tool `spawn_agent`."""

    def __init__(self, spawn: Spawn, caller: SpawnCaller) -> None:
        """Bind the tool to the agent that calls it."""
        self._spawn = spawn
        self._caller = caller
        super().__init__((_SPEC,))

    def _handlers(self) -> Sequence[Handler]:
        return (self._call,)

    async def _call(self, given: ToolArguments) -> ToolResult:
        text = json.dumps(dict(given.values), sort_keys=True, ensure_ascii=False)
        # A call that is repeated after a death must find the agent that it has spawned.
        place = f"{self._caller.key}\n{text}"
        key = hash_text(place)[:32]
        return await self._spawn(replace(self._caller, key=key), text)


def explain_refusal(depth: int) -> str:
    """Return why an agent may not spawn another one."""
    return (
        f"spawn_agent is not yours (refused: depth): depth {depth} is the maximum, or your definition has no "
        "may_spawn. Name the specialist under `additional_specialists` of your answer."
    )


_TEXTS = {"type": "array", "items": {"type": "string"}}
_SPEC = describe_tool(
    SPAWN_TOOL,
    "Consult a specialist for one bounded task that needs other expertise; wait for its checked answer. "
    "It sees the project and your text here, nothing of your conversation. Its changes are not in your workspace.",
    {
        "chatmode": string("Address of its definition."),
        "task": string("The task; it must stand alone."),
        "context": string("Text that it is shown as material."),
        "context_files": {**_TEXTS, "description": "Files that it is shown."},
        "expected_deliverables": {**_TEXTS, "description": "Paths, or criteria in words."},
        "checks": {**_TEXTS, "description": "Commands that must pass."},
        "files": {**_TEXTS, "description": "Globs that it may write."},
        "refines": string("Run of an agent of yours whose result it improves."),
        "force": {"type": "boolean", "description": "The task may repeat an earlier one."},
    },
    required=("chatmode", "task"),
)
