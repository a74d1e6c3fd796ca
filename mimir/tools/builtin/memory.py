"""The five tools that search the project's memory: notes, patterns, lessons, past runs.

They only read. A result is valid JSON of any length: a node that does not fit is left out whole and counted.
"""

import json
from collections.abc import Mapping, Sequence
from typing import Literal, Protocol

from mimir.domain.json_value import as_member, is_array, is_object
from mimir.domain.message import ToolResult
from mimir.domain.quoted_text import quote_text
from mimir.errors import ToolError
from mimir.tools.calls.arguments import ToolArguments
from mimir.tools.calls.local_tools import Handler, LocalTools, describe_tool, whole_number
from mimir.tools.calls.text_pages import MAX_CHARS

MAX_LIMIT = 50
DEFAULT_LIMIT = 10
MAX_DEPTH = 3
MAX_VALUE_CHARS = 2_000
"""Most characters of one property in a result."""

Node = Mapping[str, object]
"""A node's properties, `id` and `label` among them."""
Scalar = str | int | float | bool
Direction = Literal["out", "in", "both"]
_DIRECTIONS: Sequence[Direction] = ("out", "in", "both")


class MemorySearch(Protocol):
    """Search of the memory; labels, names and filters of a model are data, never query text."""

    async def search_nodes(self, text: str, *, labels: Sequence[str], limit: int) -> Sequence[Node]:
        """Return nodes whose text matches, best first; empty `labels`: any label."""
        ...

    async def query_nodes(
        self, label: str, *, filters: Mapping[str, Scalar], limit: int
    ) -> Sequence[Node]:
        """Return nodes of a label whose properties equal all of `filters`."""
        ...

    async def get_node(self, id: str) -> Node | None:
        """Return one node; None if the id is unknown."""
        ...

    async def get_neighbors(
        self, id: str, *, types: Sequence[str], direction: Direction
    ) -> Sequence[Node]:
        """Return nodes one edge away; empty `types`: any."""
        ...

    async def get_subgraph(self, id: str, *, depth: int) -> Mapping[str, Sequence[object]]:
        """Return {"nodes": …, "edges": …} within `depth` edges of a node."""
        ...


class MemoryTools(LocalTools):
    """The toolset of the five searches."""

    def __init__(self, memory: MemorySearch, *, max_chars: int = MAX_CHARS) -> None:
        self._memory = memory
        self._max_chars = max_chars
        super().__init__(_SPECS)

    def _handlers(self) -> Sequence[Handler]:
        return self._search, self._query, self._node, self._neighbors, self._subgraph

    async def _search(self, given: ToolArguments) -> ToolResult:
        nodes = await self._memory.search_nodes(
            given.text("text"), labels=given.texts("labels"), limit=_limit(given)
        )
        return self._format({"nodes": nodes})

    async def _query(self, given: ToolArguments) -> ToolResult:
        nodes = await self._memory.query_nodes(
            given.text("label"), filters=_filters(given), limit=_limit(given)
        )
        return self._format({"nodes": nodes})

    async def _node(self, given: ToolArguments) -> ToolResult:
        return self._format({"nodes": [await self._require_node(given)]})

    async def _neighbors(self, given: ToolArguments) -> ToolResult:
        # An unknown id and a node without neighbours need different answers.
        await self._require_node(given)
        direction = as_member(given.text("direction"), _DIRECTIONS) or "both"
        nodes = await self._memory.get_neighbors(
            given.text("id"), types=given.texts("types"), direction=direction
        )
        return self._format({"nodes": nodes})

    async def _subgraph(self, given: ToolArguments) -> ToolResult:
        await self._require_node(given)
        found = await self._memory.get_subgraph(given.text("id"), depth=given.number("depth", 1))
        return self._format(found)

    async def _require_node(self, given: ToolArguments) -> Node:
        id = given.text("id")
        node = await self._memory.get_node(id)
        if node is None:
            raise ToolError(
                f"There is no node {quote_text(id)} in the memory.",
                next_step="Find ids with memory_search_nodes or memory_query_nodes.",
            )
        return node

    def _format(self, lists: Mapping[str, Sequence[object]]) -> ToolResult:
        chosen: dict[str, list[object]] = {name: [] for name in lists}
        room = self._max_chars
        left_out = 0
        for name, values in lists.items():
            for value in values:
                # Measured as JSON, because the limit applies to the answer.
                text = _json(_shorten(value))
                # A cut node would be invalid JSON, so it is left out whole.
                if len(text) > room:
                    left_out += 1
                else:
                    room -= len(text)
                    chosen[name].append(json.loads(text))
        more = {"left_out": left_out, "hint": "ask for fewer, or filter"} if left_out else {}
        return ToolResult(text=_json({**chosen, **more}))


def _filters(given: ToolArguments) -> Mapping[str, Scalar]:
    filters: dict[str, Scalar] = {}
    for name, value in given.members("filters").items():
        if not isinstance(value, str | int | float | bool):
            raise ToolError(
                f"The filter {quote_text(name)} must be a string, a number, true or false.",
                next_step="Filters compare one property with one value.",
            )
        filters[name] = value
    return filters


def _limit(given: ToolArguments) -> int:
    return given.number("limit", DEFAULT_LIMIT)


def _shorten(value: object) -> object:
    if isinstance(value, str) and len(value) > MAX_VALUE_CHARS:
        return f"{value[:MAX_VALUE_CHARS]}… [{len(value) - MAX_VALUE_CHARS:,} more characters]"
    if is_object(value):
        return {k: _shorten(v) for k, v in value.items()}
    return [_shorten(v) for v in value] if is_array(value) else value


def _json(value: object) -> str:
    # Sorted, so that the same memory gives the same bytes in a replay.
    return json.dumps(value, ensure_ascii=False, sort_keys=True, default=str)


_TEXT = {"type": "string", "minLength": 1, "maxLength": 1000}
_NAMES = {"type": "array", "items": {"type": "string"}, "maxItems": 20}
_COUNT = whole_number(1, MAX_LIMIT, f"Default {DEFAULT_LIMIT}.")

_SPECS = (
    describe_tool(
        "memory_search_nodes",
        "Search the project's memory for words; best matches first.",
        {"text": _TEXT, "labels": {**_NAMES, "description": "Only these labels."}, "limit": _COUNT},
        required=("text",),
    ),
    describe_tool(
        "memory_query_nodes",
        "List nodes of one label whose properties equal the filters.",
        {
            "label": _TEXT,
            "filters": {"type": "object", "description": "Property → value, all must be equal."},
            "limit": _COUNT,
        },
        required=("label",),
    ),
    describe_tool("memory_get_node", "Get one node by its id.", {"id": _TEXT}, required=("id",)),
    describe_tool(
        "memory_get_neighbors",
        "Get the nodes one edge away from a node.",
        {
            "id": _TEXT,
            "types": {**_NAMES, "description": "Only edges of these types."},
            "direction": {
                "type": "string",
                "enum": list(_DIRECTIONS),
                "description": "Default both.",
            },
        },
        required=("id",),
    ),
    describe_tool(
        "memory_get_subgraph",
        "Get the nodes and edges around a node.",
        {"id": _TEXT, "depth": whole_number(1, MAX_DEPTH, "Default 1.")},
        required=("id",),
    ),
)
