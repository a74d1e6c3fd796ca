"""Verification of quotes: a quote counts only if its source contains it. Pure.

White space is collapsed and terminal codes are removed on both sides; everything else must be equal. A quote needs at least twelve other characters, because almost
any text contains a shorter one. Words that the quoting agent, or the worker, gave to the command itself are no evidence.
"""

import re
from collections.abc import Iterable, Mapping
from functools import lru_cache
from types import MappingProxyType

from mimir.agents.citations import is_given
from mimir.domain.terminal_text import visible_text
from mimir.domain.verdict import CriterionOpinion, FixOpinion

MIN_CHARS = 12
"""Characters of a quote without white space."""

Sources = Mapping[str, str]
"""Name as QC writes it (`check:unit`, `qc:3`, `answer`) → its text; no other is quoted."""


Commands = Mapping[str, str]
"""Name of a source → arguments of its tool calls; they are no evidence."""
NO_COMMANDS: Commands = MappingProxyType({})

QuotedOpinion = CriterionOpinion | FixOpinion


def name_source(source: str) -> str:
    """Return the name of a source without marks around it, and of a file without its lines."""
    match = _SOURCE.fullmatch(source.strip())
    if match is None:
        return source.strip()
    kind, name = match["kind"], match["name"].strip()
    if kind == "file":
        name = _LINES.sub("", name.strip("`'\"")).removeprefix("/workspace/").removeprefix("./")
    return f"{kind}:{name}" if name else kind


def explain_missing_quote(
    quote: str, source: str, sources: Sources, commands: Commands = NO_COMMANDS
) -> str:
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
    # Some models write the marks around a quote into it.
    plain = _OUTER_MARKS.sub(r"\2", quote.strip())
    forms = (quote, plain) if len("".join(plain.split())) >= MIN_CHARS else (quote,)
    text = _collapse_blanks(sources[name])
    quote = next((form for form in forms if _collapse_blanks(form) in text), "")
    if not quote:
        return f"the quote is not in {name[:80]!r}"
    if is_given(quote, commands.get(name, "")):
        return f"the quote was given to the command of {name[:80]!r}, so it proves nothing"
    return ""


def find_unsupported_passes(
    opinions: Iterable[tuple[str, QuotedOpinion]],
    sources: Sources,
    commands: Commands = NO_COMMANDS,
) -> list[str]:
    """Describe each `passed` without a verified quote; `opinions` are (subject, opinion)."""
    return [
        f"{what}: {why}"
        for what, opinion in opinions
        if opinion.state == "passed"
        and (why := explain_missing_quote(opinion.quote, opinion.source, sources, commands))
    ]


_SOURCE = re.compile(
    r"[\[(`'\"]*(?P<kind>check|file|qc|call|answer)(?:s?\s*[:#]\s*|\s+|$)(?P<name>[^\n]*?)[\])`'\"]*"
)
_LINES = re.compile(
    r"(?::\d+(?:[-:–]\d+)*|#L\d+(?:-L?\d+)?|,?\s+\(?lines?\s+\d[^/]*)\Z", re.IGNORECASE
)
_OUTER_MARKS = re.compile(r"""\A(["'`])(.*)\1\Z""", re.DOTALL)


@lru_cache(maxsize=64)
def _collapse_blanks(text: str) -> str:
    """Collapse white space; cached, because each criterion looks into the same long sources."""
    return " ".join(visible_text(text).split())
