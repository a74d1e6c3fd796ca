"""Citations of a closing answer, compared with the tool log. Pure.

`[call:7] "3 passed"` claims that call 7 gave these words. A citation that is not found is an unsupported claim, and QC sees it.
White space is collapsed on both sides; everything else must be equal.
"""

import re
from collections.abc import Mapping
from dataclasses import dataclass

from mimir.domain.terminal_text import visible_text

# More citations are not compared; that there were more is a claim of its own.
MAX_CITATIONS = 200
_SHOWN = 200

_QUOTES = "|".join(
    rf"{a}(?P<q{n}>[^{b}]{{1,2000}}){b}" for n, (a, b) in enumerate(('""', "“”", "``"))
)
_CITATION = re.compile(
    rf"\[call:\s?(?P<number>\d{{1,6}})\](?:[ \t]*[:–—-]?\s{{0,4}}(?:{_QUOTES}))?"
)


@dataclass(frozen=True, slots=True, kw_only=True)
class Citation:
    """One reference to a tool call."""

    number: int
    """Of the call, from 1."""
    quote: str
    """Words of its result; empty: only the call is named."""

    def __str__(self) -> str:
        quote = self.quote if len(self.quote) <= _SHOWN else f"{self.quote[:_SHOWN]}…"
        return f'[call:{self.number}] "{quote}"' if quote else f"[call:{self.number}]"


def parse_citations(answer: str) -> tuple[Citation, ...]:
    """Return the citations of an answer, in order, each once."""
    found = (
        Citation(
            number=int(match["number"]),
            quote=_collapse_blanks(match["q0"] or match["q1"] or match["q2"] or ""),
        )
        for match in _CITATION.finditer(answer)
    )
    return tuple(dict.fromkeys(found))


def find_unsupported(answer: str, ledger: Mapping[int, str]) -> tuple[str, ...]:
    """Return the unsupported citations of a worker's answer, each with the reason.

    The answer is untrusted; `ledger` maps the number of each call to its result.
    """
    citations = parse_citations(answer)
    results: dict[int, str] = {}
    claims: list[str] = []
    for citation in citations[:MAX_CITATIONS]:
        number = citation.number
        if number not in ledger:
            claims.append(f"{citation}: there was no call {number}")
            continue
        if number not in results:
            results[number] = _collapse_blanks(ledger[number])
        if citation.quote not in results[number]:
            claims.append(f"{citation}: call {number} did not say this")
    if len(citations) > MAX_CITATIONS:
        claims.append(f"{len(citations) - MAX_CITATIONS} further citations were not looked up")
    return tuple(claims)


def _collapse_blanks(text: str) -> str:
    return " ".join(visible_text(text).split())
