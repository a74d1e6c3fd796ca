"""Fakes for tools: a transcript in memory, scripted toolsets, a directory in a dictionary, a scripted sandbox."""

import json
from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import pairwise
from pathlib import Path

from mimir.domain.call_outcome import CallOutcome
from mimir.domain.message import CallContext, ToolCall, ToolResult, ToolSpec
from mimir.tools.calls.local_tools import describe_tool

CONTEXT = CallContext(project="p", run="r1", task="task-1", attempt=1, role="worker")


def wish(
    name: str, arguments: Mapping[str, object] | str | None = None, id: str = "c1"
) -> ToolCall:
    """A call as a model would send it."""
    raw = arguments if isinstance(arguments, str) else json.dumps(arguments or {})
    return ToolCall(id=id, name=name, arguments=raw)


@dataclass
class Entry:
    """One row of a `FakeLane`."""

    seq: int
    kind: str
    request: Mapping[str, object]
    effectful: bool
    title: str
    outcome: CallOutcome | None = None


@dataclass
class FakeLane:
    """A journal in memory: reserves the place before the first wait, returns the calls given to replay."""

    rows: list[Entry] = field(default_factory=list[Entry])
    recorded: Sequence[CallOutcome] = ()

    async def call(
        self,
        kind: str,
        request: Mapping[str, object],
        delta: Mapping[str, object],
        work: Callable[[], Awaitable[CallOutcome]],
        *,
        effectful: bool,
        reserve: int = 0,
        of_answer: int = 0,
        title: str = "",
    ) -> CallOutcome:
        """Record a call, or serve the recorded one."""
        assert json.loads(json.dumps(request)) == request
        assert delta == request
        assert reserve == 0
        row = Entry(len(self.rows), kind, request, effectful, title)
        self.rows.append(row)
        if row.seq < len(self.recorded):
            row.outcome = self.recorded[row.seq]
        else:
            row.outcome = await work()
        return row.outcome


def spec(name: str, *, read_only: bool = True) -> ToolSpec:
    """A tool that takes an optional `text`."""
    return describe_tool(name, f"Does {name}.", {"text": {"type": "string"}}, read_only=read_only)


class Obedient:
    """A toolset with scripted results that records its calls."""

    def __init__(
        self,
        *specs: ToolSpec,
        answer: Callable[[ToolCall], Awaitable[ToolResult]] | None = None,
    ) -> None:
        self.specs = specs
        self.calls: list[ToolCall] = []
        self._answer = answer

    async def call(self, call: ToolCall, context: CallContext) -> ToolResult:
        """Do it."""
        assert context == CONTEXT
        self.calls.append(call)
        if self._answer:
            return await self._answer(call)
        return ToolResult(text=f"did {call.name}")


@dataclass(frozen=True, kw_only=True)
class FakeRan:
    """The result of a command."""

    exit_code: int | None = 0
    output: str = ""
    left_out_bytes: int = 0
    stop_reason: str = ""
    advice: str = ""


class FakeSandbox:
    """Returns a scripted result."""

    def __init__(self, says: FakeRan | Exception) -> None:
        self.says = says
        self.asked: list[tuple[Sequence[str], Path, float]] = []

    async def run(self, argv: Sequence[str], *, workspace: Path, seconds: float) -> FakeRan:
        """Remember and answer."""
        self.asked.append((tuple(argv), workspace, seconds))
        if isinstance(self.says, Exception):
            raise self.says
        return self.says


class FakeArtifacts:
    """Texts in a dictionary; records its requests."""

    def __init__(self, texts: Mapping[str, str]) -> None:
        self.texts = texts
        self.asked: list[str] = []

    async def __call__(self, id: str, /) -> str | None:
        """Return a text."""
        self.asked.append(id)
        return self.texts.get(id)


class FakeMemory:
    """Nodes in a dictionary; records its requests."""

    def __init__(self, *nodes: Mapping[str, object]) -> None:
        self.nodes = {str(node["id"]): node for node in nodes}
        self.asked: list[tuple[object, ...]] = []

    async def search_nodes(
        self, text: str, *, labels: Sequence[str], limit: int
    ) -> Sequence[Mapping[str, object]]:
        """Return all nodes, at most `limit`."""
        self.asked.append(("search", text, tuple(labels), limit))
        return list(self.nodes.values())[:limit]

    async def query_nodes(
        self, label: str, *, filters: Mapping[str, str | int | float | bool], limit: int
    ) -> Sequence[Mapping[str, object]]:
        """Return all nodes, at most `limit`."""
        self.asked.append(("query", label, dict(filters), limit))
        return list(self.nodes.values())[:limit]

    async def get_node(self, id: str) -> Mapping[str, object] | None:
        """Return one node."""
        return self.nodes.get(id)

    async def get_neighbors(
        self, id: str, *, types: Sequence[str], direction: str
    ) -> Sequence[Mapping[str, object]]:
        """Return all other nodes."""
        self.asked.append(("neighbors", id, tuple(types), direction))
        return [node for key, node in self.nodes.items() if key != id]

    async def get_subgraph(self, id: str, *, depth: int) -> Mapping[str, Sequence[object]]:
        """Return all nodes and an edge from each to the next."""
        self.asked.append(("subgraph", id, depth))
        ids = list(self.nodes)
        edges = [[a, "ABOUT", b] for a, b in pairwise(ids)]
        return {"nodes": list(self.nodes.values()), "edges": edges}
