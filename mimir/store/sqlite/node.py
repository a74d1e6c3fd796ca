"""One node of the embedded store as its tables hold it: columns, one JSON object of small properties, long texts apart. Pure."""

import json
from collections.abc import Collection, Mapping, Sequence
from typing import NamedTuple, cast

import orjson

from mimir.errors import DamagedNode
from mimir.store.protocol import Row, Value
from mimir.store.schema import LONG_TEXT, PROMOTED, property_name

Found = tuple[object, ...]
"""One line of `SELECT`."""

COLUMNS = frozenset(PROMOTED)
_COLUMNS_TEXT = ", ".join(f'n."{name}"' for name in PROMOTED)
SELECT = f"SELECT n.key, n.label, n.id, n.texts, n.props, {_COLUMNS_TEXT} FROM nodes n WHERE "
_FIRST_COLUMN = 5
NOTHING: frozenset[str] = frozenset()


class PropertySelection(NamedTuple):
    """Some properties of nodes, and how they are read."""

    select: str
    """Gives lines of `Found` whose small properties are a JSON list, in order; what is not there is null."""
    names: tuple[str, ...]
    """Of the columns, then of the small properties."""


def choice(names: Collection[str]) -> PropertySelection:
    """Return how these properties are read and no others.

    Raises:
        StoreError: One of them cannot be the name of a property.
    """
    columns = tuple(name for name in PROMOTED if name in names)
    small = tuple(sorted({property_name(n) for n in names if n != "id" and n not in COLUMNS}))
    # One more than is asked for: of one path SQLite gives the value, of several a list.
    paths = ", ".join(f"'$.{name}'" for name in (*small, "id", "id"))
    # What is no object has no properties; it must not pass for an empty one.
    listed = f"CASE WHEN n.props GLOB '{{*' THEN json_extract(n.props, {paths}) END"
    others = "".join(f', n."{name}"' for name in columns)
    select = f"SELECT n.key, n.label, n.id, n.texts, {listed}{others} FROM nodes n WHERE "
    return PropertySelection(select, (*columns, *small))


class StoredNode(NamedTuple):
    """A node that was read; never changed, only replaced."""

    key: int
    label: str
    id: str
    columns: Mapping[str, Value]
    """Promoted properties that are there."""
    small: Mapping[str, Value]
    texts: Mapping[str, str]
    """Those kept apart."""
    lists: frozenset[str]
    """Small properties that may be lists."""
    unwritten: frozenset[str] | None = None
    """Columns that differ from what its line in the table holds, small properties beside; None: nothing differs."""

    def row(self) -> Row:
        """Return it as the protocol gives it; its lists are the caller's own."""
        made: dict[str, Value] = {"id": self.id, **self.columns, **self.small, **self.texts}
        for name in self.lists:
            held = made.get(name)
            if type(held) is list:
                made[name] = held[:]
        return made

    def next_version(self) -> int:
        """Return the number that its next compare-and-set gives it."""
        version = self.small.get("version")
        return (version if isinstance(version, int) else 0) + 1


def node_of(found: Found, texts: Mapping[str, str]) -> StoredNode:
    """Return the node of a line.

    Raises:
        DamagedNode: Its small properties cannot be read.
    """
    key, label, id = cast("tuple[int, str, str]", found[:3])
    small = _small(found)
    return StoredNode(key, label, id, _columns(found), small, texts, _lists(small))


def row_of(found: Found) -> dict[str, Value]:
    """Return the row of a line without the texts kept apart, as `StoredNode.row` would give it.

    Raises:
        DamagedNode: Its small properties cannot be read.
    """
    return {"id": cast("str", found[2]), **_columns(found), **_small(found)}


def part_of(found: Found, chosen: PropertySelection) -> dict[str, Value]:
    """Return what was chosen of a line, without the texts kept apart.

    Raises:
        DamagedNode: Its small properties cannot be read.
    """
    listed = cast("list[Value]", _read(found, list))  # longer than the names, see `choice`
    values = (*cast("Sequence[Value]", found[_FIRST_COLUMN:]), *listed)
    named = zip(chosen.names, values, strict=False)
    row: dict[str, Value] = {name: value for name, value in named if value is not None}
    row["id"] = cast("str", found[2])
    return row


def _parted(new: Mapping[str, Value]) -> tuple[dict[str, Value], dict[str, Value], dict[str, str]]:
    """Part properties into columns, small ones and long texts; None ("not there") stays with the first two."""
    columns: dict[str, Value] = {}
    small: dict[str, Value] = {}
    apart: dict[str, str] = {}
    for name, value in new.items():
        if name in COLUMNS:
            columns[name] = value
        elif type(value) is str and (len(value) >= LONG_TEXT or "\0" in value):  # `is_long`
            apart[name] = value
        else:
            small[name] = value
    return columns, small, apart


def new_node(label: str, id: str, new: Mapping[str, Value]) -> StoredNode:
    """Return a node of these properties that has no line yet, so no key."""
    columns, small, apart = _parted(new)
    return StoredNode(0, label, id, drop_none(columns), drop_none(small), apart, _lists(small))


def with_next_version(node: StoredNode) -> StoredNode:
    """Return the node with its next version, which is no text apart, and nothing else changed."""
    key, label, id, columns, small, texts, lists, unwritten = node
    small = {**small, "version": node.next_version()}
    return StoredNode(key, label, id, columns, small, texts, lists, unwritten or NOTHING)


def with_changes(node: StoredNode, new: Mapping[str, Value]) -> StoredNode:
    """Return the node with properties set; None removes."""
    key, label, id, columns, before, texts, lists, unwritten = node
    given, small, apart = _parted(new)
    moved = {name: value for name, value in given.items() if not _is_same(columns.get(name), value)}
    if moved:
        columns = drop_none({**columns, **moved})
        unwritten = (unwritten or NOTHING).union(moved)
    mixed = {**before, **small}
    if apart or not texts.keys().isdisjoint(small):
        for name in apart:
            mixed.pop(name, None)
        texts = {name: text for name, text in texts.items() if name not in small} | apart
    if None in small.values():
        mixed = drop_none(mixed)
    return StoredNode(
        key, label, id, columns, mixed, texts, lists | _lists(small), unwritten or NOTHING
    )


def already_has(node: StoredNode, new: Mapping[str, Value]) -> bool:
    """Tell whether a node has all of these properties already; None: it has no such."""
    columns, small, texts = node.columns, node.small, node.texts
    return all(
        _is_same(columns.get(name, small.get(name, texts.get(name))), value)
        for name, value in new.items()
    )


def _is_same(one: Value, other: Value) -> bool:
    return type(one) is type(other) and one == other  # 1, 1.0 and true are three values


def drop_none(values: Mapping[str, Value]) -> Mapping[str, Value]:
    """Leave out what is not there."""
    return {name: value for name, value in values.items() if value is not None}


def pack_properties(small: Mapping[str, Value]) -> str:
    """Write small properties as they are kept."""
    return orjson.dumps(small).decode()


def _columns(found: Sequence[object]) -> dict[str, Value]:
    columns = zip(PROMOTED, cast("Sequence[Value]", found[_FIRST_COLUMN:]), strict=True)
    return {name: value for name, value in columns if value is not None}


def _lists(small: Mapping[str, Value]) -> frozenset[str]:
    return frozenset([name for name, value in small.items() if type(value) is list])


def _small(found: Found) -> dict[str, Value]:
    return cast("dict[str, Value]", _read(found, dict))


def _read(found: Found, wanted: type) -> object:
    """Return what the JSON of a line holds."""
    try:
        value = _unpacked(cast("str", found[4]))
    except (ValueError, TypeError):
        value = None
    if not isinstance(value, wanted):
        raise DamagedNode(
            f"{found[1]} {found[2]!r} cannot be read.", label=str(found[1]), id=str(found[2])
        )
    return value


def _unpacked(text: str) -> object:
    """Read JSON: the short way as it is written here, the long way as somebody else may have."""
    try:
        return orjson.loads(text)
    except ValueError:
        return json.loads(text)
