"""One agent, one conversation: think, act, until there is an answer.

Decides nothing itself: `breaker` says what may run and what has tripped, `replies` what a reply is good for. Journal, retry, rights and
quotas are wrappers around the two services and never seen here. All state follows from the answers of model and tools, so a replayed
lane leads through the same messages, byte for byte.

A plain loop, not a machine: what comes next follows from the last reply alone, and a graph library's steps cost a sixth of all processor
time of a task (decision 0008).
"""

from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace

from mimir.agents import circuit_breaker as rules
from mimir.agents import replies, tool_log
from mimir.agents.circuit_breaker import CircuitBreaker, Trip
from mimir.domain.message import Answer, CallContext, Finish, Message, ModelRequest, ToolCall
from mimir.domain.usage import TokenUsage, estimate
from mimir.errors import AnswerError, ModelError
from mimir.llm.protocol import ChatModel
from mimir.tools.batch import run_batch
from mimir.tools.protocol import Toolset

_WHY: Mapping[str, str] = {
    "tool_calls": "The tool budget is used up.",
    "messages": "The message budget is used up.",
    "repetition": "The same call gave the same result on unchanged files three times.",
    "wall_clock": "The time limit of this attempt is reached.",
    "tokens": "The token budget of this attempt is used up.",
}
_CLOSE = (
    "{why} No further tool call will be run. Give your closing answer now, as text, from what you have seen so far, "
    "in the form that your instructions ask for. Say plainly what is done and what is not."
)


@dataclass(frozen=True, slots=True, kw_only=True)
class ModelSettings:
    """How a model is asked in one conversation."""

    model: str = ""
    """Name for the endpoint; empty: its default."""
    temperature: float | None = 0.0
    """None: not sent."""
    answer_tokens: int = 4000
    """Bound of a closing answer, and of every turn where there are no tools."""
    working_tokens: int = 16_000
    """Bound of a turn that may call tools."""
    schema: Mapping[str, object] | None = None
    """JSON Schema of the wanted answer; None: free text."""
    schema_name: str = ""
    label: tool_log.Label = "call"
    """What numbers the tool results: `[call:1]`, for the judge `[qc:1]`."""


async def _keep_silent(_trip: Trip) -> None:
    """Tell nobody."""


@dataclass(frozen=True, slots=True, kw_only=True)
class LoopServices:
    """What one conversation is held with."""

    model: ChatModel
    tools: Toolset
    context: CallContext
    breaker: CircuitBreaker
    settings: ModelSettings
    elapsed: Callable[[], float]
    """Seconds that count against `breaker.seconds`; stands still while a lane is replayed (see `Stopwatch`)."""
    recorded: Trip | None = None
    """The trip that an earlier holder of this attempt recorded; taken again at the same message, whatever the clock says."""
    on_trip: Callable[[Trip], Awaitable[None]] = _keep_silent
    """Awaited once, before the closing answer is asked for; not for a trip that equals `recorded`."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Conversation:
    """A conversation that came to an answer; it can be continued with `(*messages, Message(role="user", …))`."""

    messages: tuple[Message, ...]
    """Brief and everything after it; protocol-valid: each call has its result."""
    answer: Message
    """The closing answer; its calls, if it held any, were ignored."""
    finish: Finish
    """Never `length`: an answer that was cut short is no answer."""
    trip: Trip | None
    usage: TokenUsage
    """Of all model calls, what was `spent` before included; unknown usage is estimated."""
    tool_calls: int
    """Let through, denied ones included."""
    message_count: int
    """Assistant and tool messages as the breaker counts them."""
    model: str = ""
    """As the provider named it in the last reply."""

    @property
    def ledger(self) -> Mapping[int, tool_log.ToolLogEntry]:
        """The numbered tool calls, as citations name them."""
        return tool_log.entries(self.messages)


@dataclass(frozen=True, slots=True, kw_only=True)
class _ConversationState:
    """A conversation so far."""

    messages: tuple[Message, ...]
    closing: bool
    usage: TokenUsage
    trip: Trip | None = None
    tries: replies.UnusableReplies = field(default_factory=replies.UnusableReplies)
    kind: replies.Kind = "act"
    """What the last reply is good for."""
    answer: Answer | None = None


async def converse(
    brief: Sequence[Message], services: LoopServices, *, spent: TokenUsage | None = None
) -> Conversation:
    """Hold one conversation to its answer.

    Args:
        brief: Oldest first; [0] is the system message. Or a conversation's messages with a new user message: it goes on, budgets
            included; one whose closing answer was asked for stays without tools.
        services: Model, tools and limits.
        spent: Tokens used before in this attempt; counted against the breaker.

    Raises:
        AnswerError: The model gave nothing that can be taken as an answer, also when asked again.
        ModelError: Scope `attempt` for a content filter; others as the model raises them.
        Paused, LeaseLost: As the services raise them.
    """
    talk = _ConversationState(
        messages=tuple(brief),
        closing=any(m.closing for m in brief),
        usage=spent or TokenUsage(),
    )
    # Far above what the breaker lets through: reaching it is a bug of ours.
    for _ in range(2 * services.breaker.max_messages + 10):
        talk = await _think(talk, services)
        if talk.answer is not None:
            return _ended(talk, talk.answer)
        if talk.kind == "act":
            talk = await _act(talk, services)
    raise AnswerError("The conversation did not come to an end.")


def _ended(talk: _ConversationState, answer: Answer) -> Conversation:
    return Conversation(
        messages=talk.messages,
        answer=answer.message,
        finish=answer.finish,
        trip=talk.trip,
        usage=talk.usage,
        tool_calls=tool_log.count_admitted_calls(talk.messages),
        message_count=rules.count_loop_messages(talk.messages),
        model=answer.model,
    )


async def _think(talk: _ConversationState, services: LoopServices) -> _ConversationState:
    """Ask the model once, and put its reply where it belongs."""
    talk = await _close_if_tripped(talk, services)
    request = _request(talk, services)
    answer = await services.model.ask(request)
    closing = talk.closing
    kind = replies.kind_of(answer, closing=closing, max_tokens=request.max_tokens)
    if kind == "filtered":
        raise ModelError("The provider's content filter stopped the answer.", scope="attempt")
    tries = talk.tries.after(kind)
    if tries.exhausted:
        raise AnswerError(f"The model gave no usable answer: {replies.fault(kind)}.")
    added = _added(answer, kind, closing=closing, max_tokens=services.settings.answer_tokens)
    return replace(
        talk,
        messages=(*talk.messages, *added),
        usage=talk.usage + (answer.usage or _estimated(request, answer)),
        tries=tries,
        kind=kind,
        answer=answer if kind == "answer" else None,
    )


async def _act(talk: _ConversationState, services: LoopServices) -> _ConversationState:
    """Run what there is room for; each other call is answered that it was not run."""
    messages = talk.messages
    allowed, refused = services.breaker.admit(messages, messages[-1].calls)
    results = await _run(services, allowed, first=tool_log.count_admitted_calls(messages) + 1)
    results = rules.warn(messages, results)
    left = tuple(replies.not_run(call, replies.NOT_RUN_BUDGET) for call in refused)
    return replace(talk, messages=(*messages, *results, *left))


async def _close_if_tripped(talk: _ConversationState, services: LoopServices) -> _ConversationState:
    """Ask for the closing answer as soon as something has tripped, once."""
    if talk.closing:
        return talk
    messages = talk.messages
    trip = services.recorded
    if trip is None or trip.at != len(messages):
        trip = services.breaker.find_trip(messages, services.elapsed(), talk.usage)
        if trip is None:
            return talk
        if trip != services.recorded:
            await services.on_trip(trip)
    text = _CLOSE.format(why=_WHY[trip.kind])
    asked = Message(role="user", text=text, closing=True)
    return replace(talk, messages=(*messages, asked), trip=trip, closing=True)


def _request(talk: _ConversationState, services: LoopServices) -> ModelRequest:
    settings = services.settings
    specs = tuple(services.tools.specs)
    working = bool(specs) and not talk.closing
    return ModelRequest(
        messages=talk.messages,
        # The list stays the same in the closing turn: taking it away would change the stable part of the prompt.
        tools=specs,
        tool_choice="none" if specs and talk.closing else "auto",
        model=settings.model,
        max_tokens=settings.working_tokens if working else settings.answer_tokens,
        temperature=settings.temperature,
        schema=settings.schema,
        schema_name=settings.schema_name,
    )


def _added(
    answer: Answer, kind: replies.Kind, *, closing: bool, max_tokens: int
) -> tuple[Message, ...]:
    """Return what one reply adds to the conversation: itself, results of calls that do not run, a request to try again."""
    reply = replace(answer.message, closing=True) if closing else answer.message
    if kind == "act":
        return (reply,)
    if kind == "cut_calls":
        return (reply, *(replies.not_run(call, replies.NOT_RUN_CUT) for call in reply.calls))
    ignored = tuple(
        replies.not_run(call, replies.NOT_RUN_CLOSING, closing=closing) for call in reply.calls
    )
    if kind == "answer":
        return (reply, *ignored)
    # Some providers refuse an empty assistant message, and one that is far too long would fill the context: neither is kept.
    keep = kind != "too_long" and bool(reply.text.strip() or ignored)
    text = replies.ask_again(kind, max_tokens=max_tokens, closing=closing)
    again = Message(role="user", text=text, closing=closing)
    return (reply, *ignored, again) if keep else (again,)


def _estimated(request: ModelRequest, answer: Answer) -> TokenUsage:
    asked = sum(estimate(m.text) for m in request.messages)
    return TokenUsage(input_tokens=asked, output_tokens=estimate(answer.message.text))


async def _run(
    services: LoopServices, calls: Sequence[ToolCall], *, first: int
) -> tuple[Message, ...]:
    """Run calls through the gateway; results in message order, numbered from `first`."""
    results = await run_batch(services.tools, calls, services.context)
    label = services.settings.label
    return tuple(
        replace(result, text=tool_log.number_result(label, number, result.text))
        for number, result in enumerate(results, start=first)
    )
