"""One exact replacement in a text, or words that help a model to make it exact. Pure."""

import difflib
from dataclasses import dataclass

from mimir.errors import ToolError
from mimir.tools.calls.wording import counted, listed, quoted

MAX_COMPARED_LINES = 3_000
MAX_COMPARED_CHARS = 200
"""Bounds of the search for the nearest line, which costs more than all the rest."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Edit:
    """A text with one part replaced."""

    text: str
    line: int
    """1-based number of the line where it begins."""


def replaced(text: str, old: str, new: str, path: str, *, seen: str) -> Edit:
    """Replace the only occurrence of `old`.

    Args:
        text: The whole file.
        old: Not empty; compared exactly, white space included.
        new: What comes in its place.
        path: For messages.
        seen: The text as the model sees it, without secrets, lines as in `text`; the only one that messages quote.

    Raises:
        ToolError: `old` occurs never or more than once, or nothing would change.
    """
    if not old:
        raise ToolError(
            "old is empty.", next_step="Give the text to replace, or use write_file for a new file."
        )
    if old == new:
        raise ToolError(
            "old and new are the same, so nothing would change.", next_step="Give the new text."
        )
    places = _places(text, old)
    if not places:
        raise _not_found(seen, old, path)
    if len(places) > 1:
        lines = [str(text.count("\n", 0, at) + 1) for at in places]
        raise ToolError(
            f"old occurs {counted(len(places), 'time')} in {quoted(path)} (lines {listed(lines)}); "
            "it must occur once. Nothing was changed.",
            next_step="Add lines before or after it to old and new.",
        )
    at = places[0]
    return Edit(text=text[:at] + new + text[at + len(old) :], line=text.count("\n", 0, at) + 1)


def _places(text: str, old: str) -> list[int]:
    """Return where `old` begins, overlapping ones too: "aa" in "aaa" is not one place."""
    places: list[int] = []
    at = text.find(old)
    while at >= 0:
        places.append(at)
        at = text.find(old, at + 1)
    return places


def _not_found(text: str, old: str, path: str) -> ToolError:
    said = f"old was not found in {quoted(path)}. Nothing was changed."
    if "\r\n" in text and old.replace("\r\n", "\n").replace("\n", "\r\n") in text:
        return ToolError(
            said, next_step="The lines of this file end with \\r\\n: write them so in old and new."
        )
    number, line, exact = _nearest(text, old)
    if not number:
        return ToolError(said, next_step="Read the file and copy the lines exactly.")
    if exact:
        hint = f"Line {number} is equal to its first line, but what follows differs"
    else:
        hint = f"Nearest to its first line is line {number}: {quoted(line)}"
    return ToolError(
        said, next_step=f"{hint}. Copy the lines exactly as read_file shows them, white space too."
    )


def _nearest(text: str, old: str) -> tuple[int, str, bool]:
    """Return (number, line, is equal) of the line most similar to the first written line of `old`; number 0: none is."""
    wanted = next((line for line in old.split("\n") if line.strip()), "")[:MAX_COMPARED_CHARS]
    lines = [line[:MAX_COMPARED_CHARS] for line in text.split("\n")[:MAX_COMPARED_LINES]]
    if not wanted:
        return 0, "", False
    for number, line in enumerate(lines, start=1):
        if line == wanted:
            return number, line, True
    for number, line in enumerate(lines, start=1):
        if line.split() == wanted.split():
            return number, line, False
    near = difflib.get_close_matches(wanted, lines, n=1, cutoff=0.6)
    return (lines.index(near[0]) + 1, near[0], False) if near else (0, "", False)
