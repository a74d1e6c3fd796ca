"""Typed values of the keys of an agent file; an unreadable one is a finding. Pure."""

import json
import re
from collections.abc import Sequence

from mimir.domain.finding import Finding, SourcePosition
from mimir.domain.located_tree import LocatedValue
from mimir.registry.findings import make_agent_finding

MAX_ITEMS = 500
"""Most items of a list that are read, such as tools."""
TRUE = ("true", "yes", "on")
FALSE = ("false", "no", "off")


class FieldReader:
    """Reads the keys of one map and collects findings."""

    def __init__(self, values: LocatedValue) -> None:
        self.values = values
        self.findings: list[Finding] = []

    def place(self, key: str) -> SourcePosition:
        """Return the position of a key, or of the map."""
        return self.values.key_places.get(key, self.values.place)

    def value(self, key: str) -> LocatedValue | None:
        """Return the value of a key; None: it is absent or null."""
        node = self.values.keys.get(key)
        return None if node is None or node.kind == "null" else node

    def add(self, code: str, message: str, key: str, suggestion: str = "") -> None:
        """Add a finding at a key."""
        self.findings.append(make_agent_finding(code, message, self.place(key), suggestion))

    def text(self, key: str) -> str:
        """Return a text; empty: it is absent or no text."""
        node = self.value(key)
        if node is None:
            return ""
        if not node.is_scalar:
            self._refuse(key, "a text")
            return ""
        return node.text.strip()

    def choice(self, key: str, choices: Sequence[str], default: str) -> str:
        """Return one of the choices."""
        text = self.text(key)
        if not text or text in choices:
            return text or default
        self._refuse(key, f"one of {', '.join(choices)}")
        return default

    def flag(self, key: str) -> bool:
        """Return a Boolean; False: it is absent."""
        text = self.text(key).casefold()
        if text and text not in (*TRUE, *FALSE):
            self._refuse(key, "true or false")
        return text in TRUE

    def number(self, key: str, low: int, high: int) -> int | None:
        """Return a whole number within its bounds; None: it is absent or unreadable."""
        text = self.text(key)
        if not text:
            return None
        if re.fullmatch(r"[0-9]{1,9}", text) and low <= int(text) <= high:
            return int(text)
        self._refuse(key, f"a whole number from {low} to {high}")
        return None

    def names(self, key: str) -> tuple[str, ...] | None:
        """Return the names of a list, or of a text with commas; None: it is absent."""
        node = self.value(key)
        if node is None:
            return None
        if node.is_scalar:
            parts = split_names(node.text)
            return parts or None
        if node.kind != "list" or not all(item.is_scalar for item in node.items):
            self._refuse(key, "a list of names, or names with commas")
            return ()
        if len(node.items) > MAX_ITEMS:
            self._refuse(key, f"a list of at most {MAX_ITEMS} names")
            return ()
        return tuple(item.text.strip() for item in node.items if item.text.strip())

    def _refuse(self, key: str, wanted: str) -> None:
        self.add("invalid-value", f"{key!r} is not {wanted}.", key, f"Write {wanted}.")


def split_names(text: str) -> tuple[str, ...]:
    """Return the names of a text with commas; commas in brackets belong to a name."""
    # Some files write a YAML list as a text.
    inner = text.strip().removeprefix("[").removesuffix("]") if text.strip()[:1] == "[" else text
    parts = re.split(r",(?![^(]*\))", inner)
    return tuple(name for part in parts if (name := part.strip().strip("'\"").strip()))


def as_json(node: LocatedValue) -> object:
    """Return the JSON value of a tree; unquoted scalars of YAML get their type."""
    if node.kind == "map":
        return {key: as_json(value) for key, value in node.keys.items()}
    if node.kind == "list":
        return [as_json(item) for item in node.items]
    if node.kind == "null":
        return None
    if node.kind != "text" or node.is_plain:
        if node.text in ("true", "false"):
            return node.text == "true"
        if re.fullmatch(r"-?(?:0|[1-9]\d{0,17})(?:\.\d{1,17})?", node.text):
            return json.loads(node.text)
    return node.text
