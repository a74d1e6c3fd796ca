"""Lines that fit a terminal: words are wrapped and never cut.

A word that is longer than the line continues on the next one; no character is lost.
"""

import unicodedata
from bisect import bisect_right
from collections.abc import Callable, Iterable, Sequence

MIN_TEXT = 24
"""Fewer columns than this are no place for text next to other cells."""
STACKED = "    "
"""Indent of text below its cells."""


def columns_of(text: str) -> int:
    """Return the columns of a text on a terminal."""
    if text.isascii():
        return len(text)
    return sum(
        0 if unicodedata.combining(c) else 2 if unicodedata.east_asian_width(c) in "WF" else 1
        for c in text
    )


def wrap(text: str, width: int, *, first: str = "", rest: str | None = None) -> list[str]:
    """Return a text as lines of at most `width` columns.

    Args:
        text: One paragraph; empty: no line.
        width: Columns.
        first: Start of the first line.
        rest: Start of each further line. None: blanks under `first`, if there is room.
    """
    if not text:
        return []
    under = " " * columns_of(first)
    if rest is None:
        rest = under if width - len(under) >= MIN_TEXT else STACKED[: max(0, width // 8)]
    lines: list[str] = []
    line, is_empty = first, True
    for word in text.split():
        gap = "" if is_empty else " "
        is_whole_below = columns_of(rest + word) <= width
        if columns_of(line + gap + word) > width and (not is_empty or is_whole_below):
            lines.append(line.rstrip())
            line, gap = rest, ""
        pieces = _split(word, width - columns_of(line + gap), width - columns_of(rest))
        for piece in pieces[:-1]:
            lines.append(line + gap + piece)
            line, gap = rest, ""
        line, is_empty = line + gap + pieces[-1], False
    return [*lines, line.rstrip()]


def _split(word: str, room: int, whole: int) -> list[str]:
    """Return a word in pieces: the first fits `room`, the others fit `whole` columns."""
    if columns_of(word) <= max(1, room):
        return [word]
    pieces: list[str] = []
    piece, left = "", max(1, room)
    for character in word:
        if columns_of(piece + character) > left:
            pieces.append(piece)
            piece, left = "", max(2, whole)
        piece += character
    return [*pieces, piece]


def shorten(text: str, width: int, cut: str, *, measure: Callable[[str], int] = columns_of) -> str:
    """Return a text of at most `width` columns, cut between words; `cut` marks the end.

    Only a word that is longer than half of the line is cut itself. `measure` counts columns.
    """
    if measure(text) <= width:
        return text
    # A list shortens hundreds of texts: trying each length in turn took half of its time.
    fitting = bisect_right(range(len(text)), width, key=lambda end: measure(text[:end] + cut))
    kept = text[: max(0, fitting - 1)]
    ends = [at for at, character in enumerate(kept) if not character.isalnum()]
    # The word may end where the room does.
    is_whole = len(kept) < len(text) and not text[len(kept)].isalnum()
    if not is_whole and ends and ends[-1] >= len(kept) // 2:
        kept = kept[: ends[-1]]
    return kept.rstrip(" -_./,:;(·") + cut


def text_block(text: str, width: int, *, indent: str = "  ") -> list[str]:
    """Return a text of several lines, each wrapped and indented; line starts are kept."""
    lines: list[str] = []
    for line in text.rstrip("\n").split("\n"):
        own = line[: len(line) - len(line.lstrip())].expandtabs(4)[: width // 3]
        lines += wrap(line, width, first=indent + own) if line.strip() else [""]
    return lines


def table(rows: Iterable[Sequence[str]], width: int, *, right: Sequence[int] = ()) -> list[str]:
    """Return rows as aligned lines; the last cell wraps next to or below the others.

    Args:
        rows: Cells; each row has the same number.
        width: Columns.
        right: Numbers of the cells that are aligned to the right.
    """
    held = [tuple(row) for row in rows]
    if not held:
        return []
    sizes = [max(map(columns_of, cells)) for cells in zip(*held, strict=True)][:-1]
    lines: list[str] = []
    for *cells, text in held:
        padded = [
            _pad(cell, size, to_right=number in right)
            for number, (cell, size) in enumerate(zip(cells, sizes, strict=True))
            if size
        ]
        head = "  ".join(padded)
        if width - columns_of(head) - 2 >= MIN_TEXT or not text:
            lines += _wrapped_row(head, text, width)
        else:
            lines += [*wrap_cells(padded, width), *wrap(text, width, first=STACKED)]
    return lines


def _wrapped_row(head: str, text: str, width: int) -> list[str]:
    if not text:
        return wrap_cells([head.rstrip()], width)
    return wrap(text, width, first=f"{head}  " if head else "")


def wrap_cells(cells: Sequence[str], width: int) -> list[str]:
    """Return cells on one line if they fit, otherwise their words on several."""
    line = "  ".join(cells).rstrip()
    return [line] if columns_of(line) <= width else wrap(line, width, rest=STACKED)


def _pad(cell: str, size: int, *, to_right: bool) -> str:
    blanks = " " * (size - columns_of(cell))
    return blanks + cell if to_right else cell + blanks
