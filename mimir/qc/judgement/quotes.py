"""Verification of quotes: a quote counts only if its source contains it. Pure.

White space is collapsed and terminal codes are removed on both sides; everything else must be equal. A quote needs at least twelve other characters, because almost
any text contains a shorter one.
"""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from functools import lru_cache

from mimir.domain.terminal_text import visible_text
from mimir.domain.verdict import CriterionOpinion, FixOpinion

MIN_CHARS = 12
"""Characters of a quote without white space."""

Sources = Mapping[str, str]
"""Name as QC writes it (`check:unit`, `qc:3`, `answer`) → its text; no other is quoted."""


QuotedOpinion = CriterionOpinion | FixOpinion


@dataclass(frozen=True, slots=True, kw_only=True)
class UnsupportedPass:
    """A `passed` without a verified quote."""

    what: str
    """`criterion c1` or `fix 2`."""
    why: str
    """Reason, for QC."""


def explain_missing_quote(quote: str, source: str, sources: Sources) -> str:
    """Return why a quote does not count; empty: its source contains it."""
    words = "".join(quote.split())
    if not words:
        return "there is no quote"
    # Counted without blanks, so that spaces cannot pad a short quote.
    if len(words) < MIN_CHARS:
        return f"the quote has fewer than {MIN_CHARS} characters"
    name = source.strip()
    if name not in sources:
        return f"there is no source {name[:80]!r} that may be quoted"
    if _collapse_blanks(quote) not in _collapse_blanks(sources[name]):
        return f"the quote is not in {name[:80]!r}"
    return ""


def is_quote_supported(opinion: QuotedOpinion, sources: Sources) -> bool:
    """True if the source of an opinion contains its quote."""
    return not explain_missing_quote(opinion.quote, opinion.source, sources)


def find_unsupported_passes(
    opinions: Iterable[tuple[str, QuotedOpinion]], sources: Sources
) -> tuple[UnsupportedPass, ...]:
    """Return each `passed` without a verified quote; `opinions` are (subject, opinion)."""
    return tuple(
        UnsupportedPass(what=what, why=why)
        for what, opinion in opinions
        if opinion.state == "passed"
        and (why := explain_missing_quote(opinion.quote, opinion.source, sources))
    )


@lru_cache(maxsize=64)
def _collapse_blanks(text: str) -> str:
    """Collapse white space; cached, because each criterion looks into the same long sources."""
    return " ".join(visible_text(text).split())
