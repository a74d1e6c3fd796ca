"""Every trouble that a play can stage, by name: what an endpoint would answer, and what that means without HTTP.

The scripted model raises the error that the real client would make of it; a test server sends the thing itself.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Literal

from mimir.errors import ModelError
from mimir.llm.openai.api_errors import LONGEST_WAIT_SECONDS, ErrorResponse, classify_error

Kind = Literal["status", "wire", "answer"]
"""`status`: an HTTP error · `wire`: the answer breaks on its way · `answer`: a whole answer that is odd."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ScriptedFault:
    """One trouble."""

    kind: Kind
    says: str
    """What the endpoint says, or what happens to its answer."""
    status: int = 200
    code: str = ""
    html: bool = False
    """True: a page instead of the protocol's JSON."""
    retry_after: Literal["", "seconds", "date", "absurd", "negative", "garbled"] = ""


def _status(status: int, says: str, code: str = "", *, html: bool = False) -> ScriptedFault:
    return ScriptedFault(kind="status", status=status, says=says, code=code, html=html)


def _limit(
    retry_after: Literal["", "seconds", "date", "absurd", "negative", "garbled"],
) -> ScriptedFault:
    return ScriptedFault(
        kind="status",
        status=429,
        says="Rate limit reached.",
        code="rate_limit_exceeded",
        retry_after=retry_after,
    )


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
    "refused": ScriptedFault(kind="wire", says="the connection is closed without an answer"),
    "reset": ScriptedFault(kind="wire", says="the connection is reset in the middle of the answer"),
    "stall_first_byte": ScriptedFault(kind="wire", says="nothing is said"),
    "stall_middle": ScriptedFault(
        kind="wire", says="nothing more is said after half of the answer"
    ),
    "cut_stream": ScriptedFault(kind="wire", says="the stream ends without its end"),
    "truncated_json": ScriptedFault(kind="wire", says="the JSON of the answer is cut off"),
    "invalid_json": ScriptedFault(kind="wire", says="the answer is no JSON"),
    "html_page": ScriptedFault(kind="wire", says="status 200 with a page", html=True),
    "wrong_content_type": ScriptedFault(kind="wire", says="a good answer labelled text/plain"),
    "error_in_stream": ScriptedFault(kind="wire", says="an error after half of the stream"),
    "huge": ScriptedFault(kind="wire", says="an answer of 10 MB"),
    "endless": ScriptedFault(kind="wire", says="a text that never ends"),
    "endless_pings": ScriptedFault(kind="wire", says="a stream of comments that never ends"),
    "empty": ScriptedFault(kind="answer", says="an answer without text and calls"),
    "unknown_tool": ScriptedFault(kind="answer", says="a call of a tool that is not there"),
    "wrong_arguments": ScriptedFault(kind="answer", says="a call whose arguments do not fit"),
    "invalid_arguments": ScriptedFault(kind="answer", says="a call whose arguments are no JSON"),
    "hundred_calls": ScriptedFault(kind="answer", says="100 calls in one message"),
    "odd_characters": ScriptedFault(
        kind="answer", says="lone surrogates, NUL and U+FFFD in the text"
    ),
    "finish_length": ScriptedFault(kind="answer", says="half of the text, finish_reason length"),
    "content_filter": ScriptedFault(
        kind="answer", says="half of the text, finish_reason content_filter"
    ),
    "usage_missing": ScriptedFault(kind="answer", says="a good answer without usage"),
}
ODD_TEXT = "odd: \ud800 lone, \0 nul, \ufffd replacement"
UNKNOWN_TOOL = "teleport"


def as_error(name: str, retry_after_seconds: float) -> ModelError | None:
    """Return what the real client would raise for a fault; None: it would give an answer."""
    fault = FAULTS[name]
    where = f"The model endpoint of the play ({name})"
    if fault.kind == "wire":
        return ModelError(f"{where}: {fault.says}.", scope="call")
    if fault.kind == "answer":
        return None
    ruling = classify_error(ErrorResponse(status=fault.status, text=fault.says, code=fault.code))
    return ModelError(
        f"{where}: {ruling.what} ({fault.status}): {fault.says}",
        scope=ruling.scope,
        status=fault.status,
        retry_after_seconds=_wait(fault, retry_after_seconds),
        next_step=ruling.next_step,
    )


def _wait(fault: ScriptedFault, seconds: float) -> float | None:
    match fault.retry_after:
        case "seconds" | "date":
            return min(seconds, LONGEST_WAIT_SECONDS)
        case "absurd":
            return LONGEST_WAIT_SECONDS
        case "negative":
            return 0.0
        case _:
            return None
