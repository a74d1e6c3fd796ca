"""Parser of server-sent events and of the answer that they carry.

Nothing counts as an answer before its end was read. All bounds hold during reading, so an oversized answer costs no more
memory than the largest allowed one.
"""

import codecs
import json
import re
from collections.abc import Iterator, Mapping, Sequence

from mimir.domain.json_value import (
    JsonObject,
    as_object,
    as_objects,
    as_text,
    as_whole_number,
    is_array,
    is_object,
)
from mimir.domain.message import Answer, Finish, Message, ToolCall
from mimir.domain.usage import MOST, TokenUsage
from mimir.llm.opaque_fields import OpaqueFields, pack_fields
from mimir.llm.openai.api_errors import ErrorResponse, from_value
from mimir.llm.openai.tool_call_fragments import CallAssembler, TooManyCalls
from mimir.llm.storable_text import clean

MAX_CALLS = 128
_MESSAGE_MEMBERS = ("role", "content", "refusal", "tool_calls", "function_call")
_TEXT_PARTS = ("text", "output_text")
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
        # llama.cpp writes its errors in a field of their own.
        if line.startswith(("data:", "error:")):
            data = line.partition(":")[2].removeprefix(" ")
            if len(self._data) == 1 and _begins_event(data) and _is_whole(self._data[0]):
                # Some servers end an event with one line end.
                yield self._data.pop()
            self._data.append(data)
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


def _begins_event(data: str) -> bool:
    return data.lstrip().startswith(("{", "[DONE]"))


def _is_whole(data: str) -> bool:
    try:
        return data.strip() == "[DONE]" or is_object(json.loads(data))
    except (ValueError, RecursionError):
        return False


class AnswerAssembler:
    """Builder of one answer from the deltas of a stream."""

    def __init__(self, max_bytes: int) -> None:
        self._max_bytes = max_bytes
        self._bytes = 0
        self._text: list[str] = []
        self._refusal: list[str] = []
        self._calls = CallAssembler(MAX_CALLS, self._charge)
        self._fields = OpaqueFields(_MESSAGE_MEMBERS)
        self._contents: list[object] = []
        self._has_parts = False
        self._finish: Finish | None = None
        self._usage: TokenUsage | None = None
        self._cached = 0
        self._model = ""

    def add(self, data: str) -> None:
        """Add an event's data; raise `UnreadableStream`, or `StreamError` for an error."""
        self._add_chunk(parse(data), "delta")

    def whole(self, data: str) -> None:
        """Add the body of an answer that was not streamed; raises as `add`."""
        self._add_chunk(parse(data), "message")

    def answer(self, *, ended: bool = False) -> Answer:
        """Return the finished answer; raise `UnreadableStream` if the stream was cut.

        Args:
            ended: True if the server marked the end: a complete answer needs no finish_reason.
        """
        calls = self._calls.calls()
        # A refusal of the model is its answer.
        text = clean("".join(self._text) or "".join(self._refusal))
        finish = self._finish
        if finish is None and ended and _is_complete(text, calls):
            finish = "stop"
        if finish is None:
            raise UnreadableStream("the answer was cut off before its end (no finish_reason)")
        message = Message(role="assistant", text=text, calls=calls, opaque=self._opaque())
        if finish == "content_filter":  # text before the filter is not an answer
            message = Message(role="assistant", text="")
        if finish in ("stop", "tool_calls"):  # servers mix these two up; the calls decide
            finish = "tool_calls" if message.calls else "stop"
        return Answer(
            message=message,
            finish=finish,
            usage=self._usage,
            model=self._model,
            cached_tokens=self._cached,
        )

    def _opaque(self) -> str:
        fields = self._fields.merged()
        if self._has_parts:  # parts that are no text would be lost
            fields["content"] = [part for content in self._contents for part in _parts(content)]
        return pack_fields(fields)

    def _add_chunk(self, row: JsonObject, kind: str) -> None:
        if error := _error_of(row):
            raise StreamError(from_value(_error_status(error), row))
        self._model = self._model or clean(as_text(row.get("model")))[:200]
        if usage := _read_usage(row.get("usage")):
            self._usage, self._cached = usage, _read_cached(row.get("usage"), usage)
        for choice in as_objects(row.get("choices")):
            if choice.get("index") in (0, "0", None):  # only one choice was requested
                self._add_choice(choice, kind)

    def _add_choice(self, choice: JsonObject, kind: str) -> None:
        delta = as_object(choice.get(kind) or choice.get("message") or choice.get("delta"))
        self._add_content(delta.get("content"))
        self._refusal += map(self._count_bytes, _texts(delta.get("refusal")))
        try:
            self._charge(self._fields.add(delta))
            for call in _calls_of(delta):
                self._calls.add(call)
        except TooManyCalls:
            raise AnswerTooLarge(f"the answer asks for more than {MAX_CALLS} tool calls") from None
        except ValueError as error:
            raise UnreadableStream(f"the answer cannot be read: {error}") from None
        if reason := as_text(choice.get("finish_reason")):
            finish = FINISHES.get(reason.lower())
            if finish is None:
                raise UnreadableStream(
                    f"the answer ended with the unknown finish_reason {reason[:80]!r}"
                )
            self._finish = finish

    def _add_content(self, content: object) -> None:
        texts, parts = _texts(content), as_objects(content)
        self._text += map(self._count_bytes, texts)
        self._contents.append(content)
        if len(texts) < len(parts):
            self._has_parts = True
            self._charge(len(json.dumps(parts)))

    def _count_bytes(self, text: str) -> str:
        self._charge(len(text) if text.isascii() else len(text.encode("utf-8", "surrogatepass")))
        return text

    def _charge(self, size: int) -> None:
        self._bytes += size
        if self._bytes > self._max_bytes:
            raise AnswerTooLarge(
                f"the answer is larger than {self._max_bytes:,} bytes (llm.max_answer_bytes)"
            )


def _is_complete(text: str, calls: Sequence[ToolCall]) -> bool:
    """Return whether nothing is missing: a text, or calls whose arguments are objects."""
    return all(_is_whole(call.arguments or "{}") for call in calls) if calls else bool(text.strip())


def _calls_of(delta: JsonObject) -> list[JsonObject]:
    """Return the fragments of calls; the first protocol had one call in `function_call`."""
    given = delta.get("tool_calls")
    rows = [given] if is_object(given) else as_objects(given)
    single = delta.get("function_call")
    return rows or ([{"index": 0, "function": single}] if is_object(single) else [])


def _error_of(row: JsonObject) -> object:
    """Return the error of a chunk, in the forms of several servers; None: it is no error."""
    for place in (row, *as_objects(row.get("choices"))):
        if place.get("error"):
            return place["error"]
    is_answer = "choices" in row or "usage" in row
    is_error = not is_answer and any(row.get(name) for name in ("message", "detail"))
    return row if is_error else None


def parse(data: str) -> JsonObject:
    """Parse a JSON object; raise `UnreadableStream` for anything else."""
    try:
        value: object = json.loads(data)
        if is_array(value) and len(value) == 1:  # Google's errors
            value = value[0]
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
    rows = [content] if is_object(content) else as_objects(content)
    texts = [row.get("text") for row in rows if row.get("type", "text") in _TEXT_PARTS]
    return [text for text in texts if isinstance(text, str)]


def _parts(content: object) -> Sequence[JsonObject]:
    texts = [{"type": "text", "text": content}] if isinstance(content, str) and content else []
    return texts or as_objects(content)


def _read_usage(value: object) -> TokenUsage | None:
    row = as_object(value)
    given = as_whole_number(row.get("prompt_tokens"))
    output = as_whole_number(row.get("completion_tokens"))
    if given is None or output is None or not (0 <= given < MOST and 0 <= output < MOST):
        return None
    return TokenUsage(input_tokens=given, output_tokens=output)


def _read_cached(value: object, usage: TokenUsage) -> int:
    row = as_object(value)
    details = as_object(row.get("prompt_tokens_details"))
    cached = as_whole_number(details.get("cached_tokens", row.get("prompt_cache_hit_tokens"))) or 0
    return min(max(0, cached), usage.input_tokens)


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
