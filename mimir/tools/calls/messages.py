"""How other people's text stands in a message that a model reads: quoted, bounded, on one line. Pure."""

import difflib
import json
from collections.abc import Iterable

QUOTE_CHARS = 120
"""Longest quotation of a model's or a file's text inside a message."""


def quote_text(text: str, limit: int = QUOTE_CHARS) -> str:
    """Return `text` in single quotes: one line, no control bytes, no lone surrogates, at most `limit` characters of it."""
    cut = text if len(text) <= limit else f"{text[:limit]}…"
    return f"'{_escaped(cut)}'"


def list_path(path: str) -> str:
    """Return a path as it stands in a list: as it is if it is plain, else as a JSON string.

    A name with a line end cannot look like two names, and bytes that are no UTF-8 are visible.
    """
    if path.isprintable() and not path.startswith('"') and path == path.strip():
        return path
    return json.dumps(path)


def list_names(names: Iterable[str], limit: int = 12) -> str:
    """Return names with commas between them, the rest counted; "none" if there is none."""
    known = [quote_text(n, 60)[1:-1] for n in names]
    if not known:
        return "none"
    rest = f" and {len(known) - limit} more" if len(known) > limit else ""
    return ", ".join(known[:limit]) + rest


def nearest(name: str, known: Iterable[str]) -> str:
    """Return " Did you mean 'x'?" for the most similar known name, or nothing."""
    found = difflib.get_close_matches(name[:QUOTE_CHARS], list(known), n=1, cutoff=0.6)
    return f" Did you mean {quote_text(found[0])}?" if found else ""


def count_noun(number: int, noun: str) -> str:
    """Return "1 line", "2 lines"."""
    return f"{number:,} {noun}" if number == 1 else f"{number:,} {noun}s"


def storable(text: str) -> str:
    """Return `text` without lone surrogates: what UTF-8 cannot hold is written as its escape."""
    return text.encode("utf-8", "backslashreplace").decode("utf-8")


def _escaped(text: str) -> str:
    if text.isprintable():
        return text
    return "".join(c if c.isprintable() else json.dumps(c)[1:-1] for c in text)
