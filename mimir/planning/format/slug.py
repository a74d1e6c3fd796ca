"""Slug of a request: the folder name in `chains/<slug>/`. Pure."""

import re
import unicodedata

from mimir.domain.text_hash import hash_text

MAX_CHARS = 48
_EMPTY_WORD = re.compile("an?|and|the|of|to|for|in|on|with|that|this|please|my|our|your|is|are|be")


def slug(request: str) -> str:
    """Return lower-case ASCII words joined by `-`: 1 to `MAX_CHARS` characters."""
    folded = unicodedata.normalize("NFKD", request[:2_000]).encode("ascii", "ignore").decode()
    every = re.findall(r"[a-z0-9]+", folded.casefold())
    name = ""
    # A request of empty words only keeps them: a name of little meaning is better than a hash.
    for word in [word for word in every if not _EMPTY_WORD.fullmatch(word)] or every:
        longer = f"{name}-{word[:MAX_CHARS]}" if name else word[:MAX_CHARS]
        if len(longer) > MAX_CHARS:
            break
        name = longer
    # A request without Latin letters: equal requests still have equal names.
    digest = hash_text(request)
    return name or f"plan-{digest[:8]}"
