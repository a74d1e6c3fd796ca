"""A model that speaks from a play: no network, no key, the same words each time.

It keeps nothing of a conversation: what comes next is counted from the messages it is shown, so a restarted engine goes on where it
was. Only how often a fault was staged is remembered, for the life of the process.
"""

import asyncio
import json
import re
from collections import Counter
from collections.abc import Awaitable, Callable
from dataclasses import dataclass, replace
from pathlib import Path

from mimir.domain.message import Answer, Finish, Message, ModelRequest, ToolCall
from mimir.domain.usage import TokenUsage, estimate
from mimir.llm.openai.payload import clean
from mimir.llm.protocol import ChatModel
from mimir.llm.scripted import scripted_judge
from mimir.llm.scripted.faults import ODD_TEXT, UNKNOWN_TOOL, as_error
from mimir.llm.scripted.script import (
    ModelScript,
    ScriptedCall,
    ScriptedTurn,
    ScriptRequest,
    TurnFault,
    cue,
    scene,
)

_ROLE = re.compile(r"[a-z]+(?:_[a-z]+)*")


@dataclass(frozen=True, slots=True, kw_only=True)
class TranscriptName:
    """A lane's name, taken apart: `run/task/attempt/role`, the last with a mark where a role has more than one lane."""

    task: str = ""
    attempt: int = 0
    role: str = ""
    last: str = ""

    @classmethod
    def of(cls, lane: str) -> "TranscriptName":
        """Take a name apart; parts that are not there are empty."""
        parts = lane.split("/")
        last = parts[-1]
        role = _ROLE.match(last)
        number = parts[-2] if len(parts) > 1 else ""
        return cls(
            task=parts[-3] if len(parts) > 2 else "",
            attempt=int(number) if number.isdecimal() and len(number) < 7 else 0,
            role=role[0] if role else last,
            last=last,
        )


class ScriptState:
    """A play that is being given: chooses the turn, and counts how often its faults were staged."""

    def __init__(self, play: ModelScript, *, exists: Callable[[str], bool] | None = None) -> None:
        self.play = play
        self._exists = exists or _exists
        self._staged: Counter[tuple[str, int]] = Counter()

    def enter(self, lane: str, at: ScriptRequest) -> ScriptedTurn:
        """Return the turn to be said; its fault is set only if it strikes now.

        Raises:
            ModelError: The play has no line here.
        """
        turn = cue(self.play, at)
        if turn.fault is None or self._strikes(turn.fault, (lane, at.turn)):
            return turn
        return replace(turn, fault=None)

    def _strikes(self, fault: TurnFault, key: tuple[str, int]) -> bool:
        if fault.while_file:
            return self._exists(fault.while_file)
        if fault.name == "unsupported_parameter":
            return True  # its striking follows from the request
        self._staged[key] += 1
        return self._staged[key] <= fault.times


def _exists(path: str) -> bool:
    return Path(path).exists()


def perform(turn: ScriptedTurn, at: ScriptRequest, request: ModelRequest) -> Answer:
    """Make the answer of a turn, odd where its fault says so.

    Raises:
        ModelError: A quote is wanted that the prompt does not hold.
    """
    text = turn.text or ""
    calls = _calls(turn.calls, at.turn)
    if turn.verdict is not None:
        text = scripted_judge.verdict(turn.verdict, at.brief)
    fault = turn.fault.name if turn.fault else ""
    text, calls, finish = _odd(fault, text, calls, at.turn)
    message = Message(role="assistant", text=text, calls=calls)
    usage = None if fault == "usage_missing" else _usage(turn, request, message)
    normal: Finish = "tool_calls" if calls else "stop"
    return Answer(
        message=message, finish=turn.finish or finish or normal, usage=usage, model="play"
    )


def _calls(cues: tuple[ScriptedCall, ...], turn: int) -> tuple[ToolCall, ...]:
    wanted = [cue for cue in cues for _ in range(cue.times)]
    return tuple(
        ToolCall(
            id=cue.id if cue.id and cue.times == 1 else f"call-{turn}-{n}",
            name=cue.tool,
            arguments=cue.arguments,
        )
        for n, cue in enumerate(wanted)
    )


def _odd(
    fault: str, text: str, calls: tuple[ToolCall, ...], turn: int
) -> tuple[str, tuple[ToolCall, ...], Finish | None]:
    """Return text, calls and finish as the fault makes them."""

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
    """An `Endpoint` that needs none: gives every lane its model from one play."""

    def __init__(
        self,
        play: ModelScript,
        *,
        sleep: Callable[[float], Awaitable[None]] = asyncio.sleep,
        exists: Callable[[str], bool] | None = None,
    ) -> None:
        self._stage = ScriptState(play, exists=exists)
        self._sleep = sleep

    def for_lane(self, lane: str) -> ChatModel:
        """Return the model of one lane, `run/task/attempt/role`."""
        return ScriptedModel(self._stage, lane, sleep=self._sleep)

    async def aclose(self) -> None:
        """Do nothing: nothing is open."""


class ScriptedModel:
    """A `ChatModel` that speaks one lane's lines of a play."""

    def __init__(
        self,
        stage: ScriptState,
        lane: str,
        *,
        sleep: Callable[[float], Awaitable[None]] = asyncio.sleep,
    ) -> None:
        self._stage = stage
        self._lane = lane
        self._name = TranscriptName.of(lane)
        self._sleep = sleep

    async def ask(self, request: ModelRequest) -> Answer:
        """Say the next line.

        Raises:
            ModelError: The play stages one, or has no line here.
        """
        name = self._name
        at = scene(
            name.role,
            name.task,
            name.attempt,
            request.messages,
            lane=name.last,
            closing=request.tool_choice == "none",
        )
        turn = self._stage.enter(self._lane, at)
        if turn.delay_seconds:
            await self._sleep(turn.delay_seconds)
        if turn.fault is not None and turn.fault.name != "unsupported_parameter":
            error = as_error(turn.fault.name, turn.fault.seconds)
            if error is not None:
                raise error
        return _received(perform(turn, at, request))


def _received(answer: Answer) -> Answer:
    """Return the answer as the real client would give it: encodable, whatever the play wrote; nothing of a filtered one."""
    message = answer.message
    if answer.finish == "content_filter":
        return replace(answer, message=replace(message, text="", calls=()))
    calls = tuple(
        replace(c, name=clean(c.name), arguments=clean(c.arguments)) for c in message.calls
    )
    return replace(answer, message=replace(message, text=clean(message.text), calls=calls))
