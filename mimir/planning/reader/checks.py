"""Checks: a YAML or JSON list of maps becomes values; every key is known, every value of its type, or it is a finding."""

import difflib
import math
import re

from mimir.domain.plan import DEFAULT_TIMEOUT_SECONDS, Check, CheckKind
from mimir.planning.format.diagnostics import (
    PlanFinding,
    SourcePosition,
    make_finding,
    quote_excerpt,
)
from mimir.planning.format.labels import words
from mimir.planning.format.located_tree import LocatedValue
from mimir.planning.reader.values import is_none

_KEYS = {
    "id": "id",
    "name": "id",
    "criteria": "criteria",
    "criterion": "criteria",
    "run": "run",
    "command": "run",
    "kind": "kind",
    "tests": "tests",
    "protect": "protect",
    "required": "required",
    "timeout seconds": "timeout_seconds",
    "timeout": "timeout_seconds",
}
_TRUE, _FALSE = ("true", "yes", "on"), ("false", "no", "off")


def from_node(node: LocatedValue, found: list[PlanFinding]) -> list[tuple[Check, SourcePosition]]:
    """Return the checks of a list of maps, and where each stands."""
    items = node.items if node.kind == "list" else [node]
    only = node.keys.get("checks") if node.kind == "map" else None
    if only is not None and len(node.keys) == 1:
        items = only.items if only.kind == "list" else [only]
    checks: list[tuple[Check, SourcePosition]] = []
    for number, item in enumerate(items, start=1):
        if item.kind != "map":
            found.append(_bad("A check is a map with id, criteria and run.", item.place))
        else:
            checks.append((_CheckReader(item, found).check(f"check-{number}"), item.place))
    return checks


class _CheckReader:
    """Reads one check, taking each key once."""

    def __init__(self, node: LocatedValue, found: list[PlanFinding]) -> None:
        self._found = found
        self._place = node.place
        self._values: dict[str, LocatedValue] = {}
        for key, value in node.keys.items():
            self._take_key(key, value, node.key_places[key])

    def _take_key(self, key: str, value: LocatedValue, place: SourcePosition) -> None:
        name = _KEYS.get(words(key))
        if name is None:
            near = difflib.get_close_matches(words(key), _KEYS, n=1)
            hint = (
                f"Did you mean {_KEYS[near[0]]!r}?"
                if near
                else f"Known: {', '.join(sorted(set(_KEYS.values())))}."
            )
            self._found.append(_bad(f"A check has no {quote_excerpt(key)}.", place, hint))
        elif name in self._values:
            self._found.append(_bad(f"{name} is given twice.", place))
        else:
            self._values[name] = value

    def check(self, default_id: str) -> Check:
        """Return the check; where a value cannot be read, its default and a finding."""
        if self._get("run") is None:
            self._found.append(_bad("A check needs a command.", self._place, "Add run."))
        return Check(
            id=self._text("id", default_id),
            criteria=self._texts("criteria") or (),
            run=self._run(),
            kind=self._kind(),
            tests=self._texts("tests"),
            protect=self._texts("protect") or (),
            required=self._flag("required"),
            timeout_seconds=self._seconds("timeout_seconds"),
        )

    def _get(self, name: str) -> LocatedValue | None:
        node = self._values.get(name)
        return None if node is None or node.kind == "null" else node

    def _text(self, name: str, default: str) -> str:
        node = self._get(name)
        if node is not None and not (node.is_scalar and node.text.strip()):
            self._found.append(_bad(f"{name} must be a text.", node.place))
        return node.text if node is not None and node.is_scalar and node.text.strip() else default

    def _texts(self, name: str) -> tuple[str, ...] | None:
        node = self._get(name)
        if node is None:
            return None
        if node.is_scalar:
            return (
                () if is_none(node.text) else tuple(t for t in re.split(r"[\s,]+", node.text) if t)
            )
        if node.kind == "list" and all(item.is_scalar for item in node.items):
            return tuple(item.text for item in node.items)
        self._found.append(_bad(f"{name} must be a list of texts.", node.place))
        return None

    def _run(self) -> tuple[str, ...] | str:
        node = self._get("run")
        if node is None:
            return ()
        if node.is_scalar:
            return node.text
        return self._texts("run") or ()

    def _kind(self) -> CheckKind | None:
        node = self._get("kind")
        word = node.text.casefold() if node is not None else ""
        if word == "flip":
            return "flip"
        if word == "hold":
            return "hold"
        if node is not None:
            self._found.append(_bad("kind must be flip or hold.", node.place, "Or leave it out."))
        return None

    def _flag(self, name: str) -> bool:
        node = self._get(name)
        word = node.text.casefold() if node is not None else "true"
        if word not in (*_TRUE, *_FALSE):
            place = node.place if node is not None else self._place
            self._found.append(_bad(f"{name} must be true or false.", place))
        return word not in _FALSE

    def _seconds(self, name: str) -> float:
        node = self._get(name)
        if node is None:
            return DEFAULT_TIMEOUT_SECONDS
        match = re.fullmatch(
            r"(\d{1,400}(?:\.\d{1,400})?(?:e[+-]?\d{1,3})?)\s*(?:s|sec|seconds)?",
            node.text,
            re.IGNORECASE,
        )
        value = float(match[1]) if match else math.inf
        if math.isinf(value):
            self._found.append(_bad(f"{name} must be a number of seconds.", node.place))
            return DEFAULT_TIMEOUT_SECONDS
        return value


def _bad(message: str, place: SourcePosition, suggestion: str = "") -> PlanFinding:
    hint = suggestion or "See docs/plan-format.md for the form of a check."
    return make_finding("checks-unreadable", message, place, suggestion=hint)
