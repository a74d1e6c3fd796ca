"""Parser of server-sent events and of the answer that they carry.

Nothing counts as an answer before its end was read. All bounds hold during reading, so an oversized answer costs no more
memory than the largest allowed one.
"""

import codecs
import json
import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field

from mimir.domain.json_value import (
    JsonObject,
    as_object,
    as_objects,
    as_text,
    as_whole_number,
    is_object,
)
from mimir.domain.message import Answer, Finish, Message, ToolCall
from mimir.domain.usage import MOST, TokenUsage
from mimir.llm.openai.api_errors import ErrorResponse, from_value
from mimir.llm.openai.payload import clean

MAX_CALLS = 128
_LONGEST_NAME = 256
# Bytes that one event may have in addition to its text.
_EVENT_OVERHEAD = 65_536
# Comments, event names and empty lines may take so many times the bytes of the text.
_COMMENT_FACTOR = 2

# Servers use the words of many providers for the same few ends.
FINISHES: Mapping[str, Finish] = {
    **dict.fromkeys(("stop", "eos", "eos_token", "end_turn", "stop_sequence"), "stop"),
    **dict.fromkeys(("complete", "completed", "done", "end"), "stop"),
    **dict.fromkeys(("tool_calls", "function_call", "tool_use", "tool_call"), "tool_calls"),
    **dict.fromkeys(("length", "max_tokens", "model_length", "max_length"), "length"),
    **dict.fromkeys(("content_filter", "safety", "refusal", "content_filtered"), "content_filter"),
}


class UnreadableStream(Exception):  # noqa: N818  a state of the answer; never leaves the package
    """A response that is not an answer; the message gives the reason."""


class AnswerTooLarge(UnreadableStream):
    """A response beyond its size limit."""


class StreamError(Exception):
    """An error of the endpoint in the place of an answer."""

    def __init__(self, refusal: ErrorResponse) -> None:
        super().__init__(refusal.text)
        self.refusal = refusal


class EventStream:
    """Parser that splits a byte stream into the data of its events."""

    def __init__(self, max_bytes: int) -> None:
        # utf-8-sig: some servers send a byte order mark.
        self._decode = codecs.getincrementaldecoder("utf-8-sig")("replace").decode
        self._rest: list[str] = []
        self._data: list[str] = []
        self._pending = 0
        self._data_size = 0
        self._limit = max_bytes + _EVENT_OVERHEAD
        self._comment_size = 0
        self._after_cr = False

    def feed(self, chunk: bytes, *, last: bool = False) -> Iterator[str]:
        """Yield the data of each complete event; raise `AnswerTooLarge` at the limit."""
        text = self._decode(chunk, last)
        if self._after_cr and text:
            text = text.removeprefix("\n")
            self._after_cr = False
        self._after_cr = self._after_cr or text.endswith("\r")
        # Not `splitlines`: a U+2028 within JSON is text, only CR, LF and CRLF end a line.
        *lines, rest = text.replace("\r\n", "\n").replace("\r", "\n").split("\n")
        for line in lines:
            whole = "".join((*self._rest, line))
            self._rest.clear()
            yield from self._read_line(whole)
        self._rest.append(rest)
        self._pending += len(rest)
        if self._pending > self._limit:
            raise AnswerTooLarge("one event of the stream is larger than any answer may be")
        if last:
            yield from self._read_line("".join(self._rest))
            yield from self._read_line("")

    def _read_line(self, line: str) -> Iterator[str]:
        if line.startswith("data:"):
            self._data.append(line[5:].removeprefix(" "))
            self._data_size += len(line)
        elif line or not self._data:
            # A stream of comments would keep the connection and the reader busy forever.
            self._comment_size += len(line) + 1
            if self._comment_size > _COMMENT_FACTOR * self._limit:
                raise AnswerTooLarge("the stream holds far more comments than any answer has text")
        else:
            yield "\n".join(self._data)
        if not line:
            self._data.clear()
            self._data_size = 0
        self._pending = self._data_size


@dataclass(slots=True)
class _PartialCall:
    id: str = ""
    name: str = ""
    arguments: list[str] = field(default_factory=list[str])


class AnswerAssembler:
    """Builder of one answer from the deltas of a stream."""

    def __init__(self, max_bytes: int) -> None:
        self._max_bytes = max_bytes
        self._bytes = 0
        self._text: list[str] = []
        self._refusal: list[str] = []
        self._calls: list[_PartialCall] = []
        self._by_index: dict[int, _PartialCall] = {}
        self._finish: Finish | None = None
        self._usage: TokenUsage | None = None
        self._model = ""

    def add(self, data: str) -> None:
        """Add an event's data; raise `UnreadableStream`, or `StreamError` for an error."""
        self._add_chunk(parse(data), "delta")

    def whole(self, data: str) -> None:
        """Add the body of an answer that was not streamed; raises as `add`."""
        self._add_chunk(parse(data), "message")

    def answer(self) -> Answer:
        """Return the finished answer; raise `UnreadableStream` if the stream was cut."""
        if self._finish is None:
            raise UnreadableStream("the answer was cut off before its end (no finish_reason)")
        # A refusal of the model is its answer.
        text = "".join(self._text) or "".join(self._refusal)
        message = Message(role="assistant", text=clean(text), calls=self._tool_calls())
        if self._finish == "content_filter":  # text before the filter is not an answer
            message = Message(role="assistant", text="")
        finish = self._finish
        if finish in ("stop", "tool_calls"):  # servers mix these two up; the calls decide
            finish = "tool_calls" if message.calls else "stop"
        return Answer(message=message, finish=finish, usage=self._usage, model=self._model)

    def _add_chunk(self, row: JsonObject, kind: str) -> None:
        if row.get("error"):
            raise StreamError(from_value(_error_status(row["error"]), row))
        self._model = self._model or clean(as_text(row.get("model")))[:200]
        self._usage = _read_usage(row.get("usage")) or self._usage
        for choice in as_objects(row.get("choices")):
            if choice.get("index") in (0, None):  # only one choice was requested
                self._add_choice(choice, kind)

    def _add_choice(self, choice: JsonObject, kind: str) -> None:
        delta = as_object(choice.get(kind) or choice.get("message") or choice.get("delta"))
        self._text += map(self._count_bytes, _texts(delta.get("content")))
        self._refusal += map(self._count_bytes, _texts(delta.get("refusal")))
        for call in as_objects(delta.get("tool_calls")):
            self._add_call(call)
        if reason := as_text(choice.get("finish_reason")):
            finish = FINISHES.get(reason.lower())
            if finish is None:
                raise UnreadableStream(
                    f"the answer ended with the unknown finish_reason {reason[:80]!r}"
                )
            self._finish = finish

    def _add_call(self, row: JsonObject) -> None:
        call = self._find_call(row.get("index"), as_text(row.get("id")))
        function = as_object(row.get("function"))
        name, arguments = as_text(function.get("name")), function.get("arguments")
        if name != call.name:  # some servers repeat the whole name in each fragment
            call.name += self._count_bytes(name)
        if arguments is not None:
            text = arguments if isinstance(arguments, str) else json.dumps(arguments)
            call.arguments.append(self._count_bytes(text))

    def _find_call(self, index: object, id: str) -> _PartialCall:
        """Return the call of a fragment; some servers give every call the index 0, or none."""
        known = self._by_index.get(index) if isinstance(index, int) else None
        if known is None and not isinstance(index, int) and not id and self._calls:
            known = self._calls[-1]
        if known is not None and (not id or not known.id or known.id == id):
            known.id = known.id or id
            return known
        if len(self._calls) >= MAX_CALLS:
            raise AnswerTooLarge(f"the answer asks for more than {MAX_CALLS} tool calls")
        call = _PartialCall(id=self._count_bytes(id))
        self._calls.append(call)
        if isinstance(index, int):
            self._by_index[index] = call
        return call

    def _count_bytes(self, text: str) -> str:
        self._bytes += len(text) if text.isascii() else len(text.encode("utf-8", "surrogatepass"))
        if self._bytes > self._max_bytes:
            raise AnswerTooLarge(
                f"the answer is larger than {self._max_bytes:,} bytes (llm.max_answer_bytes)"
            )
        return text

    def _tool_calls(self) -> tuple[ToolCall, ...]:
        ids: set[str] = set()
        out: list[ToolCall] = []
        for number, call in enumerate(self._calls):
            id = clean(call.id)[:_LONGEST_NAME]
            while not id or id in ids:  # results are matched by id, so each must be unique
                id = f"{id or 'call'}-{number}"
            ids.add(id)
            name = clean(call.name)[:_LONGEST_NAME]
            out.append(ToolCall(id=id, name=name, arguments=clean("".join(call.arguments))))
        return tuple(out)


def parse(data: str) -> JsonObject:
    """Parse a JSON object; raise `UnreadableStream` for anything else."""
    try:
        value: object = json.loads(data)
    except (ValueError, RecursionError):
        kind = "an HTML page" if data.lstrip()[:1] == "<" else "not complete JSON"
        raise UnreadableStream(f"the answer is {kind}") from None
    if not is_object(value):
        raise UnreadableStream("the answer is not a JSON object")
    return value


def _texts(content: object) -> list[str]:
    """Return the texts of a content: a string, or a list of typed parts."""
    if isinstance(content, str):
        return [content]
    texts = [part.get("text") for part in as_objects(content) if part.get("type") == "text"]
    return [text for text in texts if isinstance(text, str)]


def _read_usage(value: object) -> TokenUsage | None:
    row = as_object(value)
    given = as_whole_number(row.get("prompt_tokens"))
    made = as_whole_number(row.get("completion_tokens"))
    if given is None or made is None or not (0 <= given < MOST and 0 <= made < MOST):
        return None
    return TokenUsage(input_tokens=given, output_tokens=made)


_STATUS_OF: Mapping[str, int] = {
    "context_length_exceeded": 400,
    "content_filter": 400,
    "invalid_request_error": 400,
    "invalid_api_key": 401,
    "authentication_error": 401,
    "model_not_found": 404,
    "insufficient_quota": 429,
    "rate_limit_exceeded": 429,
    "rate_limit_error": 429,
}


def _error_status(error: object) -> int:
    """Return the HTTP status that an error within an answer means; 500 if it names none."""
    row = as_object(error)
    for key in ("code", "status", "type"):
        value = row.get(key)
        text = str(value) if isinstance(value, int | str) else ""
        if re.fullmatch("[45][0-9]{2}", text):
            return int(text)
        if text in _STATUS_OF:
            return _STATUS_OF[text]
    return 500
