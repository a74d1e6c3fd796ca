"""Reader of checks: a YAML or JSON list of maps becomes values. Pure.

Each unknown key and each value of a wrong type is a finding.
"""

import difflib
import json
import math
import re
import shlex
import textwrap
from collections.abc import Sequence

from mimir.domain.finding import Finding, SourcePosition, quote_excerpt
from mimir.domain.json_value import as_member
from mimir.domain.located_tree import LocatedValue, LocatedValueError, parse_yaml
from mimir.domain.plan import DEFAULT_TIMEOUT_SECONDS, Check, CheckKind
from mimir.planning.format.diagnostics import make_finding
from mimir.planning.format.labels import words
from mimir.planning.reader.values import is_none, is_table_rule, table_cells

_KEYS = {
    "id": "id",
    "name": "id",
    "criteria": "criteria",
    "criterion": "criteria",
    "run": "run",
    "command": "run",
    "cmd": "run",
    "kind": "kind",
    "type": "kind",
    "tests": "tests",
    "protect": "protect",
    "required": "required",
    "timeout seconds": "timeout_seconds",
    "timeout": "timeout_seconds",
}
_TRUE, _FALSE = ("true", "yes", "on"), ("false", "no", "off")
_KINDS: Sequence[CheckKind] = ("flip", "hold")
_SECONDS = re.compile(
    r"(\d{1,400}(?:\.\d{1,400})?(?:e[+-]?\d{1,3})?)\s*(?:s|sec|seconds|(m|min|minutes?))?",
    re.IGNORECASE,
)
_FIRST_WORD = re.compile(r"\w*(?=$|[\s,(:–—-])")
_COMMAND_LINE = re.compile(r"(?m)^([ \t]*(?:-[ \t]+)?(?:run|command):[ \t]+)(\S.*?)[ \t]*$")


def parse_checks(text: str, first_line: int, indent: int = 0) -> LocatedValue:
    """Parse checks in YAML; a command line that YAML reads otherwise counts as it is written.

    Raises:
        LocatedValueError: The text is no YAML for another reason.
    """
    text = _COMMAND_LINE.sub(_quote_cut_command, text)
    try:
        return parse_yaml(text, first_line, indent)
    except LocatedValueError as error:
        try:
            return parse_yaml(_COMMAND_LINE.sub(_quote_command, text), first_line, indent)
        except LocatedValueError:
            raise error from None


def write_script_check(text: str) -> str:
    """Return the YAML of one check whose command is the text of a shell fence."""
    script = re.sub(r"(?m)^\$ ", "", textwrap.dedent(text).strip())
    return f"- run: {json.dumps(script, ensure_ascii=False)}"


def write_listed_checks(lines: Sequence[str]) -> str:
    """Return the YAML of checks in a list of commands or in a table; empty: there are none."""
    rows = [line.strip() for line in lines if line.strip()]
    if len(rows) > 2 and is_table_rule(rows[1]):
        keys = [_KEYS.get(words(cell), "") for cell in table_cells(rows[0])]
        found = [
            {
                key: _CODE.sub(r"\1", cell)
                for key, cell in zip(keys, table_cells(row), strict=False)
                if key and not is_none(cell)
            }
            for row in rows[2:]
        ]
        return json.dumps(found) if "run" in keys and all(keys) else ""
    items = [_LISTED.fullmatch(row) for row in rows]
    return (
        json.dumps(
            [
                {key: value for key, value in item.groupdict().items() if value}
                for item in items
                if item
            ]
        )
        if items and all(items)
        else ""
    )


_CODE = re.compile(r"\A`([^`]*)`\Z")
_LISTED = re.compile(
    r"(?:[-*+•]\s+|\d{1,3}[.)]\s+)?(?:\[[ xX]?\]\s*)?(?:\**(?P<id>[\w.-]+)\**\s*(?:[(\[](?P<criteria>[^()\[\]]*)[)\]])?\s*:\**\s*)?"
    r"`(?P<run>[^`]+)`\s*(?:[(\[–—-]\s*(?P<kind>flip|hold)\s*[)\]]?)?"
)


def _quote_command(line: re.Match[str]) -> str:
    """Return a line with its command in quotes if it is no YAML, as with `: `."""
    # A list may continue in the next line.
    is_list_start = line[2].startswith("[") and "]" not in line[2]
    try:
        parse_yaml(f"run: {'' if is_list_start else line[2]}")
    except LocatedValueError:
        return f"{line[1]}{json.dumps(line[2], ensure_ascii=False)}"
    return line[0]


def _quote_cut_command(line: re.Match[str]) -> str:
    """Return a line with its command in quotes if YAML sees a comment inside of it."""
    start, mark, _ = line[2].partition(" #")
    is_cut = mark and not _is_shell_text(start) and _is_shell_text(line[2])
    return (
        f"{line[1]}{json.dumps(line[2], ensure_ascii=False)}"
        if is_cut and line[2][0] not in "\"'"
        else line[0]
    )


def _is_shell_text(text: str) -> bool:
    """Whether all quotes of a command line are closed."""
    try:
        shlex.split(text)
    except ValueError:
        return False
    return True


def from_node(node: LocatedValue, found: list[Finding]) -> list[tuple[Check, SourcePosition]]:
    """Return the checks of a list of maps with their positions."""
    # Models often repeat the label inside the fence: {checks: […]}.
    only = node.keys.get("checks") if node.kind == "map" and len(node.keys) == 1 else None
    node = only or node
    items = node.items if node.kind == "list" else [node]
    checks: list[tuple[Check, SourcePosition]] = []
    for number, item in enumerate(items, start=1):
        if item.kind != "map":
            found.append(
                _unreadable("A check must be a map with id, criteria and run.", item.place)
            )
        else:
            checks.append((_CheckReader(item, found).check(f"check-{number}"), item.place))
    return checks


class _CheckReader:
    """Reader of one check; each key may occur once."""

    def __init__(self, node: LocatedValue, found: list[Finding]) -> None:
        self._found = found
        self._place = node.place
        self._values: dict[str, LocatedValue] = {}
        for key, value in node.keys.items():
            self._take_key(key, value, node.key_places[key])

    def _take_key(self, key: str, value: LocatedValue, place: SourcePosition) -> None:
        name = _KEYS.get(words(key))
        if name is None:
            # An unknown key is never ignored: `protct` would silently protect nothing.
            near = difflib.get_close_matches(words(key), _KEYS, n=1)
            known = f"Known keys: {', '.join(sorted(set(_KEYS.values())))}."
            hint = f"Did you mean {_KEYS[near[0]]!r}?" if near else known
            self._fault(f"Key {quote_excerpt(key)} of a check is unknown", place, hint)
        elif name in self._values:
            self._fault(f"Key {name} of a check is given twice", place)
        else:
            self._values[name] = value

    def _fault(self, message: str, place: SourcePosition, hint: str = "") -> None:
        self._found.append(_unreadable(f"{message}.", place, hint))

    def check(self, default_id: str) -> Check:
        """Return the check; an unreadable value is a finding and becomes the default."""
        if self._get("run") is None:
            self._fault("A check has no command", self._place, "Add run.")
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
        if node is None or (node.is_scalar and node.text.strip()):
            return node.text if node else default
        self._fault(f"{name} must be a text", node.place)
        return default

    def _texts(self, name: str) -> tuple[str, ...] | None:
        node = self._get(name)
        if node is None:
            return None
        if node.is_scalar:
            # One text instead of a list: `criteria: c1, c2`.
            return () if is_none(node.text) else tuple(filter(None, re.split(r"[\s,]+", node.text)))
        if node.kind == "list" and all(item.is_scalar for item in node.items):
            return tuple(item.text for item in node.items)
        self._fault(f"{name} must be a list of texts", node.place)
        return None

    def _run(self) -> tuple[str, ...] | str:
        node = self._get("run")
        if node is not None and node.is_scalar:
            return node.text
        argv = self._texts("run") or ()
        # A program's name holds no space: these are command lines, and each must succeed.
        return "\n".join(argv) if re.search(r"\s", "".join(argv[:1])) else argv

    def _kind(self) -> CheckKind | None:
        node = self._get("kind")
        word = _FIRST_WORD.match(node.text.casefold()) if node is not None else None
        kind = as_member(word[0], _KINDS) if word else None
        if node is not None and kind is None:
            self._fault("kind must be flip or hold", node.place, "Or leave it out.")
        return kind

    def _flag(self, name: str) -> bool:
        node = self._get(name)
        # The safe default: a check without this key decides.
        word = node.text.casefold() if node is not None else "true"
        if word not in (*_TRUE, *_FALSE):
            place = node.place if node is not None else self._place
            self._fault(f"{name} must be true or false", place)
        return word not in _FALSE

    def _seconds(self, name: str) -> float:
        node = self._get(name)
        if node is None:
            return DEFAULT_TIMEOUT_SECONDS
        match = _SECONDS.fullmatch(node.text)
        value = float(match[1]) * (60 if match[2] else 1) if match else math.inf
        # A number such as 1e999 is read as infinity.
        if math.isinf(value):
            self._fault(f"{name} must be a number of seconds", node.place)
            return DEFAULT_TIMEOUT_SECONDS
        return value


def _unreadable(message: str, place: SourcePosition, hint: str = "") -> Finding:
    hint = hint or "See docs/plan-format.md for the form of a check."
    return make_finding("checks-unreadable", message, place, hint)
