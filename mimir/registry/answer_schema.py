"""JSON Schema of an answer: no remote reference, bounded size and depth. Pure."""

import json
from collections.abc import Iterator

from mimir.domain.json_value import is_array, is_object

MAX_BYTES = 20 * 1024
MAX_DEPTH = 10


def check_schema(schema: object) -> str:
    """Return why a schema is refused; empty: it is accepted."""
    if not is_object(schema):
        return "the schema is not an object"
    if len(json.dumps(schema).encode()) > MAX_BYTES:
        return f"the schema is longer than {MAX_BYTES // 1024} KiB"
    for value, depth in _walk(schema):
        if depth > MAX_DEPTH:
            return f"the schema is nested deeper than {MAX_DEPTH} levels"
        if is_object(value):
            # Both load another document in some validators.
            for key in ("$ref", "$dynamicRef"):
                target = value.get(key, "#")
                if not (isinstance(target, str) and target.startswith("#")):
                    return f"{key} leads out of the schema"
    return ""


def _walk(schema: object) -> Iterator[tuple[object, int]]:
    """Yield each object and array with its depth; the outermost has depth 1."""
    waiting = [(schema, 1)]
    while waiting:
        value, depth = waiting.pop()
        if is_object(value):
            inner = list(value.values())
        elif is_array(value):
            inner = list(value)
        else:
            continue
        yield value, depth
        if depth <= MAX_DEPTH:
            waiting += [(one, depth + 1) for one in inner]
