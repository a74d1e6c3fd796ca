"""The simplest graph with the store's protocol: the reference of the real ones."""

from collections.abc import Mapping, Sequence
from functools import partial
from typing import Any, cast

from mimir.store.protocol import Direction


class GraphModel:
    """Nodes and edges in two dicts; no transactions, no speed."""

    def __init__(self) -> None:
        self.nodes: dict[str, tuple[str, dict[str, Any]]] = {}
        self.edges: set[tuple[str, str, str]] = set()

    def upsert(self, label: str, row: Mapping[str, Any]) -> bool:
        """Set properties; False where the id is another label's."""
        held = self.nodes.get(row["id"])
        if held is not None and held[0] != label:
            return False
        merged = {**(held[1] if held else {}), **row}
        self.nodes[row["id"]] = label, {k: v for k, v in merged.items() if v is not None}
        return True

    def get(self, label: str, id: str) -> dict[str, Any] | None:
        """Return one row."""
        held = self.nodes.get(id)
        return dict(held[1]) if held and held[0] == label else None

    def patch(self, label: str, id: str, props: Mapping[str, object]) -> bool:
        """Set properties of one node."""
        return self.get(label, id) is not None and self.upsert(label, {"id": id, **props})

    def patch_if(
        self, label: str, id: str, expect: Mapping[str, Any], props: Mapping[str, object]
    ) -> dict[str, Any] | None:
        """Compare and set."""
        row = self.get(label, id)
        if row is None or not matches(row, expect):
            return None
        self.upsert(label, {"id": id, **props, "version": row.get("version", 0) + 1})
        return self.get(label, id)

    def delete(self, label: str, ids: list[str]) -> int:
        """Delete nodes with their edges."""
        gone = {id for id in ids if self.get(label, id) is not None}
        for id in gone:
            del self.nodes[id]
        self.edges = {e for e in self.edges if e[0] not in gone and e[2] not in gone}
        return len(gone)

    def link(self, type: str, source: str, target: str) -> bool:
        """Make an edge; False where an end is missing."""
        if source not in self.nodes or target not in self.nodes:
            return False
        self.edges.add((source, type, target))
        return True

    def find(
        self,
        label: str,
        where: Mapping[str, Any],
        order: Sequence[str] = (),
        limit: int | None = None,
    ) -> list[dict[str, Any]]:
        """Return matching rows in order."""
        rows = [dict(r) for held, r in self.nodes.values() if held == label and matches(r, where)]
        rows.sort(key=lambda r: r["id"])
        for name in reversed(order):
            key = name.lstrip("-")
            rows.sort(key=partial(_rank, key), reverse=name[0] == "-")
        return rows[:limit]

    def reach(
        self, id: str, types: Sequence[str], direction: Direction, depth: int | None
    ) -> list[str]:
        """Return ids within `depth` edges."""
        seen, frontier = {id}, {id}
        while frontier and (depth is None or depth > 0):
            near: set[str] = set()
            for source, type, target in self.edges:
                if types and type not in types:
                    continue
                if source in frontier and direction in ("out", "both"):
                    near.add(target)
                if target in frontier and direction in ("in", "both"):
                    near.add(source)
            frontier = near - seen
            seen |= frontier
            depth = None if depth is None else depth - 1
        return sorted(seen - {id})


def matches(row: Mapping[str, Any], where: Mapping[str, Any]) -> bool:
    """Return whether a row meets all conditions."""
    return all(_holds(row.get(name), wanted) for name, wanted in where.items())


def _holds(value: Any, wanted: Any) -> bool:
    if not isinstance(wanted, tuple):
        return _same(value, wanted)
    sign, other = cast("tuple[str, Any]", wanted)
    if sign == "in":
        return any(_same(value, o) for o in other)
    if sign == "!=":
        return not _same(value, other)
    if _kind(value) != _kind(other) or _kind(value) not in ("text", "number"):
        return False
    return {
        "<": value < other, "<=": value <= other, ">": value > other, ">=": value >= other,
    }[sign]  # fmt: skip


def _same(value: object, other: object) -> bool:
    return _kind(value) == _kind(other) and value == other


def _kind(value: object) -> str:
    if value is None:
        return "nothing"
    if isinstance(value, bool):
        return "flag"
    if isinstance(value, str):
        return "text"
    return "list" if isinstance(value, list) else "number"


def _rank(name: str, row: Mapping[str, Any]) -> tuple[int, Any]:
    value = row.get(name)
    return (0, 0) if value is None else (1, value)
