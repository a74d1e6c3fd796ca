"""Citations of a closing answer, compared with their sources. Pure.

`[call:7] "3 passed"` claims that call 7 gave these words. A citation that is not found is an unsupported claim, and QC sees it.
Invoked agents also cite files, `[file:PATH] "words"`, and memories, `[memory:ID]`.
White space is collapsed on both sides; everything else must be equal.
"""

import json
import re
from collections.abc import Mapping
from typing import Literal

from mimir.agents.tool_log import ToolLogEntry
from mimir.domain.json_value import is_array, is_object
from mimir.domain.terminal_text import visible_text
from mimir.domain.value_class import value_class

# More citations are not compared; that there were more is a claim of its own.
MAX_CITATIONS = 200
_SHOWN = 200

_QUOTES = "|".join(
    rf"{a}(?P<q{n}>[^{b}]{{1,2000}}){b}" for n, (a, b) in enumerate(('""', "“”", "``"))
)
_CITATION = re.compile(
    rf"\[call:\s?(?P<number>\d{{1,6}})\](?:[ \t]*[:–—-]?\s{{0,4}}(?:{_QUOTES}))?"
)


@value_class
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


def find_unsupported(answer: str, log: Mapping[int, ToolLogEntry]) -> tuple[str, ...]:
    """Return the unsupported citations of a worker's answer, each with the reason.

    The answer is untrusted; `log` maps the number of each call to the call.
    """
    citations = parse_citations(answer)
    results: dict[int, str] = {}
    claims: list[str] = []
    for citation in citations[:MAX_CITATIONS]:
        number = citation.number
        if number not in log:
            claims.append(f"{citation}: there was no call {number}")
            continue
        if number not in results:
            results[number] = _collapse_blanks(log[number].text)
        if citation.quote not in results[number]:
            claims.append(f"{citation}: call {number} did not say this")
        elif citation.quote and is_given(citation.quote, argument_text(log[number].arguments)):
            claims.append(f"{citation}: these words were given to call {number}")
    if len(citations) > MAX_CITATIONS:
        claims.append(f"{len(citations) - MAX_CITATIONS} further citations were not looked up")
    return tuple(claims)


MIN_QUOTE = 12
"""Characters of a quote from a file; shorter ones occur in any file."""
_SOURCE = re.compile(
    rf"\[(?P<kind>file|memory):\s?(?P<name>[^\]\n]{{1,500}})\](?:[ \t]*[:–—-]?\s{{0,4}}(?:{_QUOTES}))?"
)


@value_class
class SourceCitation:
    """One reference to a file or a memory."""

    kind: Literal["file", "memory"]
    name: str
    quote: str

    def __str__(self) -> str:
        quote = self.quote if len(self.quote) <= _SHOWN else f"{self.quote[:_SHOWN]}…"
        return f'[{self.kind}:{self.name}] "{quote}"' if quote else f"[{self.kind}:{self.name}]"


def parse_sources(words: str) -> tuple[SourceCitation, ...]:
    """Return the citations of files and memories, in order, each once."""
    found = (
        SourceCitation(
            kind="file" if match["kind"] == "file" else "memory",
            name=match["name"].strip(),
            quote=_collapse_blanks(match["q0"] or match["q1"] or match["q2"] or ""),
        )
        for match in _SOURCE.finditer(words)
    )
    return tuple(dict.fromkeys(found))


def count_citations(words: str) -> int:
    """Count the citations of an agent's answer, each once."""
    return len(parse_citations(words)) + len(parse_sources(words))


def find_unsupported_sources(
    words: str, files: Mapping[str, str | None], memories: str
) -> tuple[str, ...]:
    """Return the citations of files and memories that do not hold, each with the reason.

    Args:
        words: Of the answer; untrusted.
        files: Path → text in the delivered tree; None: there is no text file of the name.
        memories: Everything that the agent was given of the memory.
    """
    claims = ((one, _explain_source(one, files, memories)) for one in parse_sources(words))
    return tuple(f"{one}: {reason}" for one, reason in claims if reason)


def _explain_source(one: SourceCitation, files: Mapping[str, str | None], memories: str) -> str:
    """Return the fault of a citation; empty: it has none."""
    if one.kind == "memory":
        # An id is not found within a longer one.
        known = re.search(rf"(?<![\w#-]){re.escape(one.name)}(?![\w#-])", memories)
        return "" if known else "no memory of this id was given"
    if len(one.quote) < MIN_QUOTE:
        return f"the quote has fewer than {MIN_QUOTE} characters"
    if one.name not in files:
        return "it was not looked up"
    text = files[one.name]
    if text is None:
        return "there is no such text file"
    return "" if one.quote in _collapse_blanks(text) else "the file does not contain this text"


def find_unquoted_calls(words: str) -> tuple[str, ...]:
    """Return the citations of calls without words of the result: they verify nothing."""
    return tuple(f"{one}: it has no quote" for one in parse_citations(words) if not one.quote)


def argument_text(arguments: str) -> str:
    """Return the texts of a call's arguments, which are JSON in most cases."""
    try:
        held: list[object] = [json.loads(arguments)]
    except (ValueError, RecursionError):
        return arguments
    for each in held:  # it grows by what they hold
        if is_object(each):
            held.extend(each.values())
        elif is_array(each):
            held.extend(each)
    return "\n".join(str(each) for each in held if isinstance(each, str | int | float))


def is_given(quote: str, arguments: str) -> bool:
    """Return whether a command that only prints its arguments can give the quote."""
    if not arguments:
        return False
    words, given = _WORD.findall(quote), _WORD.findall(arguments)
    if not words:
        return _collapse_blanks(quote) in _collapse_blanks(arguments)
    return f" {' '.join(words)} " in f" {' '.join(given)} " or set(words) <= set(given)


_WORD = re.compile(r"\w+")


def _collapse_blanks(text: str) -> str:
    return " ".join(visible_text(text).split())
