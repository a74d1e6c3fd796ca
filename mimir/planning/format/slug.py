"""A short name for a request, fit for a folder: what `chains/<slug>/` is called. A number is added by whoever makes the folder."""

import hashlib
import re
import unicodedata

MAX_CHARS = 48
_EMPTY_WORDS = frozenset(
    [
        "a",
        "an",
        "and",
        "the",
        "of",
        "to",
        "for",
        "in",
        "on",
        "with",
        "that",
        "this",
        "please",
        "my",
        "our",
        "your",
        "is",
        "are",
        "be",
    ]
)


def slug(request: str) -> str:
    """Return lower-case ASCII words with `-` between, at most `MAX_CHARS` characters; never empty.

    A request without Latin letters gets a name from its hash, so that equal requests have equal names.
    """
    folded = unicodedata.normalize("NFKD", request[:2_000]).encode("ascii", "ignore").decode()
    every = re.findall(r"[a-z0-9]+", folded.casefold())
    words = [word for word in every if word not in _EMPTY_WORDS] or every
    name = ""
    for word in words:
        longer = f"{name}-{word[:MAX_CHARS]}" if name else word[:MAX_CHARS]
        if len(longer) > MAX_CHARS:
            break
        name = longer
    return (
        name or f"plan-{hashlib.sha256(request.encode('utf-8', 'surrogatepass')).hexdigest()[:8]}"
    )
