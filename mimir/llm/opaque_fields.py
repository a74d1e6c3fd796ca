"""Members of a message or a tool call that mimir does not know, kept as JSON text.

Providers refuse a conversation whose messages lost such members (`reasoning_content`, `reasoning_details`).
"""

import json
from collections.abc import Callable, Collection, Sequence
from typing import cast

from mimir.domain.json_value import JsonObject, as_object, is_array, is_object
from mimir.llm.storable_text import clean

# Deeper values would exhaust the stack of their readers.
_MOST_LEVELS = 64
# Texts that name a thing: a fragment repeats them whole.
_LABELS = frozenset(("type", "id", "name", "role", "format"))


class OpaqueFields:
    """Collector of unknown members over the fragments of one object."""

    def __init__(self, known: Collection[str]) -> None:
        self._known = frozenset(known)
        self._fragments: dict[str, list[object]] = {}

    def add(self, fragment: JsonObject) -> int:
        """Keep the unknown members of a fragment; return their size in characters.

        Raises:
            ValueError: A member is nested too deeply.
        """
        size = 0
        for name, value in fragment.items():
            if name not in self._known and value not in (None, "", [], {}):
                if not _is_shallow(value, _MOST_LEVELS):
                    raise ValueError(f"the member {name[:80]!r} is nested too deeply")
                self._fragments.setdefault(name, []).append(value)
                size += len(name) + len(json.dumps(value, ensure_ascii=False))
        return size

    def merged(self) -> dict[str, object]:
        """Return the members with their fragments joined."""
        return {name: _merge(name, values) for name, values in self._fragments.items()}


def pack_fields(fields: JsonObject) -> str:
    """Return the members as text; empty if there are none."""
    return clean(json.dumps(dict(fields), ensure_ascii=False)) if fields else ""


def unpack_fields(opaque: str) -> JsonObject:
    """Return the members; a text that is no object has none."""
    try:
        return as_object(json.loads(opaque)) if opaque else {}
    except (ValueError, RecursionError):
        return {}


def veil_fields(opaque: str, veil: Callable[[str], str]) -> str:
    """Apply `veil` to each text of the members, names included."""
    return pack_fields(as_object(_veil(unpack_fields(opaque), veil))) if opaque else ""


def _veil(value: object, veil: Callable[[str], str]) -> object:
    if isinstance(value, str):
        return veil(value)
    if is_object(value):
        return {veil(name): _veil(inner, veil) for name, inner in value.items()}
    return [_veil(inner, veil) for inner in value] if is_array(value) else value


def _is_shallow(value: object, levels: int) -> bool:
    inner = value.values() if is_object(value) else value if is_array(value) else ()
    return levels > 0 and all(_is_shallow(item, levels - 1) for item in inner)


def _merge(name: str, values: Sequence[object]) -> object:
    if len(values) == 1:
        return values[0]
    if all(isinstance(value, str) for value in values):
        texts = cast("Sequence[str]", values)
        return texts[0] if name in _LABELS and len(set(texts)) == 1 else "".join(texts)
    if all(is_array(value) for value in values):
        return _merge_items([item for value in values if is_array(value) for item in value])
    if all(is_object(value) for value in values):
        return _merge_objects([as_object(value) for value in values])
    return values[-1]


def _merge_objects(rows: Sequence[JsonObject]) -> dict[str, object]:
    merged = OpaqueFields(())
    for row in rows:
        merged.add(row)
    return merged.merged()


def _merge_items(items: Sequence[object]) -> list[object]:
    """Join the items that have one `index`; the others follow each other."""
    groups: dict[object, list[object]] = {}
    for place, item in enumerate(items):
        index = as_object(item).get("index")
        key = ("index", index) if isinstance(index, int) else ("place", place)
        groups.setdefault(key, []).append(item)
    return [_merge("", group) for group in groups.values()]
