"""Agent loop: one conversation, from the brief to the closing answer.

The loop decides nothing: `circuit_breaker` decides which calls run and which limit has tripped, `replies` the use of a reply.
All state follows from the answers of model and tools, so a replayed transcript gives the same messages, byte for byte.

It is a plain loop: the steps of a graph library cost a sixth of a task's CPU time (decision 0008).
"""

from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import field, replace

from mimir.agents import circuit_breaker as rules
from mimir.agents import replies, tool_log
from mimir.agents.circuit_breaker import CircuitBreaker, Trip
from mimir.domain.message import Answer, CallContext, Finish, Message, ModelRequest
from mimir.domain.usage import TokenUsage, estimate
from mimir.domain.value_class import value_class
from mimir.errors import AnswerError, ModelError
from mimir.llm.protocol import ChatModel
from mimir.tools.batch import run_batch
from mimir.tools.protocol import Toolset

_TRIP_REASONS: Mapping[rules.TripKind, str] = {
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


@value_class
class ModelSettings:
    """Settings of all model requests of one conversation."""

    model: str = ""
    """Empty: the endpoint's default."""
    temperature: float | None = 0.0
    """None: not sent."""
    answer_tokens: int = 4000
    """Limit of a closing answer, and of every turn without tools."""
    working_tokens: int = 16_000
    """Limit of a turn that may call tools."""
    schema: Mapping[str, object] | None = None
    """JSON Schema of the answer; None: free text."""
    schema_name: str = ""
    label: tool_log.Label = "call"
    """Numbers the tool results: `[call:1]`, for QC `[qc:1]`."""


@value_class
class LoopServices:
    """Model, tools and limits of one conversation."""

    model: ChatModel
    tools: Toolset
    context: CallContext
    breaker: CircuitBreaker
    settings: ModelSettings
    elapsed: Callable[[], float]
    """Seconds that count against `breaker.seconds` (see `WorkTimer`)."""
    recorded: Trip | None = None
    """Trip of an earlier holder of this attempt; repeated at the same message."""
    on_trip: Callable[[Trip], Awaitable[None]] | None = None
    """Awaited before the closing answer is requested, unless the trip equals `recorded`."""


@value_class
class Conversation:
    """A finished conversation; `(*messages, Message(role="user", …))` continues it."""

    messages: tuple[Message, ...]
    """Brief and everything after it; each call has its result."""
    answer: Message
    """The closing answer; its calls, if any, were ignored."""
    finish: Finish
    """Never `length`: a cut answer is not an answer."""
    trip: Trip | None
    usage: TokenUsage
    """Of all model calls, `spent` included; unknown usage is estimated."""
    tool_calls: int
    """Admitted calls, denied ones included."""
    message_count: int
    """Assistant and tool messages as the breaker counts them."""
    model: str = ""
    """As the provider named it in the last reply."""

    @property
    def ledger(self) -> Mapping[int, tool_log.ToolLogEntry]:
        """The tool log, by the numbers that citations use."""
        return tool_log.entries(self.messages)


@value_class
class _ConversationState:
    messages: tuple[Message, ...]
    closing: bool
    """True after the closing answer was requested."""
    usage: TokenUsage
    trip: Trip | None = None
    unusable: replies.UnusableReplies = field(default_factory=replies.UnusableReplies)
    kind: replies.Kind = "act"
    """Of the last reply."""
    answer: Answer | None = None


async def converse(
    brief: Sequence[Message], services: LoopServices, *, spent: TokenUsage | None = None
) -> Conversation:
    """Hold one conversation until the model gives its closing answer.

    Args:
        brief: Oldest first; [0] is the system message. Or the messages of a conversation to continue, with a new user message:
            its budgets continue, and after a request for a closing answer it stays without tools.
        services: Model, tools and limits.
        spent: Tokens used before in this attempt; counted against the breaker.

    Raises:
        AnswerError: The model gave no usable answer, even when asked again.
        ModelError: Scope `attempt` for a content filter; others as the model raises them.
        Paused, LeaseLost: As the services raise them.
    """
    state = _ConversationState(
        messages=tuple(brief),
        closing=any(message.closing for message in brief),
        usage=spent or TokenUsage(),
    )
    # Far above the breaker's limit: only a bug can reach it.
    for _ in range(2 * services.breaker.max_messages + 10):
        state = await _request_closing_if_tripped(state, services)
        state = await _ask_model(state, services)
        if state.answer is not None:
            return _finish(state, state.answer)
        if state.kind == "act":
            state = await _run_tools(state, services)
    raise AnswerError("The conversation did not end.")


async def _request_closing_if_tripped(
    state: _ConversationState, services: LoopServices
) -> _ConversationState:
    if state.closing:
        return state
    # A resumed conversation trips where it tripped before; the clock is not asked again.
    trip = services.recorded
    if trip is None or trip.at != len(state.messages):
        trip = services.breaker.find_trip(state.messages, services.elapsed(), state.usage)
        if trip is None:
            return state
        if services.on_trip and trip != services.recorded:
            await services.on_trip(trip)
    text = _CLOSE.format(why=_TRIP_REASONS[trip.kind])
    request = Message(role="user", text=text, closing=True)
    return replace(state, messages=(*state.messages, request), trip=trip, closing=True)


async def _ask_model(state: _ConversationState, services: LoopServices) -> _ConversationState:
    request = _build_request(state, services)
    answer = await services.model.ask(request)
    tools = [spec.name for spec in request.tools]
    kind = replies.classify_reply(
        answer, closing=state.closing, max_tokens=request.max_tokens, tools=tools
    )
    if kind == "filtered":
        raise ModelError("The provider's content filter stopped the answer.", scope="attempt")
    unusable = state.unusable.count_reply(kind)
    if unusable.exhausted and kind == "empty" and answer.finish == "stop":
        answer = replies.take_reasoning(answer)
        kind = "answer" if answer.message.text.strip() else kind
        unusable = state.unusable.count_reply(kind)
    if unusable.exhausted:
        raise AnswerError(f"The model gave no usable answer: {replies.describe_fault(kind)}.")
    usage = answer.usage
    if usage is None:  # a provider that reports none must not be free
        prompt = sum(estimate(message.text) for message in request.messages)
        usage = TokenUsage(input_tokens=prompt, output_tokens=estimate(answer.message.text))
    again = replies.ask_again(
        kind, max_tokens=services.settings.answer_tokens, closing=state.closing, tools=tools
    )
    added = _messages_of_reply(answer, kind, closing=state.closing, ask_again=again)
    return replace(
        state,
        messages=(*state.messages, *added),
        usage=state.usage + usage,
        unusable=unusable,
        kind=kind,
        answer=answer if kind == "answer" else None,
    )


async def _run_tools(state: _ConversationState, services: LoopServices) -> _ConversationState:
    """Run the calls that the budget allows; every other call gets a "not run" result."""
    messages, label = state.messages, services.settings.label
    allowed, refused = services.breaker.admit(messages, messages[-1].calls)
    results = await run_batch(services.tools, allowed, services.context)
    first = tool_log.count_admitted_calls(messages) + 1  # numbers go on over all turns
    numbered = [
        replace(result, text=tool_log.number_result(label, number, result.text))
        for number, result in enumerate(results, start=first)
    ]
    warned = rules.warn_repeated(messages, numbered)
    noted = services.breaker.note_calls_left(messages, warned)
    not_run = tuple(replies.not_run(call, replies.NOT_RUN_BUDGET) for call in refused)
    return replace(state, messages=(*messages, *noted, *not_run))


def _build_request(state: _ConversationState, services: LoopServices) -> ModelRequest:
    settings = services.settings
    specs = tuple(services.tools.specs)
    working = bool(specs) and not state.closing
    return ModelRequest(
        messages=state.messages,
        # Also in the closing turn: another list would change the stable part of the prompt.
        tools=specs,
        tool_choice="none" if specs and state.closing else "auto",
        model=settings.model,
        max_tokens=settings.working_tokens if working else settings.answer_tokens,
        temperature=settings.temperature,
        schema=settings.schema,
        schema_name=settings.schema_name,
    )


def _messages_of_reply(
    answer: Answer, kind: replies.Kind, *, closing: bool, ask_again: str
) -> tuple[Message, ...]:
    """Return the reply, "not run" results of its ignored calls, a request to try again."""
    reply = replace(answer.message, closing=True) if closing else answer.message
    if kind == "act":
        return (reply,)
    if kind == "cut_calls":
        return (reply, *(replies.not_run(call, replies.NOT_RUN_CUT) for call in reply.calls))
    # Providers need a result for each call, even of a closing answer.
    ignored = tuple(
        replies.not_run(call, replies.NOT_RUN_CLOSING, closing=closing) for call in reply.calls
    )
    if kind == "answer":
        return (reply, *ignored)
    # Some providers refuse an empty assistant message, and a far too long one would fill the context.
    keep = kind != "too_long" and bool(reply.text.strip() or ignored)
    again = Message(role="user", text=ask_again, closing=closing)
    return (reply, *ignored, again) if keep else (again,)


def _finish(state: _ConversationState, answer: Answer) -> Conversation:
    return Conversation(
        messages=state.messages,
        answer=answer.message,
        finish=answer.finish,
        trip=state.trip,
        usage=state.usage,
        tool_calls=tool_log.count_admitted_calls(state.messages),
        message_count=rules.count_loop_messages(state.messages),
        model=answer.model,
    )
