"""Protocol features of one endpoint, learned from its refusals.

A 400 that names a parameter changes the next request once: the parameter is dropped, renamed or capped.
"""

import re
from collections.abc import Collection
from dataclasses import replace

from mimir.domain.value_class import value_class
from mimir.llm.openai.api_errors import ErrorResponse

_DROPPABLE = ("temperature", "tool_choice", "response_format", "stream_options", "stream")
_ALIASES = {
    "json_schema": "response_format",
    "structured output": "response_format",
    "tool choice": "tool_choice",
}
_ABOUT_ANSWER = re.compile(
    r"tool|function|json|mime|schema|structured|grammar|response format", re.IGNORECASE
)
_NUMBER = re.compile(r"(?<![\w.])\d[\d,]{1,9}(?![\w.]*\w)")
_CONTEXT_NUMBER = re.compile(
    r"(?:context (?:length|window|size)|model_max_len|n_ctx|limit|maximum)\D{0,40}(\d[\d,]{2,9})",
    re.IGNORECASE,
)
# An answer with less room is useless.
_LEAST_ANSWER = 256
_WANTED = re.compile(
    r"missing|required|passed back|must be (?:passed|sent|included)", re.IGNORECASE
)
PROMPT = "prompt"
_TOKENS = ("max_tokens", "max_completion_tokens")
_COMPLAINT = re.compile(
    r"unsupported|not support|n't support|unrecogni[sz]ed|unknown|unexpected|invalid|not permitted"
    r"|not allowed|extra_forbidden|only the default|incompatible|not available|not implemented"
    r"|cannot be used|can't be used|deprecated|too large|must be|called a tool",
    re.IGNORECASE,
)
_AT_MOST = re.compile(
    r"(?:at most|less than or equal to|<=|maximum(?: value)?(?: is| of|:)|up to)\s*`?(\d{1,7})\b",
    re.IGNORECASE,
)


@value_class
class Capabilities:
    """Form of a request for one endpoint and model."""

    tokens: str = "max_tokens"
    """Name of the parameter that bounds the answer."""
    renamed: bool = False
    """True: its other name was refused."""
    token_cap: int | None = None
    """Most that it accepts; None: not known."""
    context_tokens: int | None = None
    """Most tokens of prompt and answer together; None: not known."""
    dropped: frozenset[str] = frozenset()
    """Parameters that it does not know."""


@value_class
class RequestTokens:
    """Size of a request, for an error about the context length."""

    prompt: int = 0
    """Estimate."""
    answer: int = 0
    """Requested limit."""


@value_class
class CapabilityChange:
    """One fact about an endpoint, reported once."""

    endpoint: str
    model: str
    parameter: str
    change: str
    """In words: "dropped", "renamed to …", "capped at …"."""

    @property
    def notice(self) -> str:
        """The fact as a sentence."""
        does_not = "count the whole" if self.parameter == PROMPT else "take"
        return f"{self.endpoint} does not {does_not} {self.parameter!r} for {self.model!r}: {self.change}."


def adapt(
    dialect: Capabilities,
    refusal: ErrorResponse,
    sent: Collection[str],
    *,
    opaque: Collection[str] = (),
    size: RequestTokens | None = None,
) -> tuple[Capabilities, str, str] | None:
    """Return the changed dialect, the parameter and the change in words; None: no change.

    Args:
        dialect: Form of the refused request.
        refusal: The endpoint's answer.
        sent: Parameters of the request.
        opaque: Unknown members of its messages (see `Message.opaque`).
        size: Of the request.
    """
    if refusal.is_about_context and size is not None and dialect.context_tokens is None:
        return _adapt_context(dialect, refusal, size)
    if not refusal.is_about_form:
        return None
    # A member that the endpoint asks for is not one that it refuses.
    unwanted = () if _WANTED.search(refusal.text) else set(opaque) - dialect.dropped
    for name in _complained_parameters(refusal, {*sent, *unwanted}, unwanted):
        if name in _TOKENS:
            return _adapt_token_limit(dialect, refusal, name)
        if name in _DROPPABLE or name in unwanted:
            return _drop(dialect, name)
    # Endpoints describe this conflict without the names of the parameters.
    if {"tools", "response_format"} <= {*sent} and _ABOUT_ANSWER.search(refusal.text):
        return _drop(dialect, "response_format")
    return None


def _adapt_context(
    dialect: Capabilities, refusal: ErrorResponse, size: RequestTokens
) -> tuple[Capabilities, str, str] | None:
    """Take the context length from the numbers of an error, if a shorter answer fits."""
    numbers = [int(text.replace(",", "")) for text in _NUMBER.findall(refusal.text[:1000])]
    named = _CONTEXT_NUMBER.search(refusal.text[:1000])
    limit = int(named[1].replace(",", "")) if named else 0
    # Servers name the prompt's own tokens, or its sum with the answer.
    prompts = [n for n in numbers if n not in (limit, size.answer) and n < limit]
    prompts += [n - size.answer for n in numbers if limit < n < limit + size.answer]
    # A number far from the estimate is another one.
    likely = [p for p in prompts if size.prompt <= 2 * p <= 4 * size.prompt]
    prompt = max(likely, default=size.prompt)
    if prompt + _LEAST_ANSWER > limit or prompt + size.answer <= limit:
        return None
    # The prompt is estimated before each request: the error of the estimate is taken off.
    context = limit - max(0, prompt - size.prompt)
    learned = replace(dialect, context_tokens=context)
    return learned, dialect.tokens, f"reduced to a context of {limit} tokens"


def _drop(dialect: Capabilities, name: str) -> tuple[Capabilities, str, str]:
    return replace(dialect, dropped=dialect.dropped | {name}), name, "dropped"


def _adapt_token_limit(
    dialect: Capabilities, refusal: ErrorResponse, name: str
) -> tuple[Capabilities, str, str] | None:
    most = _AT_MOST.search(refusal.text)
    if most is not None and dialect.token_cap is None and int(most[1]) > 0:
        return replace(dialect, token_cap=int(most[1])), name, f"capped at {most[1]}"
    # Only one renaming: an endpoint that refuses both names would be asked forever.
    if most is not None or dialect.renamed or not _complains(refusal):
        return None
    other = _TOKENS[1 - _TOKENS.index(name)]
    return replace(dialect, tokens=other, renamed=True), name, f"renamed to {other}"


def _complained_parameters(
    refusal: ErrorResponse, sent: Collection[str], unwanted: Collection[str]
) -> list[str]:
    """Return the sent parameters that a refusal names, in the order of its text."""
    head = re.split(r"[.\[]", refusal.parameter, maxsplit=1)[0]
    if head in sent and not (head == "messages" and unwanted):
        return [head]
    if not _complains(refusal):
        return []
    text = f"{refusal.text} {refusal.parameter}".lower()
    places: dict[str, int] = {}
    for word in (*_DROPPABLE, *_TOKENS, *_ALIASES, *unwanted):
        name = _ALIASES.get(word, word)
        found = re.search(rf"(?<![a-z_]){re.escape(word.lower())}(?![a-z_])", text)
        if found and name in sent:
            places[name] = min(found.start(), places.get(name, found.start()))
    return sorted(places, key=lambda name: places[name])


def _complains(refusal: ErrorResponse) -> bool:
    return _COMPLAINT.search(f"{refusal.text} {refusal.code}") is not None
