"""One exact replacement in a text, or a message that helps the model to make it exact."""

import difflib
import re

from mimir.domain.quoted_text import count_noun, list_names, quote_text
from mimir.domain.value_class import value_class
from mimir.errors import ToolError

MAX_PLACES = 100
"""More occurrences than this are not counted."""
MAX_LINES = 20_000
MAX_LINE_CHARS = 200
MAX_COMPARED = 50
"""Limits of the search for the nearest line: one comparison takes up to milliseconds."""

_WORD = re.compile(r"\w+")


@value_class
class TextEdit:
    """A text with one part replaced."""

    text: str
    line: int
    """1-based number of the first replaced line."""


def replace_unique(text: str, old: str, new: str, path: str, *, seen: str) -> TextEdit:
    """Replace the only occurrence of `old`.

    Args:
        text: The whole file.
        old: Compared exactly, white space included.
        new: The replacement.
        path: For messages.
        seen: The redacted text, with the lines of `text`; messages quote only this one.

    Raises:
        ToolError: `old` is empty, does not occur exactly once, or equals `new`.
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
        lines = dict.fromkeys(str(text.count("\n", 0, at) + 1) for at in places)
        where = f"{'lines' if len(lines) > 1 else 'line'} {list_names(lines)}"
        least = "at least " if len(places) == MAX_PLACES else ""
        raise ToolError(
            f"old occurs {least}{count_noun(len(places), 'time')} in {quote_text(path)} ({where}); "
            "it must occur once. Nothing was changed.",
            next_step="Add lines before or after it to old and new.",
        )
    at = places[0]
    return TextEdit(text=text[:at] + new + text[at + len(old) :], line=text.count("\n", 0, at) + 1)


def _places(text: str, old: str) -> list[int]:
    """Return at most `MAX_PLACES` positions of `old`, overlapping ones too."""
    places: list[int] = []
    at = text.find(old)
    while at >= 0 and len(places) < MAX_PLACES:
        places.append(at)
        # One character further, not `len(old)`: "aa" occurs twice in "aaa".
        at = text.find(old, at + 1)
    return places


def _not_found(text: str, old: str, path: str) -> ToolError:
    said = f"old was not found in {quote_text(path)}. Nothing was changed."
    # Models write line feeds; the file may have other line ends.
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
        hint = f"Nearest to its first line is line {number}: {quote_text(line)}"
    return ToolError(
        said, next_step=f"{hint}. Copy the lines exactly as read_file shows them, white space too."
    )


def _nearest(text: str, old: str) -> tuple[int, str, bool]:
    """Return (number, line, is equal) of the line most like the first of `old`; 0: none."""
    wanted = next((line for line in old.split("\n") if line.strip()), "")[:MAX_LINE_CHARS]
    lines = [line[:MAX_LINE_CHARS] for line in text.split("\n")[:MAX_LINES]]
    if not wanted:
        return 0, "", False
    if wanted in lines:
        return lines.index(wanted) + 1, wanted, True
    for number, line in enumerate(lines, start=1):
        if line.split() == wanted.split():
            return number, line, False
    near = difflib.get_close_matches(wanted, _candidates(wanted, lines), n=1, cutoff=0.6)
    return (lines.index(near[0]) + 1, near[0], False) if near else (0, "", False)


def _candidates(wanted: str, lines: list[str]) -> list[str]:
    """Return the lines that share the most words with `wanted`, in file order if equal."""
    words = set(_WORD.findall(wanted))
    shared = ((len(words.intersection(_WORD.findall(line))), line) for line in lines)
    ranked = sorted((pair for pair in shared if pair[0]), key=lambda pair: -pair[0])
    return [line for _, line in ranked[:MAX_COMPARED]]
