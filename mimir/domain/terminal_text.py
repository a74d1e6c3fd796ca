"""Text of a command's output as a terminal shows it, without terminal codes. Pure."""

import re

_CONTROL = re.compile(r"[\x00-\x08\x0b-\x1f\x7f-\x9f]")
# Codes with text (titles, links) end with their line, so that an unfinished one hides no other.
_CODES = re.compile(
    r"(?:\x1b\[|\x9b)[0-?]*[ -/]*[@-~]"
    r"|(?:\x1b[\]PX^_]|[\x90\x98\x9d-\x9f])[^\x07\x1b\x9c\n]*(?:\x07|\x1b\\|\x9c)?"
    r"|\x1b[ -/]*[0-~]"
    r"|[\x00-\x08\x0b-\x1f\x7f-\x9f]"
)
_MOVES = re.compile(r"(\r|\x08|\x1b\[[0-2]?K)")


def visible_text(text: str) -> str:
    """Return the text that a user sees: codes are removed, overwritten text is gone."""
    if _CONTROL.search(text) is None:
        return text
    return "\n".join(
        _visible_line(line) if _CONTROL.search(line) else line for line in text.split("\n")
    )


def _visible_line(line: str) -> str:
    if _MOVES.search(line.rstrip("\r")) is None:
        return _CODES.sub("", line)
    cells: list[str] = []
    at = 0
    for part in _MOVES.split(line):
        match part:
            case "\r":
                at = 0
            case "\x08":
                at = max(0, at - 1)
            case "\x1b[K" | "\x1b[0K":
                del cells[at:]
            case "\x1b[1K" | "\x1b[2K":
                cells = [" "] * at if part == "\x1b[2K" else [" "] * at + cells[at:]
            case _:
                shown = _CODES.sub("", part)
                cells[at : at + len(shown)] = shown
                at += len(shown)
    return "".join(cells).rstrip(" ")
