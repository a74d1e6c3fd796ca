"""JSON and YAML as a tree of places: strict, bounded, and never by recursion.

No duplicate key, no NaN or Infinity, no alias or anchor, no tag, no deep nesting; scalars stay the text that was written, so that
`run: [true]` is the program `true`. What reads the tree can say where each value stands.
"""

import json
import re
from bisect import bisect_right
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Literal

import yaml

from mimir.planning.format.diagnostics import START, SourcePosition

MAX_DEPTH = 32
MAX_YAML_CHARS = 100_000

Kind = Literal["map", "list", "text", "number", "bool", "null"]


class LocatedValueError(Exception):
    """The text is not what it should be; `place` says where."""

    def __init__(self, message: str, place: SourcePosition) -> None:
        super().__init__(message)
        self.place = place


@dataclass(slots=True)
class LocatedValue:
    """A value and its place."""

    kind: Kind
    place: SourcePosition = START
    text: str = ""
    """Of a scalar, as written; of a text, without quotes."""
    items: list["LocatedValue"] = field(default_factory=list["LocatedValue"])
    """Of a list."""
    keys: dict[str, "LocatedValue"] = field(default_factory=dict[str, "LocatedValue"])
    """Of a map, in order."""
    key_places: dict[str, SourcePosition] = field(default_factory=dict[str, SourcePosition])

    @property
    def is_scalar(self) -> bool:
        """True for everything but maps, lists and null."""
        return self.kind in ("text", "number", "bool")


class _TreeBuilder:
    """Puts values into the containers that are open."""

    def __init__(self) -> None:
        self.root: LocatedValue | None = None
        self.open: list[LocatedValue] = []
        self.key: list[tuple[str, SourcePosition] | None] = []

    def add(self, node: LocatedValue) -> None:
        if not self.open:
            self.root = node
        elif self.open[-1].kind == "list":
            self.open[-1].items.append(node)
        else:
            key = self.key[-1]
            assert key is not None
            self.open[-1].keys[key[0]] = node
            self.open[-1].key_places[key[0]] = key[1]
            self.key[-1] = None

    def wants_key(self) -> bool:
        return bool(self.open) and self.open[-1].kind == "map" and self.key[-1] is None

    def set_key(self, name: str, place: SourcePosition) -> None:
        if name in self.open[-1].keys:
            raise LocatedValueError(f"The key {name[:60]!r} stands twice.", place)
        self.key[-1] = (name, place)

    def enter(self, node: LocatedValue) -> None:
        if len(self.open) >= MAX_DEPTH:
            raise LocatedValueError(f"It is nested more than {MAX_DEPTH} levels deep.", node.place)
        self.add(node)
        self.open.append(node)
        self.key.append(None)

    def leave(self) -> None:
        self.open.pop()
        self.key.pop()


# JSON.

_TOKEN = re.compile(
    r"""[ \t\r\n]*(?:
    (?P<sign>[{}\[\]:,])
    |(?P<text>"(?:[^"\\\x00-\x1f]++|\\.)*+")
    |(?P<number>-?(?:0|[1-9]\d*)(?:\.\d+)?(?:[eE][+-]?\d+)?)(?![\w.])
    |(?P<word>true|false|null)(?!\w)
    |(?P<end>\Z))""",
    re.VERBOSE,
)


class _LineIndex:
    """Places of characters in a text."""

    def __init__(self, text: str, first_line: int) -> None:
        self._starts = [0, *(match.end() for match in re.finditer("\n", text))]
        self._first_line = first_line

    def place(self, at: int) -> SourcePosition:
        line = bisect_right(self._starts, at) - 1
        return SourcePosition(line=self._first_line + line, column=at - self._starts[line] + 1)


def parse_json(text: str, first_line: int = 1) -> LocatedValue:
    """Return the one JSON value that `text` is.

    Raises:
        NodeError: It is not exactly one, or holds a duplicate key, NaN, Infinity or half a surrogate, or is nested too deep.
    """
    builder = _TreeBuilder()
    wanted = "value"
    for sign, value, place in _tokens(text, _LineIndex(text, first_line)):
        wanted = _take(builder, wanted, sign, value, place)
    assert builder.root is not None
    return builder.root


def _tokens(
    text: str, lines: _LineIndex
) -> Iterator[tuple[str, LocatedValue | None, SourcePosition]]:
    """Yield each token: a sign, or "value" and its node; at last "end"."""
    at = 0
    while True:
        match = _TOKEN.match(text, at)
        if match is None:
            bad = at + len(text[at : at + 1000]) - len(text[at : at + 1000].lstrip(" \t\r\n"))
            raise LocatedValueError(f"This is not JSON: {text[bad : bad + 20]!r}", lines.place(bad))
        kind = str(match.lastgroup)
        place = lines.place(match.start(kind))
        at = match.end()
        if kind == "sign":
            yield match["sign"], None, place
        elif kind == "end":
            yield "end", None, place
            return
        else:
            yield "value", _scalar(kind, match[kind], place), place


def _scalar(kind: str, token: str, place: SourcePosition) -> LocatedValue:
    if kind == "number":
        return LocatedValue("number", place, token)
    if kind == "word":
        return LocatedValue("null" if token == "null" else "bool", place, token)
    try:
        text = str(json.loads(token))
        text.encode()
    except ValueError:
        raise LocatedValueError("This text has an escape that JSON does not know.", place) from None
    return LocatedValue("text", place, text)


def _take(
    builder: _TreeBuilder, wanted: str, sign: str, value: LocatedValue | None, place: SourcePosition
) -> str:
    """Take one token; return what may come next."""
    if sign == "value" and value is not None:
        if wanted in ("key", "first key") and value.kind == "text":
            builder.set_key(value.text, place)
            return ":"
        if wanted in ("value", "first value"):
            builder.add(value)
            return _after(builder)
    elif sign in "{[" and wanted in ("value", "first value"):
        builder.enter(LocatedValue("map" if sign == "{" else "list", place))
        return "first key" if sign == "{" else "first value"
    elif sign in ("}", "]") and _may_close(builder, wanted, sign):
        builder.leave()
        return _after(builder)
    elif sign == wanted == ":":
        return "value"
    elif sign == "," and wanted == ", or the end":
        return "key" if builder.open[-1].kind == "map" else "value"
    elif sign == wanted == "end":
        return "end"
    what = "the end" if wanted == "end" else f"a {wanted.removeprefix('first ')}"
    what = repr(wanted) if wanted == ":" else wanted if wanted.startswith(",") else what
    raise LocatedValueError(f"Here JSON wants {what}.", place)


def _may_close(builder: _TreeBuilder, wanted: str, sign: str) -> bool:
    kind = "map" if sign == "}" else "list"
    first = "first key" if kind == "map" else "first value"
    return (
        bool(builder.open) and builder.open[-1].kind == kind and wanted in (first, ", or the end")
    )


def _after(builder: _TreeBuilder) -> str:
    return ", or the end" if builder.open else "end"


# YAML.


def parse_yaml(text: str, first_line: int = 1, indent: int = 0) -> LocatedValue:
    """Return the one YAML document that `text` is, its scalars as written.

    Args:
        text: The document.
        first_line: 1-based number of its first line in the file.
        indent: How far it was indented there.

    Raises:
        NodeError: It is not exactly one, or holds an alias, anchor, tag or duplicate key, or is too long or nested too deep.
    """
    if len(text) > MAX_YAML_CHARS:
        raise LocatedValueError(
            f"It is longer than {MAX_YAML_CHARS} characters.", SourcePosition(line=first_line)
        )
    builder = _TreeBuilder()
    documents = 0
    try:
        for event in yaml.parse(text, Loader=_LOADER):
            mark = event.start_mark
            line, column = (mark.line, mark.column) if mark is not None else (0, 0)
            place = SourcePosition(line=first_line + line, column=indent + column + 1)
            documents += isinstance(event, yaml.DocumentStartEvent)
            if documents > 1:
                raise LocatedValueError("A second document begins here.", place)
            _take_event(builder, event, place)
    except yaml.YAMLError as error:
        raise _yaml_error(error, first_line) from None
    except (ValueError, RecursionError):
        raise LocatedValueError("This is not YAML.", SourcePosition(line=first_line)) from None
    if builder.root is None:
        raise LocatedValueError("It is empty.", SourcePosition(line=first_line))
    return builder.root


_LOADER = getattr(yaml, "CSafeLoader", yaml.SafeLoader)


def _take_event(builder: _TreeBuilder, event: yaml.Event, place: SourcePosition) -> None:
    if isinstance(event, yaml.AliasEvent) or getattr(event, "anchor", None):
        raise LocatedValueError("Anchors and aliases are not read; write the value out.", place)
    if isinstance(event, yaml.NodeEvent) and getattr(event, "tag", None):
        raise LocatedValueError("Tags are not read.", place)
    if isinstance(event, yaml.ScalarEvent):
        _take_scalar(builder, event, place)
    elif isinstance(event, yaml.MappingStartEvent | yaml.SequenceStartEvent):
        if builder.wants_key():
            raise LocatedValueError("A key must be a text.", place)
        is_map = isinstance(event, yaml.MappingStartEvent)
        builder.enter(LocatedValue("map" if is_map else "list", place))
    elif isinstance(event, yaml.MappingEndEvent | yaml.SequenceEndEvent):
        builder.leave()


def _take_scalar(builder: _TreeBuilder, event: yaml.ScalarEvent, place: SourcePosition) -> None:
    text = str(event.value)
    if builder.wants_key():
        builder.set_key(text, place)
    elif event.implicit[0] and text.casefold() in ("", "~", "null"):
        builder.add(LocatedValue("null", place))
    else:
        builder.add(LocatedValue("text", place, text))


def _yaml_error(error: yaml.YAMLError, first_line: int) -> LocatedValueError:
    mark = getattr(error, "problem_mark", None)
    line = first_line + (mark.line if mark else 0)
    place = SourcePosition(line=line, column=mark.column + 1 if mark else 1)
    return LocatedValueError(
        f"This is not YAML: {getattr(error, 'problem', None) or error}.", place
    )
