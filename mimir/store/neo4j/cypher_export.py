r"""Export of nodes and edges as Cypher statements: `mimir export --format cypher`.

Values are literals of ASCII characters, because a statement has no parameters. No value can end its literal, even on a server that reads
`\u` before anything else.
"""

import re
from collections.abc import Iterator, Mapping, Sequence
from itertools import count
from typing import TypeVar

from mimir.store.neo4j.query_library import CypherText, query
from mimir.store.neo4j.status_labels import by_status
from mimir.store.protocol import Row, Value
from mimir.store.schema import accept, edge_name, label_name, property_name

T = TypeVar("T")

# Nodes or edges in one statement.
_AT_ONCE = 100
# Parameter of the library's queries for nodes or edges.
_PLACE = "w0"
_ESCAPED: Mapping[str, str] = {"\\": "\\\\", "'": "\\'", "\n": "\\n", "\r": "\\r", "\t": "\\t"}
_PARAMETER = re.compile(r"\$(\w+)")
# Everything but printable ASCII characters, and quotes and backslashes.
_SPECIAL = re.compile(r"[^ -&(-\[\]-~]")


def script_header(store: str) -> Iterator[str]:
    """Yield the lines before all nodes."""
    yield f"// A store of mimir for Neo4j 5, as {store!r}. Load it: cypher-shell --file FILE"
    yield "// Then: mimir status --store neo4j://HOST:7687"
    yield f"{query('any-key')};"


def nodes(label: str, rows: Sequence[Row], store: str) -> Iterator[str]:
    """Yield statements that create nodes of a label.

    Raises:
        StoreError: No store can hold a row.
    """
    label = label_name(label)
    accepted = [accept(row) for row in rows]
    for status, alike in by_status(label, accepted):
        text = query("upsert", place=_PLACE, label=label, status=status)
        for some in _parts(alike):
            listed = ", ".join(_map(row) for row in some)
            yield f"{inline_parameters(text, store=literal(store), **{_PLACE: f'[{listed}]'})};"


def edges(kind: str, pairs: Sequence[tuple[str, str]], store: str) -> Iterator[str]:
    """Yield statements that create edges of a type between existing nodes."""
    text = query("link", place=_PLACE, type=edge_name(kind))
    for some in _parts(pairs):
        listed = ", ".join(f"[{literal(source)}, {literal(end)}]" for source, end in some)
        yield f"{inline_parameters(text, store=literal(store), **{_PLACE: f'[{listed}]'})};"


def literal(value: Value) -> str:
    """Return a value as Cypher, in ASCII characters."""
    match value:
        case None:
            return "null"
        case bool():
            return "true" if value else "false"
        case int() | float():
            return repr(value).replace("e+", "e")
        case str():
            return _text(value)
        case _:
            return f"[{', '.join(_text(part) for part in value)}]"


def _text(text: str) -> str:
    if "\\u" not in text:
        return f"'{_SPECIAL.sub(_escape, text)}'"
    # Some servers read `\u` before anything else, even after a backslash: so no backslash may precede a u.
    stand_in = next(mark for n in count() if (mark := f"<{n}>") not in text)
    return (
        f"replace('{_SPECIAL.sub(_escape, text.replace(chr(92), stand_in))}', '{stand_in}', '\\\\')"
    )


def _escape(found: re.Match[str]) -> str:
    character = found[0]
    if character in _ESCAPED:
        return _ESCAPED[character]
    raw = character.encode("utf-16-be")
    return "".join(f"\\u{raw[n : n + 2].hex().upper()}" for n in range(0, len(raw), 2))


def _map(row: Mapping[str, Value]) -> str:
    pairs = (f"{property_name(name)}: {literal(row[name])}" for name in row)
    return f"{{{', '.join(pairs)}}}"


def inline_parameters(text: CypherText, **values: str) -> str:
    """Return a query on one line, with its parameters replaced by literals."""
    return _PARAMETER.sub(lambda found: values[found[1]], " ".join(text.split()))


def _parts(items: Sequence[T]) -> Iterator[Sequence[T]]:
    for start in range(0, len(items), _AT_ONCE):
        yield items[start : start + _AT_ONCE]
