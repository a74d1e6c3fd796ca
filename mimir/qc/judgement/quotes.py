"""Whether a quote stands where it claims to stand. Pure.

White space is collapsed on both sides (runs of it become one blank, at the ends none), everything else must be equal, and the quote
must hold at least twelve characters that are not white space: shorter ones stand in almost any text.
"""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from functools import lru_cache
from typing import Protocol

MIN_CHARS = 12
"""Characters of a quote that are not white space."""

Sources = Mapping[str, str]
"""Name as QC must write it (`check:unit`, `file:src/a.py`, `qc:3`, `call:7`, `answer`) → its text. What is not in here cannot be quoted."""


class QuotedOpinion(Protocol):
    """Something that QC says with a quote: of a criterion, or of a fix."""

    @property
    def state(self) -> str:
        """Only `passed` needs its quote."""
        ...

    @property
    def quote(self) -> str:
        """Words that are said to stand in the source."""
        ...

    @property
    def source(self) -> str:
        """Where."""
        ...


@dataclass(frozen=True, slots=True, kw_only=True)
class UnsupportedPass:
    """A `passed` whose quote does not hold."""

    what: str
    """`criterion c1` or `fix 2`."""
    why: str
    """In words for QC."""


def explain_missing_quote(quote: str, source: str, sources: Sources) -> str:
    """Say why a quote does not hold; empty: it stands in its source."""
    words = "".join(quote.split())
    if not words:
        return "there is no quote"
    if len(words) < MIN_CHARS:
        return f"the quote has fewer than {MIN_CHARS} characters"
    name = source.strip()
    if name not in sources:
        return f"there is no source {name[:80]!r} that may be quoted"
    if _collapse_blanks(quote) not in _collapse_blanks(sources[name]):
        return f"the quote does not stand in {name[:80]!r}"
    return ""


def is_quote_supported(opinion: QuotedOpinion, sources: Sources) -> bool:
    """True if the quote of this opinion stands in its source."""
    return not explain_missing_quote(opinion.quote, opinion.source, sources)


def find_unsupported_passes(
    opinions: Iterable[tuple[str, QuotedOpinion]], sources: Sources
) -> tuple[UnsupportedPass, ...]:
    """Return each `passed` that has no quote that holds; `opinions` are (what it is about, opinion)."""
    return tuple(
        UnsupportedPass(what=what, why=why)
        for what, opinion in opinions
        if opinion.state == "passed"
        and (why := explain_missing_quote(opinion.quote, opinion.source, sources))
    )


@lru_cache(maxsize=64)
def _collapse_blanks(text: str) -> str:
    """Collapse white space; sources are long and asked about once a criterion."""
    return " ".join(text.split())
