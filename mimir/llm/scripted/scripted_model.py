"""A model whose answers come from a model script, without network or key.

It keeps no conversation: the next turn follows from the messages, so a restarted engine continues. Only the number of faults
that have occurred is remembered, for the life of the process.
"""

import asyncio
import json
import re
from collections import Counter
from collections.abc import Awaitable, Callable
from dataclasses import replace
from pathlib import Path

from mimir.domain.message import Answer, Finish, Message, ModelRequest, ToolCall
from mimir.domain.usage import TokenUsage, estimate
from mimir.domain.value_class import value_class
from mimir.llm.protocol import ChatModel
from mimir.llm.scripted import scripted_judge
from mimir.llm.scripted.faults import ODD_TEXT, UNKNOWN_TOOL, as_error
from mimir.llm.scripted.script import (
    ModelScript,
    ScriptedCall,
    ScriptedTurn,
    ScriptRequest,
    TurnFault,
    choose_turn,
    script_request,
)
from mimir.llm.storable_text import clean

_ROLE = re.compile(r"[a-z]+(?:_[a-z]+)*")


@value_class
class TranscriptName:
    """Parts of a transcript's name: `run/task/attempt/role`, the role perhaps with a mark."""

    task: str = ""
    attempt: int = 0
    role: str = ""
    last: str = ""

    @classmethod
    def parse(cls, lane: str) -> "TranscriptName":
        """Split a name; missing parts are empty."""
        parts = lane.split("/")
        last = parts[-1]
        role = _ROLE.match(last)
        number = parts[-2] if len(parts) > 1 else ""
        return cls(
            task=parts[-3] if len(parts) > 2 else "",
            attempt=int(number) if number.isdecimal() and len(number) < 7 else 0,
            role=role[0] if role else last,  # the name without its mark
            last=last,
        )


class ScriptState:
    """A model script in use, with the number of faults that have occurred."""

    def __init__(self, play: ModelScript, *, exists: Callable[[str], bool] | None = None) -> None:
        self.play = play
        self._exists = exists or _exists
        self._faults: Counter[tuple[str, int]] = Counter()

    def next_turn(self, lane: str, request: ScriptRequest) -> ScriptedTurn:
        """Return the turn that answers a request; its fault is set only if it occurs now."""
        turn = choose_turn(self.play, request)
        if turn.fault is None or self._occurs(turn.fault, (lane, request.turn)):
            return turn
        return replace(turn, fault=None)

    def _occurs(self, fault: TurnFault, key: tuple[str, int]) -> bool:
        if fault.while_file:
            return self._exists(fault.while_file)
        if fault.name == "unsupported_parameter":
            return True  # the parameters of the request decide
        self._faults[key] += 1
        return self._faults[key] <= fault.times


def _exists(path: str) -> bool:
    return Path(path).exists()


def build_answer(turn: ScriptedTurn, at: ScriptRequest, request: ModelRequest) -> Answer:
    """Build the answer of a turn, altered by its fault."""
    text = turn.text or ""
    if turn.verdict is not None:
        text = scripted_judge.write_qc_answer(turn.verdict, at.brief)
    fault = turn.fault.name if turn.fault else ""
    text, calls, finish = _apply_fault(fault, text, _calls(turn.calls, at.turn), at.turn)
    message = Message(role="assistant", text=text, calls=calls)
    usage = None if fault == "usage_missing" else _usage(turn, request, message)
    finish = turn.finish or finish or ("tool_calls" if calls else "stop")
    return Answer(message=message, finish=finish, usage=usage, model="play")


def _calls(scripted: tuple[ScriptedCall, ...], turn: int) -> tuple[ToolCall, ...]:
    expanded = [call for call in scripted for _ in range(call.times)]
    return tuple(
        ToolCall(
            id=call.id if call.id and call.times == 1 else f"call-{turn}-{n}",
            name=call.tool,
            arguments=call.arguments,
        )
        for n, call in enumerate(expanded)
    )


def _apply_fault(
    fault: str, text: str, calls: tuple[ToolCall, ...], turn: int
) -> tuple[str, tuple[ToolCall, ...], Finish | None]:
    def call(name: str, arguments: object, number: int = 0) -> ToolCall:
        raw = arguments if isinstance(arguments, str) else json.dumps(arguments)
        return ToolCall(id=f"call-{turn}-{number}", name=name, arguments=raw)

    match fault:
        case "empty":
            return "", (), None
        case "unknown_tool":
            return text, (call(UNKNOWN_TOOL, {"to": "/"}),), None
        case "wrong_arguments":
            return text, (call("read_file", {"path": 7, "pace": "fast"}),), None
        case "invalid_arguments":
            return text, (call("read_file", '{"path": "a'),), None
        case "hundred_calls":
            return text, tuple(call("list_files", {"glob": f"*{n}"}, n) for n in range(100)), None
        case "odd_characters":
            return ODD_TEXT + text, calls, None
        case "finish_length":
            return text[: len(text) // 2], calls, "length"
        case "content_filter":
            return text[: len(text) // 2], (), "content_filter"
        case _:
            return text, calls, None


def _usage(turn: ScriptedTurn, request: ModelRequest, answer: Message) -> TokenUsage | None:
    if turn.usage == "none":
        return None
    if turn.usage is not None:
        return TokenUsage(input_tokens=turn.usage[0], output_tokens=turn.usage[1])
    return TokenUsage(
        input_tokens=sum(map(_tokens, request.messages)), output_tokens=_tokens(answer)
    )


def _tokens(message: Message) -> int:
    return estimate(message.text) + sum(estimate(c.name + c.arguments) for c in message.calls)


class ScriptedEndpoint:
    """An `Endpoint` whose models all answer from one model script."""

    def __init__(
        self,
        play: ModelScript,
        *,
        sleep: Callable[[float], Awaitable[None]] = asyncio.sleep,
        exists: Callable[[str], bool] | None = None,
    ) -> None:
        self._state = ScriptState(play, exists=exists)
        self._sleep = sleep

    def for_lane(self, lane: str) -> ChatModel:
        """Return the model of one transcript, `run/task/attempt/role`."""
        return ScriptedModel(self._state, lane, sleep=self._sleep)

    async def aclose(self) -> None:
        """Do nothing: there is no connection."""


class ScriptedModel:
    """A `ChatModel` that answers one transcript from a model script."""

    def __init__(
        self,
        state: ScriptState,
        lane: str,
        *,
        sleep: Callable[[float], Awaitable[None]] = asyncio.sleep,
    ) -> None:
        self._state = state
        self._lane = lane
        self._name = TranscriptName.parse(lane)
        self._sleep = sleep

    async def ask(self, request: ModelRequest) -> Answer:
        """Return the next answer; raise `ModelError` for a fault or a missing turn."""
        name = self._name
        at = script_request(
            name.role,
            name.task,
            name.attempt,
            request.messages,
            lane=name.last,
            closing=request.tool_choice == "none",
        )
        turn = self._state.next_turn(self._lane, at)
        if turn.delay_seconds:
            await self._sleep(turn.delay_seconds)
        # This model accepts every parameter; only a served script can refuse one.
        if turn.fault is not None and turn.fault.name != "unsupported_parameter":
            error = as_error(turn.fault.name, turn.fault.seconds)
            if error is not None:
                raise error
        return _clean_answer(build_answer(turn, at, request))


def _clean_answer(answer: Answer) -> Answer:
    """Return the answer in the form of the real client: encodable, empty if filtered."""
    message = answer.message
    if answer.finish == "content_filter":
        return replace(answer, message=replace(message, text="", calls=()))
    calls = tuple(
        replace(c, name=clean(c.name), arguments=clean(c.arguments)) for c in message.calls
    )
    return replace(answer, message=replace(message, text=clean(message.text), calls=calls))
