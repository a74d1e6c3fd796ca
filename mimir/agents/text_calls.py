"""Recognition of a tool call that a model wrote as text. Pure.

Only the end of a text counts: a call that prose follows is a quotation.
"""

import json
import re
from collections.abc import Collection, Iterator

from mimir.domain.json_value import as_object, as_text, is_array

_TAIL = 4000
_MOST_STARTS = 200
_MOST_LEVELS = 4
_AROUND_NAME = ("function", "tool_calls", "function_call")
_TOKEN = r"<[|｜][^<>\s]{1,40}[|｜]>|\[/?[A-Z_]{1,20}\]"
"""Control token of a model's template."""
_CLOSING_MARKS = re.compile(rf"(?:</[\w|:-]{{1,40}}>|{_TOKEN}|`{{3,6}}|\s)\Z")
_BEFORE_ARGUMENTS = re.compile(
    rf"(?:{_TOKEN}|:\d{{1,3}}|`{{3,6}}|\bjson|\n\w{{0,20}} ?[Ii]nput:|\s)\Z"
)
_SETS_APART = re.compile(rf"{_TOKEN}|[Ii]nput:")
_NAME_KEYS = ("name", "tool", "tool_name", "function", "action", "recipient_name")
_BROKEN = (
    r"\{{\s*[\"'“](?:{keys})[\"'”]\s*:\s*[\"'“](?:{names})[\"'”]\s*,\s*"
    r"[\"'“](?:arguments|parameters|args|input)[\"'”]\s*:([^{{}}]*\{{[^{{}}]*(?:\}}|\Z).{{0,20}})\Z"
)
"""Call whose JSON is cut off or has other quotes."""


def ends_with_call(text: str, tools: Collection[str]) -> bool:
    """Return whether a text ends with a call of one of the tools."""
    tail = text.strip()[-_TAIL:]
    if not tail or not tools:
        return False
    names = "|".join(map(re.escape, sorted(tools)))
    bare = _without_closing_marks(tail)
    is_marked = tail.endswith((">", "]")) and re.search(
        rf"<(?:[\w:-]{{1,40}}(?:=|\s{{1,3}}name=)[\"']?)?(?:{names})\b[^<>]{{0,200}}>|<tool_call>\s*(?:{names})\b",
        tail,
    )
    last_line = bare.rpartition("\n")[2].strip(" `")
    is_written = re.match(rf"(?:print\(|\[)?(?:[\w.]{{1,40}}\.)?(?:{names})\(.*\)\]?\Z", last_line)
    is_broken = re.search(_BROKEN.format(keys="|".join(_NAME_KEYS), names=names), tail, re.DOTALL)
    return bool(is_marked or is_written or is_broken) or any(
        _named_tool(value) in tools or _follows_name(bare[:start], names)
        for start, value in _values_at_end(bare)
    )


def _follows_name(before: str, names: str) -> bool:
    """True if a text ends with a tool's name and the tokens that stand before its arguments."""
    end = before
    while (mark := _BEFORE_ARGUMENTS.search(end, max(0, len(end) - 50))) is not None:
        end = end[: mark.start()]
    # Prose may name a tool before any object.
    return bool(
        re.search(rf"(?<![\w-])(?:{names})\Z", end)
        and _SETS_APART.search(before, max(0, len(end) - 200))
    )


def _without_closing_marks(tail: str) -> str:
    while (mark := _CLOSING_MARKS.search(tail, max(0, len(tail) - 50))) is not None:
        tail = tail[: mark.start()]
    return tail


def _values_at_end(tail: str) -> Iterator[tuple[int, object]]:
    """Yield the longest JSON value with which the tail ends, and its start."""
    decoder = json.JSONDecoder()
    starts = [found.start() for found in re.finditer(r"[\[{]", tail)]
    for start in starts[:_MOST_STARTS] if tail.endswith(("}", "]")) else ():
        try:
            value, end = decoder.raw_decode(tail, start)
        except (ValueError, RecursionError):
            continue
        if end == len(tail):
            yield start, value
            return


def _named_tool(value: object) -> str:
    for _ in range(_MOST_LEVELS):
        if is_array(value):
            value = value[0] if value else None
            continue
        row = as_object(value)
        if name := next((name for key in _NAME_KEYS if (name := as_text(row.get(key)))), ""):
            return name.removeprefix("functions.")
        value = next((row[key] for key in _AROUND_NAME if key in row), None)
    return ""
