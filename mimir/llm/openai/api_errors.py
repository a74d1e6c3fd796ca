"""Error responses of an endpoint, and the scope that each one ends.

One table decides between `call` (retry), `attempt` (this conversation cannot be answered) and `run` (a setting is wrong).
"""

import json
import math
import re
from collections.abc import Mapping, Sequence
from datetime import UTC, datetime
from email.utils import parsedate_to_datetime
from html.parser import HTMLParser
from typing import Literal

from mimir.domain.json_value import as_array, as_object, as_text, is_array, is_object
from mimir.domain.value_class import value_class

# Cap of a Retry-After: an endpoint must not stop a run for hours.
LONGEST_WAIT_SECONDS = 120.0
_SHOWN_CHARACTERS = 300
# Bounds of the search for a message: the body is untrusted.
_READ_CHARACTERS = 4000
_MOST_LEVELS = 6
_MOST_PARTS = 100
_MESSAGES = ("message", "detail", "msg", "error", "error_description", "Message", "reason", "title")

Scope = Literal["call", "attempt", "run"]


@value_class
class ErrorResponse:
    """An error as the endpoint wrote it: untrusted."""

    status: int
    text: str
    """Its message, bounded; may hold secrets."""
    code: str = ""
    parameter: str = ""
    """Parameter that caused the error; empty: not named."""

    @property
    def is_about_form(self) -> bool:
        """True for a bad request that another form may repair: its content is accepted."""
        return self.status in (400, 422) and _content_error(self) is None

    @property
    def is_about_context(self) -> bool:
        """True for a conversation that is too long for the model."""
        return self.status in (400, 413, 422) and _is_too_long(self)


@value_class
class ErrorVerdict:
    """Scope that an error ends, and the next step of the user."""

    scope: Scope
    predicate: str
    """A predicate, such as "refused the key"."""
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
_ADDRESS = "Correct llm.base_url (or OPENAI_BASE_URL); it usually ends in /v1."
_MODEL = "Correct llm.model (or MIMIR_MODEL, or --model) to a model that this endpoint serves."
_PROXY = "Write user and password into llm.proxy or HTTPS_PROXY: http://USER:PASSWORD@HOST:PORT."
_CREDIT = "Add credit at the provider, or set llm.base_url and llm.api_key to another endpoint."


def parse_error_body(status: int, text: str) -> ErrorResponse:
    """Parse the body of an error response: any JSON, a page, or nothing."""
    try:
        value: object = json.loads(text)
    except (ValueError, RecursionError):
        return ErrorResponse(status=status, text=_page_text(text[:_READ_CHARACTERS]))
    return from_value(status, value)


def from_value(status: int, value: object) -> ErrorResponse:
    """Read an error object; servers use several forms."""
    # `{"error": {…}}`, `{"error": "…"}`, `{"detail": …}`, `{"message": …}`, and lists of these
    value = _first(value)
    error = _first(as_object(value).get("error", value))
    inner = as_object(error) or {"message": error}
    message: object = next((inner[name] for name in _MESSAGES if inner.get(name)), error)
    text = message if isinstance(message, str) else _message_in(message)
    words = [str(inner[k]) for k in ("code", "type") if isinstance(inner.get(k), str | int)]
    return ErrorResponse(
        status=status,
        text=text[:4000],
        code=" ".join(words)[:200],
        parameter=as_text(inner.get("param"))[:200],
    )


def _first(value: object) -> object:
    return value[0] if is_array(value) and len(value) == 1 else value


def _message_in(value: object) -> str:
    """Return the outermost message of nested JSON; the JSON itself if there is none."""
    level: list[object] = [value]
    for _ in range(_MOST_LEVELS):
        rows = [as_object(item) for item in level]
        # FastAPI names the parameter beside its message, so a list stays as it is.
        if any("loc" in row for row in rows):
            break
        texts = [row[name] for row in rows for name in _MESSAGES if isinstance(row.get(name), str)]
        if texts:
            return str(texts[0])
        inner = [part for item in level for part in _parts(item)]
        level = inner[:_MOST_PARTS]
    return json.dumps(value, default=str)


def _parts(value: object) -> Sequence[object]:
    return list(value.values()) if is_object(value) else as_array(value)


class _PageText(HTMLParser):
    """Reader of the texts that a page shows; its title comes first."""

    def __init__(self) -> None:
        super().__init__()
        self.texts: list[str] = []
        self._hidden = ""

    def handle_starttag(self, tag: str, attrs: object) -> None:
        """Note the beginning of text that is not shown."""
        self._hidden = tag if tag in ("script", "style") else self._hidden

    def handle_endtag(self, tag: str) -> None:
        """Note the end of text that is not shown."""
        self._hidden = "" if tag == self._hidden else self._hidden

    def handle_data(self, data: str) -> None:
        """Keep a text once: title and heading are often equal."""
        if not self._hidden and (text := data.strip()) and text not in self.texts:
            self.texts.append(text)


def _page_text(text: str) -> str:
    if "<" not in text:
        return text
    page = _PageText()
    page.feed(text)
    return ": ".join(page.texts)


def classify_error(refusal: ErrorResponse) -> ErrorVerdict:
    """Decide which scope an error ends."""
    status, words = refusal.status, f"{refusal.code} {refusal.text}"
    if status in (400, 413, 422):
        if (reason := _content_error(refusal)) is not None:
            return reason
        if _NO_TOOLS.search(refusal.text):
            return ErrorVerdict(
                scope="run", predicate="cannot call tools with this model", next_step=_MODEL
            )
    elif status == 429 and _NO_CREDIT.search(words):
        return ErrorVerdict(
            scope="run", predicate="has no credit left for this key", next_step=_CREDIT
        )
    elif status == 404 and re.search(r"\bmodel", words, re.IGNORECASE):
        return _UNKNOWN
    elif status in _BY_STATUS:
        return _BY_STATUS[status]
    elif status in (408, 409, 425, 429) or status >= 500:
        return ErrorVerdict(scope="call", predicate=_TEMPORARY.get(status, "failed"))
    elif 300 <= status < 400:
        # A redirect would carry the key to an address that the user did not name.
        return ErrorVerdict(
            scope="run", predicate="leads elsewhere; not followed", next_step=_ADDRESS
        )
    return ErrorVerdict(scope="attempt", predicate="refused the request")


_UNKNOWN = ErrorVerdict(scope="run", predicate="does not know the model", next_step=_MODEL)
_BY_STATUS = {
    status: ErrorVerdict(scope="run", predicate=predicate, next_step=next_step)
    for status, predicate, next_step in (
        (401, "refused the key", _KEY),
        (402, "wants payment", _CREDIT),
        (403, "forbids this key or model", f"{_KEY} Or: {_MODEL}"),
        (404, "has no chat completions at this address", _ADDRESS),
        (407, "cannot be reached: the proxy asks for a login", _PROXY),
        (405, "is no chat endpoint", _ADDRESS),
        (410, "is gone", _ADDRESS),
    )
}
_TEMPORARY = {429: "asks for fewer requests", 503: "is not available", 529: "is overloaded"}


def _content_error(refusal: ErrorResponse) -> ErrorVerdict | None:
    """Return the effect of a bad request whose content, not its form, is wrong."""
    words = f"{refusal.code} {refusal.text}"
    if _is_too_long(refusal):
        return ErrorVerdict(scope="attempt", predicate="says that the conversation is too long")
    if _FILTERED.search(words):
        return ErrorVerdict(scope="attempt", predicate="filtered the content")
    if refusal.parameter in ("", "model") and _UNKNOWN_MODEL.search(words):
        return _UNKNOWN
    return None


def _is_too_long(refusal: ErrorResponse) -> bool:
    words = f"{refusal.code} {refusal.text}"
    return refusal.status == 413 or _CONTEXT.search(words) is not None


def error_excerpt(text: str) -> str:
    """Return an endpoint's text on one line, short and without control characters."""
    text = " ".join("".join(c if c.isprintable() else " " for c in text).split())
    return text if len(text) <= _SHOWN_CHARACTERS else f"{text[:_SHOWN_CHARACTERS]}…"


def wait_seconds(headers: Mapping[str, str], now: datetime) -> float | None:
    """Return the seconds of a Retry-After in headers with lower-case names; None: unreadable."""
    exact = _number(headers.get("retry-after-ms", ""))
    if exact is not None:
        return _limit_wait(exact / 1000)
    value = headers.get("retry-after", "").strip()
    seconds = _number(value)
    if seconds is not None:
        return _limit_wait(seconds)
    until = _date(value)
    if until is None:
        return None
    # The endpoint's own clock is preferred: the clocks of two hosts need not agree.
    return _limit_wait((until - (_date(headers.get("date", "")) or now)).total_seconds())


def _limit_wait(seconds: float) -> float:
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
