"""Faults that a model script can name: HTTP responses, and the errors they cause.

The scripted model raises the error of the real client; a test server sends the response itself.
"""

from collections.abc import Mapping
from typing import Literal

from mimir.domain.value_class import value_class
from mimir.errors import ModelError
from mimir.llm.openai.api_errors import LONGEST_WAIT_SECONDS, ErrorResponse, classify_error

Kind = Literal["status", "wire", "answer"]
"""`status`: an HTTP error · `wire`: a broken answer · `answer`: an odd answer."""
RetryAfter = Literal["", "seconds", "date", "absurd", "negative", "garbled"]


@value_class
class ScriptedFault:
    """One fault of an endpoint."""

    kind: Kind
    says: str
    """Text of the error, or the defect of the answer."""
    status: int = 200
    code: str = ""
    html: bool = False
    """True: a page instead of the protocol's JSON."""
    retry_after: RetryAfter = ""


def _status(
    status: int, says: str, code: str = "", *, html: bool = False, retry_after: RetryAfter = ""
) -> ScriptedFault:
    return ScriptedFault(
        kind="status", status=status, says=says, code=code, html=html, retry_after=retry_after
    )


def _limit(retry_after: RetryAfter) -> ScriptedFault:
    return _status(429, "Rate limit reached.", "rate_limit_exceeded", retry_after=retry_after)


_WIRE = {
    "refused": "the connection is closed without an answer",
    "reset": "the connection is reset in the middle of the answer",
    "stall_first_byte": "no byte arrives",
    "stall_middle": "no further byte arrives after half of the answer",
    "cut_stream": "the stream stops before its end mark",
    "truncated_json": "the JSON of the answer is cut off",
    "invalid_json": "the answer is not JSON",
    "error_in_stream": "an error after half of the stream",
    "huge": "an answer of 10 MB",
    "endless": "a text that never ends",
    "endless_pings": "a stream of comments that never ends",
}
_ODD_ANSWERS = {
    "empty": "an answer without text and calls",
    "unknown_tool": "a call of a tool that does not exist",
    "wrong_arguments": "a call whose arguments do not fit",
    "invalid_arguments": "a call whose arguments are not JSON",
    "hundred_calls": "100 calls in one message",
    "odd_characters": "lone surrogates, NUL and U+FFFD in the text",
    "finish_length": "half of the text, finish_reason length",
    "content_filter": "half of the text, finish_reason content_filter",
    "usage_missing": "a good answer without usage",
    "wrong_content_type": "a good answer labelled text/plain",
}
FAULTS: Mapping[str, ScriptedFault] = {
    "rate_limited": _limit("seconds"),
    "rate_limited_date": _limit("date"),
    "rate_limited_absurd": _limit("absurd"),
    "rate_limited_negative": _limit("negative"),
    "rate_limited_garbled": _limit("garbled"),
    "rate_limited_bare": _limit(""),
    "no_credit": _status(429, "You exceeded your current quota.", "insufficient_quota"),
    "server_error": _status(500, "The server had an error."),
    "bad_gateway": _status(502, "Bad Gateway", html=True),
    "unavailable": _status(503, "Service unavailable."),
    "gateway_timeout": _status(504, "Gateway Time-out", html=True),
    "overloaded": _status(529, "Overloaded."),
    "unauthorized": _status(401, "Incorrect API key provided.", "invalid_api_key"),
    "payment_required": _status(402, "Payment required."),
    "forbidden": _status(403, "Access denied."),
    "unknown_model": _status(404, "The model does not exist.", "model_not_found"),
    "wrong_address": _status(404, "404 page not found", html=True),
    "redirect": _status(302, "Found", html=True),
    "context_length": _status(
        400, "This model's maximum context length is 8192 tokens.", "context_length_exceeded"
    ),
    "filtered": _status(400, "The prompt was blocked.", "content_filter"),
    "bad_request": _status(400, "Invalid request."),
    "unsupported_parameter": _status(400, "Unsupported parameter.", "unsupported_parameter"),
    **{name: ScriptedFault(kind="wire", says=says) for name, says in _WIRE.items()},
    "html_page": ScriptedFault(kind="wire", says="status 200 with a page", html=True),
    **{name: ScriptedFault(kind="answer", says=says) for name, says in _ODD_ANSWERS.items()},
}
ODD_TEXT = "odd: \ud800 lone, \0 nul, \ufffd replacement"
UNKNOWN_TOOL = "teleport"


def as_error(name: str, retry_after_seconds: float) -> ModelError | None:
    """Return the error that the real client would raise for a fault; None: it gets an answer."""
    fault = FAULTS[name]
    endpoint = f"The endpoint of the model script ({name})"
    if fault.kind == "wire":
        return ModelError(f"{endpoint}: {fault.says}.", scope="call")
    if fault.kind == "answer":
        return None
    effect = classify_error(ErrorResponse(status=fault.status, text=fault.says, code=fault.code))
    waits = {
        "seconds": min(retry_after_seconds, LONGEST_WAIT_SECONDS),
        "date": min(retry_after_seconds, LONGEST_WAIT_SECONDS),
        "absurd": LONGEST_WAIT_SECONDS,
        "negative": 0.0,
    }
    return ModelError(
        f"{endpoint}: {effect.predicate} ({fault.status}): {fault.says}",
        scope=effect.scope,
        status=fault.status,
        retry_after_seconds=waits.get(fault.retry_after),
        next_step=effect.next_step,
    )
