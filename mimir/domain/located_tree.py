"""JSON and YAML as trees with positions: strict, bounded, without recursion. Pure.

Rejected are duplicate keys, NaN, Infinity, aliases, anchors, tags and deep nesting. Scalars stay
the text that was written, so that `run: [true]` is the program `true`.
"""

import json
import re
from bisect import bisect_right
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Literal

import yaml

from mimir.domain.finding import START, SourcePosition

MAX_DEPTH = 32
MAX_YAML_CHARS = 100_000

Kind = Literal["map", "list", "text", "number", "bool", "null"]


class LocatedValueError(Exception):
    """A text that is not valid JSON or YAML, with the position of the fault."""

    def __init__(self, message: str, place: SourcePosition) -> None:
        super().__init__(message)
        self.place = place


class DuplicateKeyError(LocatedValueError):
    """A map that has one key twice, with the position of the second."""


@dataclass(slots=True)
class LocatedValue:
    """A value and its position; a map keeps the order of its keys."""

    kind: Kind
    place: SourcePosition = START
    text: str = ""
    """Of a scalar, as written; of a text, without quotes."""
    is_plain: bool = False
    """Whether it is an unquoted YAML scalar, which may mean a number or a Boolean."""
    items: list["LocatedValue"] = field(default_factory=list["LocatedValue"])
    keys: dict[str, "LocatedValue"] = field(default_factory=dict[str, "LocatedValue"])
    key_places: dict[str, SourcePosition] = field(default_factory=dict[str, SourcePosition])

    @property
    def is_scalar(self) -> bool:
        """Whether it is neither a map, a list nor null."""
        return self.kind in ("text", "number", "bool")


class _TreeBuilder:
    """Stack of open containers that receive values."""

    def __init__(self) -> None:
        self.root: LocatedValue | None = None
        self.open: list[LocatedValue] = []
        self.key: list[tuple[str, SourcePosition] | None] = []

    def add(self, node: LocatedValue) -> None:
        if not self.open:
            # Only the first value has no container: the callers allow no second one.
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
        # Readers disagree about which of two equal keys wins, so that both would be a guess.
        if name in self.open[-1].keys:
            raise DuplicateKeyError(f"The key {name[:60]!r} is repeated.", place)
        self.key[-1] = (name, place)

    def enter(self, node: LocatedValue) -> None:
        # Later steps recurse over the tree: this bound keeps them within the stack.
        if len(self.open) >= MAX_DEPTH:
            raise LocatedValueError(f"Nesting exceeds {MAX_DEPTH} levels.", node.place)
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
    """Positions of characters in a text."""

    def __init__(self, text: str, first_line: int) -> None:
        self._starts = [0, *(match.end() for match in re.finditer("\n", text))]
        self._first_line = first_line

    def place(self, at: int) -> SourcePosition:
        line = bisect_right(self._starts, at) - 1
        return SourcePosition(line=self._first_line + line, column=at - self._starts[line] + 1)


def parse_json(text: str, first_line: int = 1) -> LocatedValue:
    """Parse exactly one JSON value.

    Raises:
        LocatedValueError: The text is not strict JSON, or is nested too deep.
    """
    builder = _TreeBuilder()
    wanted = "value"
    for sign, value, place in _tokens(text, _LineIndex(text, first_line)):
        # "wanted" is the state of the parser: the table of allowed tokens, without recursion.
        wanted = _take(builder, wanted, sign, value, place)
    assert builder.root is not None
    return builder.root


def _tokens(
    text: str, lines: _LineIndex
) -> Iterator[tuple[str, LocatedValue | None, SourcePosition]]:
    """Yield each token: a sign, "value" with its node, and finally "end"."""
    at = 0
    while True:
        match = _TOKEN.match(text, at)
        if match is None:
            # White space is skipped in 1000 characters only: copies of the rest would add up.
            bad = at + len(text[at : at + 1000]) - len(text[at : at + 1000].lstrip(" \t\r\n"))
            raise LocatedValueError(f"Invalid JSON: {text[bad : bad + 20]!r}.", lines.place(bad))
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
        text.encode()  # half a surrogate is valid JSON, and no text
    except ValueError:
        raise LocatedValueError("Invalid JSON: unknown escape in a text.", place) from None
    return LocatedValue("text", place, text)


def _take(
    builder: _TreeBuilder, wanted: str, sign: str, value: LocatedValue | None, place: SourcePosition
) -> str:
    """Take one token; return the next token that is allowed."""
    is_value, inner = wanted in ("value", "first value"), builder.open[-1:]
    if sign == "value" and value is not None:
        if wanted in ("key", "first key") and value.kind == "text":
            builder.set_key(value.text, place)
            return ":"
        if is_value:
            builder.add(value)
            return _SEPARATOR if inner else "end"
    elif sign in "{[" and is_value:
        builder.enter(LocatedValue("map" if sign == "{" else "list", place))
        return "first key" if sign == "{" else "first value"
    elif sign in ("}", "]") and inner and wanted in ("first key", "first value", _SEPARATOR):
        if inner[0].kind == ("map" if sign == "}" else "list"):
            builder.leave()
            return _SEPARATOR if builder.open else "end"
    elif sign == wanted == ":":
        return "value"
    elif sign == "," and wanted == _SEPARATOR:
        return "key" if inner[0].kind == "map" else "value"
    elif sign == wanted == "end":
        return "end"
    wanted = wanted.removeprefix("first ")
    raise LocatedValueError(f"Invalid JSON: expected {_EXPECTED.get(wanted, wanted)}.", place)


_SEPARATOR = "',' or the end"
_EXPECTED = {"end": "the end", ":": "':'", "key": "a key", "value": "a value"}


# YAML.


def parse_yaml(text: str, first_line: int = 1, indent: int = 0) -> LocatedValue:
    """Parse exactly one YAML document; its scalars stay as written.

    Args:
        text: The document.
        first_line: 1-based number of its first line in the file.
        indent: Width of its indent in the file.

    Raises:
        LocatedValueError: The text is not such a document, is too long or nested too deep.
    """
    start = SourcePosition(line=first_line)
    if len(text) > MAX_YAML_CHARS:
        raise LocatedValueError(f"It is longer than {MAX_YAML_CHARS} characters.", start)
    builder = _TreeBuilder()
    documents = 0
    try:
        # Events instead of objects: aliases and tags are seen before anything is built from them.
        for event in yaml.parse(text, Loader=_LOADER):
            mark = event.start_mark
            line, column = (mark.line, mark.column) if mark is not None else (0, 0)
            place = SourcePosition(line=first_line + line, column=indent + column + 1)
            documents += isinstance(event, yaml.DocumentStartEvent)
            if documents > 1:
                raise LocatedValueError("A second document is not allowed.", place)
            _take_event(builder, event, place)
    except yaml.YAMLError as error:
        raise _yaml_error(error, first_line) from None
    # The Python loader recurses, and both raise ValueError on unusual characters.
    except (ValueError, RecursionError):
        raise LocatedValueError("Invalid YAML.", start) from None
    if builder.root is None:
        raise LocatedValueError("The document is empty.", start)
    return builder.root


# The C loader is many times faster, but PyYAML may be built without it.
_LOADER = getattr(yaml, "CSafeLoader", yaml.SafeLoader)


def _take_event(builder: _TreeBuilder, event: yaml.Event, place: SourcePosition) -> None:
    if isinstance(event, yaml.AliasEvent) or getattr(event, "anchor", None):
        raise LocatedValueError("Anchors and aliases are not allowed: repeat the value.", place)
    if isinstance(event, yaml.NodeEvent) and getattr(event, "tag", None):
        raise LocatedValueError("Tags are not allowed.", place)
    if isinstance(event, yaml.ScalarEvent):
        text = str(event.value)
        if builder.wants_key():
            builder.set_key(text, place)
        # Only an unquoted scalar is null: "null" in quotes is a text.
        elif event.implicit[0] and text.casefold() in ("", "~", "null"):
            builder.add(LocatedValue("null", place))
        else:
            builder.add(LocatedValue("text", place, text, is_plain=event.implicit[0]))
    elif isinstance(event, yaml.MappingStartEvent | yaml.SequenceStartEvent):
        if builder.wants_key():
            raise LocatedValueError("A key must be a text.", place)
        is_map = isinstance(event, yaml.MappingStartEvent)
        builder.enter(LocatedValue("map" if is_map else "list", place))
    elif isinstance(event, yaml.MappingEndEvent | yaml.SequenceEndEvent):
        builder.leave()


def _yaml_error(error: yaml.YAMLError, first_line: int) -> LocatedValueError:
    mark = getattr(error, "problem_mark", None)
    line = first_line + (mark.line if mark else 0)
    place = SourcePosition(line=line, column=mark.column + 1 if mark else 1)
    return LocatedValueError(f"Invalid YAML: {getattr(error, 'problem', None) or error}.", place)
