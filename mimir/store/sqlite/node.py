"""Stored form of a node: columns, one JSON object of small properties, and long texts.

A line whose small properties cannot be read raises a `DamagedNode`.
"""

import json
from collections.abc import Collection, Mapping
from typing import Any, NamedTuple

import orjson

from mimir.errors import DamagedNode
from mimir.store.protocol import Row, Value
from mimir.store.schema import LONG_TEXT, PROMOTED, property_name
from mimir.store.sqlite.query_library import COLUMNS, sql
from mimir.store.unit_of_work import next_version

# One line of a query; the query decides the types of its values.
Found = tuple[Any, ...]

SELECT = sql("select-nodes", columns=COLUMNS) + " "
_COLUMNS = frozenset(PROMOTED)
_FIRST_COLUMN = 5
_NOTHING: frozenset[str] = frozenset()


class PropertySelection(NamedTuple):
    """Query for some properties of nodes."""

    select: str
    """Gives lines of `Found` whose small properties are a JSON list in the order of `names`."""
    names: tuple[str, ...]
    """Names of the columns, then of the small properties."""


def select_properties(names: Collection[str]) -> PropertySelection:
    """Return the query for these properties alone.

    Raises:
        StoreError: One of them is not the name of a property.
    """
    columns = tuple(name for name in PROMOTED if name in names)
    small = tuple(sorted({property_name(n) for n in names if n != "id" and n not in _COLUMNS}))
    # Two more than asked for: of one path, SQLite gives the value itself, of several a list.
    paths = ", ".join(f"'$.{name}'" for name in (*small, "id", "id"))
    others = "".join(f', n."{name}"' for name in columns)
    select = sql("select-properties", paths=paths, columns=others) + " "
    return PropertySelection(select, (*columns, *small))


class StoredNode(NamedTuple):
    """Node that was read. It is never changed, only replaced."""

    key: int
    label: str
    id: str
    columns: Mapping[str, Value]
    """Promoted properties that are present."""
    small: Mapping[str, Value]
    texts: Mapping[str, str]
    """Long texts."""
    lists: frozenset[str]
    """Small properties that may be lists."""
    unwritten: frozenset[str] | None = None
    """Columns that differ from the table; small ones may differ too. None: nothing does."""

    def get(self, name: str) -> Value:
        """Return a property; None if it is absent."""
        if name == "id":
            return self.id
        return self.columns.get(name, self.small.get(name, self.texts.get(name)))

    def row(self) -> Row:
        """Return the node as the protocol gives it."""
        properties: dict[str, Value] = {"id": self.id, **self.columns, **self.small, **self.texts}
        # The caller may change lists; they must be copies.
        for name in self.lists:
            held = properties.get(name)
            if type(held) is list:
                properties[name] = held[:]
        return properties


def node_of(found: Found, texts: Mapping[str, str]) -> StoredNode:
    """Return the node of a line."""
    key, label, id = found[:3]
    small = _small(found)
    return StoredNode(key, label, id, _columns(found), small, texts, _lists(small))


def row_of(found: Found) -> dict[str, Value]:
    """Return the row of a line without its long texts."""
    return {"id": found[2], **_columns(found), **_small(found)}


def part_of(found: Found, chosen: PropertySelection) -> dict[str, Value]:
    """Return the selected properties of a line, without its long texts."""
    values = (*found[_FIRST_COLUMN:], *_read(found, list))
    # The list is longer than the names, see `select_properties`.
    named = zip(chosen.names, values, strict=False)
    row: dict[str, Value] = {name: value for name, value in named if value is not None}
    row["id"] = found[2]
    return row


def new_node(label: str, id: str, new: Mapping[str, Value]) -> StoredNode:
    """Return a node that is not in the table yet."""
    columns, small, texts = _part_properties(new)
    return StoredNode(0, label, id, drop_none(columns), drop_none(small), texts, _lists(small))


def with_next_version(node: StoredNode) -> StoredNode:
    """Return the node with its next version and no other change."""
    key, label, id, columns, small, texts, lists, unwritten = node
    small = {**small, "version": next_version(small.get("version"))}
    return StoredNode(key, label, id, columns, small, texts, lists, unwritten or _NOTHING)


def with_changes(node: StoredNode, new: Mapping[str, Value]) -> StoredNode:
    """Return the node with changed properties; None removes one."""
    # Columns that did not change are left out, so that their indexes are not written.
    key, label, id, columns, before, texts, lists, unwritten = node
    given, small, long = _part_properties(new)
    moved = {name: value for name, value in given.items() if not _is_same(columns.get(name), value)}
    if moved:
        columns = drop_none({**columns, **moved})
        unwritten = (unwritten or _NOTHING).union(moved)
    mixed = {**before, **small}
    if long or not texts.keys().isdisjoint(small):
        # A property may have been short before, or long.
        for name in long:
            mixed.pop(name, None)
        texts = {name: text for name, text in texts.items() if name not in small} | long
    if None in small.values():
        mixed = drop_none(mixed)
    lists = lists | _lists(small)
    return StoredNode(key, label, id, columns, mixed, texts, lists, unwritten or _NOTHING)


def already_has(node: StoredNode, new: Mapping[str, Value]) -> bool:
    """Return whether a node has all of these properties; None means an absent one."""
    return all(_is_same(node.get(name), value) for name, value in new.items())


def drop_none(values: Mapping[str, Value]) -> Mapping[str, Value]:
    """Return the values without absent ones."""
    return {name: value for name, value in values.items() if value is not None}


def pack_properties(small: Mapping[str, Value]) -> str:
    """Return small properties as they are stored."""
    return orjson.dumps(small).decode()


def _part_properties(
    new: Mapping[str, Value],
) -> tuple[dict[str, Value], dict[str, Value], dict[str, str]]:
    """Part properties into columns, small ones and long texts; None is with the first two."""
    columns: dict[str, Value] = {}
    small: dict[str, Value] = {}
    long: dict[str, str] = {}
    for name, value in new.items():
        if name in _COLUMNS:
            columns[name] = value
        # `conditions.is_long`, inlined: each write passes dozens of values.
        elif type(value) is str and (len(value) >= LONG_TEXT or "\0" in value):
            long[name] = value
        else:
            small[name] = value
    return columns, small, long


def _is_same(one: Value, other: Value) -> bool:
    return type(one) is type(other) and one == other  # 1, 1.0 and True are three values


def _columns(found: Found) -> dict[str, Value]:
    columns = zip(PROMOTED, found[_FIRST_COLUMN:], strict=True)
    return {name: value for name, value in columns if value is not None}


def _lists(small: Mapping[str, Value]) -> frozenset[str]:
    return frozenset([name for name, value in small.items() if type(value) is list])


def _small(found: Found) -> dict[str, Value]:
    return _read(found, dict)


def _read(found: Found, wanted: type) -> Any:
    """Return the JSON of a line."""
    try:
        value = _unpack(found[4])
    except (ValueError, TypeError):
        value = None
    if not isinstance(value, wanted):
        raise DamagedNode(
            f"{found[1]} {found[2]!r} cannot be read.", label=str(found[1]), id=str(found[2])
        )
    return value


def _unpack(text: str) -> object:
    try:
        return orjson.loads(text)
    except ValueError:
        # Another program may have written forms that the fast reader refuses.
        return json.loads(text)
