"""Pages of a long text for a model: whole lines, a mark at each gap, and how to read on."""

from mimir.domain.value_class import value_class

MAX_CHARS = 20_000
"""Default limit of the characters of one result."""


@value_class
class TextPage:
    """A range of lines."""

    text: str
    first: int
    """1-based number of the first line; 0 if the text has no lines."""
    last: int
    """Number of the last line."""
    total: int
    """Lines of the whole text."""
    cut: int = 0
    """Characters that line `last` lost, because it alone is longer than the page."""


def page(text: str, offset: int, limit: int | None, max_chars: int = MAX_CHARS) -> TextPage:
    """Return whole lines from line `offset` (1-based), within both limits.

    Lines end with a line feed only, as in git and editors; a last line without it counts.
    """
    lines = lines_of(text)
    chosen: list[str] = []
    room = max_chars
    for line in lines[offset - 1 : None if limit is None else offset - 1 + limit]:
        if len(line) > room and chosen:
            break
        chosen.append(line[:max_chars])
        room -= len(line)
        if room < 0:
            break
    last = offset - 1 + len(chosen)
    cut = max(0, len(lines[last - 1]) - max_chars) if chosen else 0
    return TextPage(
        text="".join(chosen), first=offset if chosen else 0, last=last, total=len(lines), cut=cut
    )


def lines_of(text: str) -> list[str]:
    """Return the lines with their ends; joined, they are the text."""
    lines = [f"{line}\n" for line in text.split("\n")]
    lines[-1] = lines[-1][:-1]
    return lines if lines[-1] else lines[:-1]


def clip_both_ends(
    text: str, max_chars: int = MAX_CHARS, *, left_out_before: int = 0, hint: str = ""
) -> str:
    """Return the head and the tail of a long text with a mark between them.

    Args:
        text: Of any length.
        max_chars: Most characters without the mark.
        left_out_before: Characters that were already left out of `text`.
        hint: Advice for the reader, with a colon before it.
    """
    if len(text) <= max_chars:
        return text
    # A command prints its errors last, so the tail gets the larger share.
    head, tail = text[: max_chars // 3], text[-(max_chars - max_chars // 3) :]
    head = head[: head.rfind("\n") + 1] or head
    tail = tail[tail.find("\n") + 1 :] or tail
    missing = len(text) - len(head) - len(tail) + left_out_before
    joint = "" if head.endswith("\n") else "\n"
    return f"{head}{joint}[… {missing:,} characters left out here{hint} …]\n{tail}"
