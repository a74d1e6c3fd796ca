"""The QC agent: a conversation that must end in one valid verdict, and the engine's ruling on it.

What happens with an answer is decided elsewhere, by pure rules: `parse` reads it, `quotes` looks its quotes up, `score` rules. Here is
the order of it: an invalid answer is asked for once more in the same conversation, naming the fault; still invalid, the whole
conversation is held once anew; still nothing, QC is unavailable, and no attempt is used up. Quotes that do not hold are asked for once
more where a criterion hangs on them. Only QC's own closing answers are ever read as a verdict.
"""

from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass, replace
from typing import Protocol

from mimir.agents import agent_loop
from mimir.agents.agent_loop import Conversation, ModelSettings, converse
from mimir.agents.context.inputs import ContextBudgets, QCInput
from mimir.agents.context.qc import quotable_sources
from mimir.agents.context.receipt import ContextReceipt
from mimir.agents.context.task_context import DEFAULT_BUDGETS, get_task_context
from mimir.domain.agent import ROLES
from mimir.domain.message import Message
from mimir.domain.plan import Task
from mimir.domain.usage import TokenUsage
from mimir.domain.verdict import QCAnswer, Verdict
from mimir.errors import AnswerError, ModelError
from mimir.qc.judgement.quotes import Sources, UnsupportedPass, find_unsupported_passes
from mimir.qc.judgement.score import ScoreInput, judgement
from mimir.qc.judgement.verdict_parser import SCHEMA_NAME, VERDICT_SCHEMA, instructions, parse

LANES = 2
"""Conversations that are held at most; the second has a lane, tools and a checkout of its own."""
TOKENS_A_CRITERION = 150
MAX_FILE_CHARS = 1_000_000
"""Characters of one quoted file that are looked at."""

_INVALID = (
    "Your verdict cannot be used. {fault}\nGive the whole verdict again, in the form that your "
    "instructions ask for: exactly one JSON object."
)
_UNFOUNDED = (
    "These quotes do not hold:\n{list}\nGive the whole verdict again, as one JSON object: copy each quote "
    "exactly from its source, or call the criterion unverified. What stays without a quote that holds counts as unverified."
)


@dataclass(frozen=True, slots=True, kw_only=True)
class ReviewSession:
    """What one conversation with QC is held with."""

    services: agent_loop.LoopServices
    """Model and tools of one lane; the tools work on a throw-away checkout of the deliverable."""
    close: Callable[[], Awaitable[None]]
    """Awaited when the conversation is over, however it ended: flushes the lane, removes the checkout."""


class ReviewSessions(Protocol):
    """Where conversations are held."""

    async def __call__(self, number: int, /) -> ReviewSession:
        """Prepare the conversation `number` (1, then 2 after trouble): lane `qc`, then `qc.2`."""
        ...


@dataclass(frozen=True, slots=True, kw_only=True)
class ReviewServices:
    """What a judgement needs of others."""

    sittings: ReviewSessions
    read_file: Callable[[str], Awaitable[str | None]]
    """Reads a file of the deliverable's tree by its path, as QC sees it (secrets replaced); None: not there, or no text.
    Never from QC's own checkout."""
    budgets: ContextBudgets = DEFAULT_BUDGETS
    lane: str = ""
    """Of the first conversation; stands in the receipt."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Review:
    """QC's verdict, ruled on."""

    judgement: Verdict
    usage: TokenUsage
    """Of all conversations."""
    tool_calls: int
    lanes: int
    """Conversations held: 1, or 2 after trouble."""
    answers: tuple[str, ...]
    """QC's closing answers in order, invalid ones included; the last one counts, or the one before a useless re-ask."""
    receipt: ContextReceipt


@dataclass(frozen=True, slots=True, kw_only=True)
class ReviewUnavailable:
    """QC gave no verdict that can be used: cause `qc_unavailable`, attempts unchanged."""

    why: str
    """The last fault, in words."""
    usage: TokenUsage
    tool_calls: int
    answers: tuple[str, ...]
    receipt: ContextReceipt


def turn(task: Task, *, model: str = "", temperature: float | None = 0.0) -> ModelSettings:
    """Return how QC's model is asked about a task: 1000 tokens and 150 a criterion, in the verdict's schema."""
    limits = ROLES["qc"]
    room = TOKENS_A_CRITERION * len(task.criteria)
    return ModelSettings(
        model=model,
        temperature=temperature,
        answer_tokens=limits.answer_tokens + room,
        working_tokens=limits.working_tokens + room,
        schema=VERDICT_SCHEMA,
        schema_name=SCHEMA_NAME,
        label="qc",
    )


async def review_attempt(
    given: QCInput, services: ReviewServices, *, protected: Sequence[str] = ()
) -> Review | ReviewUnavailable:
    """Have QC judge a deliverable, and rule on what it says.

    Args:
        given: What QC may know; `form` is filled in here. Its `required_fixes` are what QC's `fixes` are about.
        services: Conversations, and the deliverable's files.
        protected: Protected files that the attempt changed; they stand against it whatever QC says.

    Raises:
        ModelError: Scope `call` or `run`; others as the services raise them (`Paused`, `LeaseLost`).
    """
    given = replace(given, form=given.form or instructions())
    context = get_task_context("qc", given, lane=services.lane, budgets=services.budgets)
    bench = _ReviewRun(given=given, services=services, protected=tuple(protected))
    why = ""
    for number in range(1, LANES + 1):
        sitting = await services.sittings(number)
        try:
            ruled = await bench.hold(context.messages, sitting.services)
        except AnswerError as error:
            why = str(error)
        except ModelError as error:
            if error.scope != "attempt":
                raise
            why = str(error)
        else:
            return Review(
                judgement=ruled,
                usage=bench.usage,
                tool_calls=bench.tool_calls,
                lanes=number,
                answers=tuple(bench.answers),
                receipt=context.receipt,
            )
        finally:
            await sitting.close()
    return ReviewUnavailable(
        why=why,
        usage=bench.usage,
        tool_calls=bench.tool_calls,
        answers=tuple(bench.answers),
        receipt=context.receipt,
    )


class _ReviewRun:
    """One judgement under way; counts what its conversations use."""

    def __init__(
        self, *, given: QCInput, services: ReviewServices, protected: tuple[str, ...]
    ) -> None:
        self._given = given
        self._services = services
        self._protected = protected
        self.usage = TokenUsage()
        self.tool_calls = 0
        self.answers: list[str] = []

    async def hold(self, brief: Sequence[Message], services: agent_loop.LoopServices) -> Verdict:
        """Hold one conversation to its ruling.

        Raises:
            AnswerError: No valid verdict, also when asked again.
        """
        talk = await self._ask(brief, services, None)
        try:
            verdict = self._read(talk)
        except AnswerError as error:
            again = _INVALID.format(fault=error)
            talk = await self._ask(_continued(talk, again), services, talk)
            verdict = self._read(talk)
        return await self._rule(talk, verdict, services)

    async def _ask(
        self,
        messages: Sequence[Message],
        services: agent_loop.LoopServices,
        before: Conversation | None,
    ) -> Conversation:
        talk = await converse(messages, services, spent=before.usage if before else None)
        # Both count from the conversation's beginning: only what is new is added.
        self.tool_calls += talk.tool_calls - (before.tool_calls if before else 0)
        old = before.usage if before else TokenUsage()
        self.usage += TokenUsage(
            input_tokens=talk.usage.input_tokens - old.input_tokens,
            output_tokens=talk.usage.output_tokens - old.output_tokens,
        )
        self.answers.append(talk.answer.text)
        return talk

    def _read(self, talk: Conversation) -> QCAnswer:
        given = self._given
        return parse(talk.answer.text, given.task.criteria, len(given.required_fixes))

    async def _rule(
        self, talk: Conversation, verdict: QCAnswer, services: agent_loop.LoopServices
    ) -> Verdict:
        """Rule; where nothing but a quote is missing, ask for it once."""
        sources = await self._sources(talk, verdict)
        ruled = judgement(self._case(verdict, sources))
        loose = _loose(ruled, verdict, sources)
        if not loose:
            return ruled
        named = "\n".join(f"- {one.what}: {one.why}" for one in loose)
        messages = _continued(talk, _UNFOUNDED.format(list=named))
        try:
            talk = await self._ask(messages, services, talk)
            verdict = self._read(talk)
        except (AnswerError, ModelError) as error:
            if isinstance(error, ModelError) and error.scope != "attempt":
                raise
            # The verdict before is valid: what has no quote in it stays unverified.
            return ruled
        return judgement(self._case(verdict, await self._sources(talk, verdict)))

    def _case(self, verdict: QCAnswer, sources: Sources) -> ScoreInput:
        given = self._given
        return ScoreInput(
            task=given.task,
            verdict=verdict,
            outcomes=given.outcomes,
            sources=sources,
            fixes=given.required_fixes,
            protected=self._protected,
            unsupported=given.unsupported,
        )

    async def _sources(self, talk: Conversation, verdict: QCAnswer) -> Sources:
        """Return what may be quoted: the context's blocks, QC's own calls, and the deliverable's files that it names."""
        sources = dict(quotable_sources(self._given))
        sources |= {f"qc:{number}": entry.text for number, entry in talk.ledger.items()}
        for opinion in (*verdict.criteria, *verdict.fixes):
            name = opinion.source.strip()
            if name.startswith("file:") and name not in sources:
                text = await self._services.read_file(name.removeprefix("file:"))
                if text is not None:
                    sources[name] = text[:MAX_FILE_CHARS]
        return sources


def _continued(talk: Conversation, text: str) -> tuple[Message, ...]:
    return (*talk.messages, Message(role="user", text=text))


def _loose(ruled: Verdict, verdict: QCAnswer, sources: Sources) -> tuple[UnsupportedPass, ...]:
    """Return the quotes that are worth asking for again; none if no criterion hangs on one, or if it fails anyway."""
    if not (ruled.passed or ruled.unverifiable):
        return ()
    judged = {result.id for result in ruled.criteria if result.basis == "judged"}
    hanging = find_unsupported_passes(
        [(f"criterion {o.id}", o) for o in verdict.criteria if o.id in judged], sources
    )
    if not hanging:
        return ()
    return (
        *hanging,
        *find_unsupported_passes([(f"fix {o.index}", o) for o in verdict.fixes], sources),
    )
