"""What an endpoint says when it does not answer, and what that ends. Pure.

One table decides between `call` (try again), `attempt` (this conversation cannot be answered) and `run` (a setting is wrong).
"""

import json
import math
import re
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import UTC, datetime
from email.utils import parsedate_to_datetime
from typing import Literal, cast

LONGEST_WAIT_SECONDS = 120.0
"""Cap of what an endpoint may ask us to wait."""
_SHOWN_CHARACTERS = 300

Scope = Literal["call", "attempt", "run"]


@dataclass(frozen=True, slots=True, kw_only=True)
class ErrorResponse:
    """An answer that is none, as the endpoint wrote it: untrusted."""

    status: int
    text: str
    """Its message, bounded; not yet free of secrets."""
    code: str = ""
    parameter: str = ""
    """Name of the parameter that it complains of; empty: not said."""

    @property
    def is_about_form(self) -> bool:
        """True for a bad request that may be mended by writing it otherwise: not too long, not filtered, model known."""
        return self.status in (400, 422) and _reason(self) is None


@dataclass(frozen=True, slots=True, kw_only=True)
class ErrorVerdict:
    """What a refusal ends, and what a person can do."""

    scope: Scope
    what: str
    """Half a sentence: "refused the key"."""
    next_step: str | None = None


_CONTEXT = re.compile(
    r"context[ _]length|context[ _]window|context size|maximum context|too many tokens|too long"
    r"|reduce the length|exceed_context|token limit exceeded|input tokens? exceed",
    re.IGNORECASE,
)
_FILTERED = re.compile(
    r"content[ _]filter|content[ _]policy|content management policy|responsibleaipolicy"
    r"|safety system|content_blocked|data_inspection",
    re.IGNORECASE,
)
_UNKNOWN_MODEL = re.compile(
    r"model_not_found|invalid_model|unknown model|invalid model|not a valid model"
    r"|models?\b.{0,160}?(?:does not exist|do not exist|not found|not exist|is not available|unknown)"
    r"|no such model|try pulling it",
    re.IGNORECASE | re.DOTALL,
)
_NO_TOOLS = re.compile(
    r"(?:not support|n't support|unsupported|without).{0,60}\btools?\b|\btools?\b.{0,60}(?:not supported|unsupported)"
    r"|tool choice requires|function calling is not",
    re.IGNORECASE,
)
_NO_CREDIT = re.compile(r"insufficient_quota|exceeded your current quota|billing", re.IGNORECASE)

_KEY = "Set llm.api_key (or the variable that llm.api_key_env names) to a key of this endpoint."
_ADDRESS = "Correct llm.base_url (or OPENAI_BASE_URL); it ends in /v1 as a rule."
_MODEL = "Correct llm.model (or MIMIR_MODEL, or --model) to a model that this endpoint serves."
_CREDIT = "Add credit at the provider, or set llm.base_url and llm.api_key to another endpoint."


def parse_error_body(status: int, text: str) -> ErrorResponse:
    """Read the body of an error answer: the protocol's JSON, another JSON, a page, or nothing."""
    try:
        value: object = json.loads(text)
    except (ValueError, RecursionError):
        page = re.sub(r"<[^>]{0,200}>", " ", text[:4000])
        return ErrorResponse(status=status, text=page)
    return from_value(status, value)


def from_value(status: int, value: object) -> ErrorResponse:
    """Read an error object: `{"error": {…}}`, `{"error": "…"}`, `{"detail": …}`, `{"message": …}`."""
    row = as_object(value)
    error = row.get("error", value)
    inner = as_object(error) or {"message": error}
    message: object = inner.get("message") or inner.get("detail") or inner.get("msg") or error
    said = message if isinstance(message, str) else json.dumps(message, default=str)
    words = [str(inner[k]) for k in ("code", "type") if isinstance(inner.get(k), str | int)]
    parameter = inner.get("param")
    return ErrorResponse(
        status=status,
        text=said[:4000],
        code=" ".join(words)[:200],
        parameter=parameter[:200] if isinstance(parameter, str) else "",
    )


def as_object(value: object) -> Mapping[str, object]:
    """Return a JSON object as a mapping; an empty one for any other value."""
    return cast("Mapping[str, object]", value) if isinstance(value, dict) else {}


def classify_error(refusal: ErrorResponse) -> ErrorVerdict:
    """Decide what a refusal ends."""
    status = refusal.status
    if status in (400, 413, 422):
        return _bad_request(refusal)
    if status == 429 and _NO_CREDIT.search(f"{refusal.code} {refusal.text}"):
        return ErrorVerdict(scope="run", what="has no credit left for this key", next_step=_CREDIT)
    if status == 404:
        return _not_found(refusal)
    if status in _RULINGS:
        return _RULINGS[status]
    if status in (408, 409, 425, 429) or status >= 500:
        return ErrorVerdict(scope="call", what=_TEMPORARY.get(status, "failed"))
    if 300 <= status < 400:
        return ErrorVerdict(scope="run", what="leads elsewhere; not followed", next_step=_ADDRESS)
    return ErrorVerdict(scope="attempt", what="refused the request")


_RULINGS = {
    401: ErrorVerdict(scope="run", what="refused the key", next_step=_KEY),
    402: ErrorVerdict(scope="run", what="wants payment", next_step=_CREDIT),
    403: ErrorVerdict(
        scope="run", what="forbids this key or model", next_step=f"{_KEY} Or: {_MODEL}"
    ),
    405: ErrorVerdict(scope="run", what="is no chat endpoint", next_step=_ADDRESS),
    410: ErrorVerdict(scope="run", what="is gone", next_step=_ADDRESS),
}
_TEMPORARY = {
    429: "asks for fewer requests",
    503: "is not available",
    529: "is overloaded",
}


def _bad_request(refusal: ErrorResponse) -> ErrorVerdict:
    reason = _reason(refusal)
    if reason is not None:
        return reason
    if _NO_TOOLS.search(refusal.text):
        return ErrorVerdict(scope="run", what="cannot call tools with this model", next_step=_MODEL)
    return ErrorVerdict(scope="attempt", what="refused the request")


def _reason(refusal: ErrorResponse) -> ErrorVerdict | None:
    """Return why a request was bad in its content, not in its form."""
    words = f"{refusal.code} {refusal.text}"
    if refusal.status == 413 or _CONTEXT.search(words):
        return ErrorVerdict(scope="attempt", what="says that the conversation is too long")
    if _FILTERED.search(words):
        return ErrorVerdict(scope="attempt", what="filtered the content")
    if refusal.parameter in ("", "model") and _UNKNOWN_MODEL.search(words):
        return ErrorVerdict(scope="run", what="does not know the model", next_step=_MODEL)
    return None


def _not_found(refusal: ErrorResponse) -> ErrorVerdict:
    if re.search(r"\bmodel", f"{refusal.code} {refusal.text}", re.IGNORECASE):
        return ErrorVerdict(scope="run", what="does not know the model", next_step=_MODEL)
    return ErrorVerdict(
        scope="run", what="has no chat completions at this address", next_step=_ADDRESS
    )


def error_excerpt(text: str) -> str:
    """Return what an endpoint said on one line, short and without control characters."""
    text = "".join(c if c.isprintable() else " " for c in text)
    text = " ".join(text.split())
    return text if len(text) <= _SHOWN_CHARACTERS else f"{text[:_SHOWN_CHARACTERS]}…"


def wait_seconds(headers: Mapping[str, str], now: datetime) -> float | None:
    """Return how long an endpoint asks us to wait: 0 to `LONGEST_WAIT_SECONDS`; None: it does not say, or nothing readable.

    Args:
        headers: With lower-case names.
        now: Used for a date where the answer has no `Date` of its own: hosts' clocks need not agree.
    """
    exact = _number(headers.get("retry-after-ms", ""))
    if exact is not None:
        return _bounded(exact / 1000)
    value = headers.get("retry-after", "").strip()
    seconds = _number(value)
    if seconds is not None:
        return _bounded(seconds)
    until = _date(value)
    if until is None:
        return None
    return _bounded((until - (_date(headers.get("date", "")) or now)).total_seconds())


def _bounded(seconds: float) -> float:
    return min(max(seconds, 0.0), LONGEST_WAIT_SECONDS)


def _number(text: str) -> float | None:
    try:
        value = float(text)
    except ValueError:
        return None
    return None if math.isnan(value) else value


def _date(text: str) -> datetime | None:
    try:
        date = parsedate_to_datetime(text)
    except (ValueError, TypeError, OverflowError):
        return None
    return date if date.tzinfo else date.replace(tzinfo=UTC)
