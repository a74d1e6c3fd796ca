"""A stream of server-sent events, put together to one answer. Pure: bytes in, answer out, nothing believed before its end is seen.

Bounds hold while reading, so that an answer of any size costs no more memory than one of the greatest allowed size.
"""

import codecs
import json
import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import cast

from mimir.domain.message import Answer, Finish, Message, ToolCall
from mimir.domain.usage import MOST, TokenUsage
from mimir.llm.openai.api_errors import ErrorResponse, as_object, from_value
from mimir.llm.openai.payload import clean

MAX_CALLS = 128
_LONGEST_NAME = 256
_LONGEST_ID = 256
_EVENT_OVERHEAD = 65_536
"""Bytes that one event may have beyond the text that it carries."""

_BESIDE_FACTOR = 2
"""Names of events, comments and empty lines may take so many times the bytes of the text."""

FINISHES: Mapping[str, Finish] = {
    **dict.fromkeys(("stop", "eos", "eos_token", "end_turn", "stop_sequence"), "stop"),
    **dict.fromkeys(("complete", "completed", "done", "end"), "stop"),
    **dict.fromkeys(("tool_calls", "function_call", "tool_use", "tool_call"), "tool_calls"),
    **dict.fromkeys(("length", "max_tokens", "model_length", "max_length"), "length"),
    **dict.fromkeys(("content_filter", "safety", "refusal", "content_filtered"), "content_filter"),
}


class UnreadableStream(Exception):  # noqa: N818  what the answer is; never leaves this room
    """The provider answered with something that is no answer; the message says what."""


class AnswerTooLarge(UnreadableStream):
    """The answer passed its bound."""


class StreamError(Exception):
    """The stream carried an error instead of an answer."""

    def __init__(self, refusal: ErrorResponse) -> None:
        super().__init__(refusal.text)
        self.refusal = refusal


class EventStream:
    """Cuts a byte stream into the data of its events.

    Lines end at CR, LF or CRLF only: a U+2028 within JSON is text. Comments and other fields are skipped.
    """

    def __init__(self, max_bytes: int) -> None:
        self._decode = codecs.getincrementaldecoder("utf-8-sig")("replace").decode
        self._rest: list[str] = []
        self._data: list[str] = []
        self._held = 0
        self._in_data = 0
        self._room = max_bytes + _EVENT_OVERHEAD
        self._beside = 0
        self._after_cr = False

    def feed(self, chunk: bytes, *, last: bool = False) -> Iterator[str]:
        """Take bytes, yield the data of each event that they complete.

        Raises:
            TooLarge: One event is longer than any that is accepted.
        """
        text = self._decode(chunk, last)
        if self._after_cr and text:
            text = text.removeprefix("\n")
            self._after_cr = False
        self._after_cr = self._after_cr or text.endswith("\r")
        *lines, rest = text.replace("\r\n", "\n").replace("\r", "\n").split("\n")
        for line in lines:
            whole = "".join((*self._rest, line))
            self._rest.clear()
            yield from self._line(whole)
        self._rest.append(rest)
        self._held += len(rest)
        if self._held > self._room:
            raise AnswerTooLarge("one event of the stream is larger than any answer may be")
        if last:
            yield from self._line("".join(self._rest))
            yield from self._line("")

    def _line(self, line: str) -> Iterator[str]:
        if line:
            if line.startswith("data:"):
                self._data.append(line[5:].removeprefix(" "))
                self._in_data += len(line)
            else:
                self._count_beside(line)
            self._held = self._in_data
            return
        if self._data:
            yield "\n".join(self._data)
        else:
            self._count_beside(line)
        self._data.clear()
        self._held = self._in_data = 0

    def _count_beside(self, line: str) -> None:
        """Bound what carries no data: a stream of comments keeps the line alive, and the reader busy, for ever."""
        self._beside += len(line) + 1
        if self._beside > _BESIDE_FACTOR * self._room:
            raise AnswerTooLarge("the stream holds far more comments than any answer has text")


@dataclass(slots=True)
class _PartialCall:
    id: str = ""
    name: str = ""
    arguments: list[str] = field(default_factory=list[str])


class AnswerAssembler:
    """Puts deltas together to an answer."""

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
        """Take the data of one event.

        Raises:
            Unreadable: It is no JSON object of the protocol.
            Refused: It holds an error.
        """
        self._chunk(parse(data), "delta")

    def whole(self, data: str) -> None:
        """Take the body of an answer that was not streamed; raises as `add`."""
        self._chunk(parse(data), "message")

    def answer(self) -> Answer:
        """Return the answer, once all of it was taken.

        Raises:
            Unreadable: Its end was never seen: the stream was cut.
        """
        if self._finish is None:
            raise UnreadableStream("the answer was cut off before its end (no finish_reason)")
        text = "".join(self._text) or "".join(self._refusal)
        message = Message(role="assistant", text=clean(text), calls=self._tool_calls())
        if self._finish == "content_filter":  # what came before the filter is no answer
            message = Message(role="assistant", text="")
        finish = self._finish
        if finish in ("stop", "tool_calls"):  # servers mix these two up; the calls decide
            finish = "tool_calls" if message.calls else "stop"
        return Answer(message=message, finish=finish, usage=self._usage, model=self._model)

    def _chunk(self, row: Mapping[str, object], kind: str) -> None:
        if row.get("error"):
            raise StreamError(from_value(_status(row["error"]), row))
        model = row.get("model")
        if isinstance(model, str) and not self._model:
            self._model = clean(model)[:200]
        self._usage = _usage(row.get("usage")) or self._usage
        for choice in _objects(row.get("choices")):
            if choice.get("index") in (0, None):
                self._choice(choice, kind)

    def _choice(self, choice: Mapping[str, object], kind: str) -> None:
        said = choice.get(kind) or choice.get("message") or choice.get("delta")
        if isinstance(said, Mapping):
            self._said(cast("Mapping[str, object]", said))
        reason = choice.get("finish_reason")
        if isinstance(reason, str) and reason:
            finish = FINISHES.get(reason.lower())
            if finish is None:
                raise UnreadableStream(
                    f"the answer ended with the unknown finish_reason {reason[:80]!r}"
                )
            self._finish = finish

    def _said(self, said: Mapping[str, object]) -> None:
        for part in _parts(said.get("content")):
            self._text.append(self._counted(part))
        for part in _parts(said.get("refusal")):
            self._refusal.append(self._counted(part))
        for call in _objects(said.get("tool_calls")):
            self._called(call)

    def _called(self, row: Mapping[str, object]) -> None:
        id = row.get("id")
        call = self._slot(row.get("index"), id if isinstance(id, str) else "")
        function = row.get("function")
        if not isinstance(function, Mapping):
            return
        fields = cast("Mapping[str, object]", function)
        name, arguments = fields.get("name"), fields.get("arguments")
        if isinstance(name, str) and name != call.name:
            call.name += self._counted(name)
        if isinstance(arguments, str):
            call.arguments.append(self._counted(arguments))
        elif arguments is not None:
            call.arguments.append(self._counted(json.dumps(arguments)))

    def _slot(self, index: object, id: str) -> _PartialCall:
        """Return the call that a fragment belongs to; some servers give every call the index 0, or none."""
        known = self._by_index.get(index) if isinstance(index, int) else None
        if known is None and not isinstance(index, int) and not id and self._calls:
            known = self._calls[-1]
        if known is not None and (not id or not known.id or known.id == id):
            known.id = known.id or id
            return known
        if len(self._calls) >= MAX_CALLS:
            raise AnswerTooLarge(f"the answer asks for more than {MAX_CALLS} tool calls")
        call = _PartialCall(id=self._counted(id))
        self._calls.append(call)
        if isinstance(index, int):
            self._by_index[index] = call
        return call

    def _counted(self, text: str) -> str:
        self._bytes += len(text) if text.isascii() else len(text.encode("utf-8", "surrogatepass"))
        if self._bytes > self._max_bytes:
            raise AnswerTooLarge(
                f"the answer is larger than {self._max_bytes:,} bytes (llm.max_answer_bytes)"
            )
        return text

    def _tool_calls(self) -> tuple[ToolCall, ...]:
        taken: set[str] = set()
        out: list[ToolCall] = []
        for number, call in enumerate(self._calls):
            id = clean(call.id)[:_LONGEST_ID]
            while not id or id in taken:
                id = f"{id or 'call'}-{number}"
            taken.add(id)
            name = clean(call.name)[:_LONGEST_NAME]
            out.append(ToolCall(id=id, name=name, arguments=clean("".join(call.arguments))))
        return tuple(out)


def parse(data: str) -> Mapping[str, object]:
    """Read a JSON object.

    Raises:
        Unreadable: It is none.
    """
    try:
        value: object = json.loads(data)
    except (ValueError, RecursionError):
        kind = "a page of HTML" if data.lstrip()[:1] == "<" else "no whole JSON"
        raise UnreadableStream(f"the answer is {kind}") from None
    if not isinstance(value, dict):
        raise UnreadableStream("the answer is no JSON object")
    return cast("Mapping[str, object]", value)


def _objects(value: object) -> list[Mapping[str, object]]:
    items = cast("list[object]", value) if isinstance(value, list) else []
    return [cast("Mapping[str, object]", item) for item in items if isinstance(item, dict)]


def _parts(content: object) -> list[str]:
    """Return the texts of a content: a string, or a list of typed parts of which only texts count."""
    if isinstance(content, str):
        return [content]
    texts = [part.get("text") for part in _objects(content) if part.get("type") == "text"]
    return [text for text in texts if isinstance(text, str)]


def _usage(value: object) -> TokenUsage | None:
    if not isinstance(value, dict):
        return None
    row = cast("Mapping[str, object]", value)
    given, made = row.get("prompt_tokens"), row.get("completion_tokens")
    if not _is_count(given) or not _is_count(made):
        return None
    return TokenUsage(input_tokens=cast("int", given), output_tokens=cast("int", made))


def _is_count(value: object) -> bool:
    return isinstance(value, int) and not isinstance(value, bool) and 0 <= value < MOST


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


def _status(error: object) -> int:
    """Return the status that an error within an answer stands for; 500 where it names none that is known."""
    row = as_object(error)
    for key in ("code", "status", "type"):
        value = row.get(key)
        text = str(value) if isinstance(value, int | str) else ""
        if re.fullmatch("[45][0-9]{2}", text):
            return int(text)
        if text in _STATUS_OF:
            return _STATUS_OF[text]
    return 500
