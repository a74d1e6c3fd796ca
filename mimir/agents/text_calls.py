"""Recognition of a tool call that a model wrote as text. Pure.

Only the end of a text counts: a call that prose follows is a quotation.
"""

import json
import re
from collections.abc import Collection, Iterator

from mimir.domain.json_value import NO_MEMBERS, as_object, as_objects, as_text, is_array

_TAIL = 4000
_MOST_STARTS = 200
_CLOSING_MARKS = re.compile(
    r"(?:</[\w|:-]{1,40}>|<\|[\w|:-]{1,40}\|>|\[/?[A-Z_]{1,20}\]|`{3,6}|\s)\Z"
)
_NAME_KEYS = ("name", "tool", "tool_name", "function", "action")


def ends_with_call(text: str, tools: Collection[str]) -> bool:
    """Return whether a text ends with a call of one of the tools."""
    tail = text.strip()[-_TAIL:]
    if not tail or not tools:
        return False
    names = "|".join(map(re.escape, sorted(tools)))
    bare = _without_closing_marks(tail)
    is_marked = tail.endswith((">", "]")) and re.search(
        rf"<(?:[\w:-]{{1,40}}(?:=|\s{{1,3}}name=)[\"']?)?(?:{names})\b[^<>]{{0,200}}>", tail
    )
    last_line = bare.rpartition("\n")[2].strip(" `")
    is_written = re.match(rf"(?:print\()?(?:[\w.]{{1,40}}\.)?(?:{names})\(.*\)\Z", last_line)
    return bool(is_marked or is_written) or any(
        _named_tool(value) in tools for value in _values_at_end(bare)
    )


def _without_closing_marks(tail: str) -> str:
    while (mark := _CLOSING_MARKS.search(tail, max(0, len(tail) - 50))) is not None:
        tail = tail[: mark.start()]
    return tail


def _values_at_end(tail: str) -> Iterator[object]:
    """Yield each JSON value with which the tail ends, from the longest one on."""
    decoder = json.JSONDecoder()
    starts = [found.start() for found in re.finditer(r"[\[{]", tail)]
    for start in starts[:_MOST_STARTS] if tail.endswith(("}", "]")) else ():
        try:
            value, end = decoder.raw_decode(tail, start)
        except (ValueError, RecursionError):
            continue
        if end == len(tail):
            yield value
            return


def _named_tool(value: object) -> str:
    rows = as_objects(value) if is_array(value) else [as_object(value)]
    outer = rows[0] if rows else NO_MEMBERS
    row = as_object(outer.get("function")) or outer
    return next((name for key in _NAME_KEYS if (name := as_text(row.get(key)))), "")
