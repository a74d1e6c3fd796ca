"""Foreign text inside a message: quoted, bounded, on one line. Pure."""

import difflib
import json
from collections.abc import Iterable

QUOTE_CHARS = 120
"""Most characters of a quotation."""


def quote_text(text: str, limit: int = QUOTE_CHARS) -> str:
    """Return at most `limit` characters of `text` in single quotes, printable and on one line."""
    cut = text if len(text) <= limit else f"{text[:limit]}…"
    if not cut.isprintable():
        cut = "".join(c if c.isprintable() else json.dumps(c)[1:-1] for c in cut)
    return f"'{cut}'"


def list_path(path: str) -> str:
    """Return a path for a list of paths: plain if it is plain, otherwise a JSON string."""
    # A name with a line end must not look like two names.
    if path.isprintable() and not path.startswith('"') and path == path.strip():
        return path
    return json.dumps(path)


def list_names(names: Iterable[str], limit: int = 12) -> str:
    """Return names separated by commas, at most `limit`, and the number of others."""
    known = [quote_text(n, 60)[1:-1] for n in names]
    if not known:
        return "none"
    rest = f" and {len(known) - limit} more" if len(known) > limit else ""
    return ", ".join(known[:limit]) + rest


def nearest(name: str, known: Iterable[str]) -> str:
    """Return " Did you mean 'x'?" for the most similar known name, or an empty text."""
    found = difflib.get_close_matches(name[:QUOTE_CHARS], list(known), n=1, cutoff=0.6)
    return f" Did you mean {quote_text(found[0])}?" if found else ""


def count_noun(number: int, noun: str) -> str:
    """Return "1 line" or "2 lines"."""
    return f"{number:,} {noun}" if number == 1 else f"{number:,} {noun}s"


def storable(text: str) -> str:
    """Return `text` with lone surrogates as escapes, which UTF-8 can encode."""
    return text.encode("utf-8", "backslashreplace").decode("utf-8")
