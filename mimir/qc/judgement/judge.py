"""Review of a deliverable by QC: a conversation that must end in one valid verdict.

Pure rules decide on each answer: `verdict_parser`, `quotes`, `score`. This module holds their order. After an invalid answer QC is asked
once more in the same conversation, with the fault. If the second answer is invalid too, a second conversation starts; if that fails,
QC is unavailable, and no attempt is used up. Only QC's own closing answers are read as a verdict.
"""

from collections.abc import Awaitable, Callable, Sequence
from dataclasses import field, replace

from mimir.agents import agent_loop
from mimir.agents.agent_loop import Conversation, ModelSettings, converse
from mimir.agents.citations import argument_text
from mimir.agents.context.inputs import ContextBudgets, QCInput
from mimir.agents.context.qc import quotable_sources
from mimir.agents.context.receipt import ContextReceipt
from mimir.agents.context.task_context import DEFAULT_BUDGETS, get_task_context
from mimir.domain.agent import ROLES
from mimir.domain.message import Message
from mimir.domain.plan import Task
from mimir.domain.usage import TokenUsage
from mimir.domain.value_class import value_class
from mimir.domain.verdict import QCAnswer, Verdict
from mimir.errors import AnswerError, ModelError
from mimir.qc.judgement.quotes import (
    Commands,
    Sources,
    find_unsupported_passes,
)
from mimir.qc.judgement.score import ScoreInput, decide_verdict
from mimir.qc.judgement.verdict_parser import SCHEMA_NAME, VERDICT_SCHEMA, instructions, parse

LANES = 2
"""Most conversations of a review; the second has its own transcript, tools and checkout."""
TOKENS_A_CRITERION = 150
MAX_FILE_CHARS = 1_000_000
"""Characters of a quoted file that are searched."""

_INVALID = (
    "Your verdict cannot be used. {fault}\nGive the whole verdict again, in the form that your "
    "instructions ask for: exactly one JSON object."
)
_UNFOUNDED = (
    "These quotes do not hold:\n{list}\nGive the whole verdict again, as one JSON object: copy each quote "
    "exactly from its source, or call the criterion unverified. A criterion without a quote that is found counts as unverified."
)


@value_class
class ReviewSession:
    """Services of one conversation with QC."""

    services: agent_loop.LoopServices
    """Model and tools of one transcript; tools work on a temporary checkout."""
    close: Callable[[], Awaitable[None]]
    """Flushes the transcript and removes the checkout; awaited after every conversation."""


ReviewSessions = Callable[[int], Awaitable[ReviewSession]]
"""Opens conversation number 1, then 2 after a failure: transcripts `qc` and `qc.2`."""


@value_class
class ReviewServices:
    """Services of a review."""

    sittings: ReviewSessions
    read_file: Callable[[str], Awaitable[str | None]]
    """Reads a file of the deliverable's tree, secrets replaced; None: absent, or not text.
    It never reads QC's own checkout, which QC may have changed."""
    budgets: ContextBudgets = DEFAULT_BUDGETS
    lane: str = ""
    """Transcript of the first conversation, for the context receipt."""


@value_class
class Review:
    """Verdict on a deliverable, or the reason why QC gave none."""

    judgement: Verdict | None
    """None: QC is unavailable, and no attempt is used up (`qc_unavailable`)."""
    receipt: ContextReceipt
    usage: TokenUsage = field(default_factory=TokenUsage)
    """Over all conversations."""
    why: str = ""
    """Last fault of an answer."""


def qc_model_settings(
    task: Task,
    *,
    model: str = "",
    temperature: float | None = 0.0,
    max_tokens: int | None = None,
) -> ModelSettings:
    """Return the settings of QC's model calls: token limits grow with the criteria."""
    limits = ROLES["qc"]
    extra = TOKENS_A_CRITERION * len(task.criteria)
    return ModelSettings(
        model=model,
        temperature=temperature,
        answer_tokens=max_tokens or limits.answer_tokens + extra,
        working_tokens=max_tokens or limits.working_tokens + extra,
        schema=VERDICT_SCHEMA,
        schema_name=SCHEMA_NAME,
        label="qc",
    )


async def review_attempt(
    given: QCInput, services: ReviewServices, *, protected: Sequence[str] = ()
) -> Review:
    """Ask QC about a deliverable and decide the verdict; `protected` files must not change.

    Raises:
        ModelError: Scope `call` or `run`; other errors as the services raise them (`Paused`, `LeaseLost`).
    """
    given = replace(given, form=given.form or instructions())
    context = get_task_context("qc", given, lane=services.lane, budgets=services.budgets)
    review = _ReviewRun(given=given, services=services, protected=tuple(protected))
    verdict, why = None, ""
    for number in range(1, LANES + 1):
        session = await services.sittings(number)
        try:
            verdict = await review.hold(context.messages, session.services)
            break
        except (AnswerError, ModelError) as error:
            _require_attempt_scope(error)
            why = str(error)
        finally:
            await session.close()
    return Review(judgement=verdict, receipt=context.receipt, usage=review.usage, why=why)


def _require_attempt_scope(error: AnswerError | ModelError) -> None:
    # A provider fault of the run is no fault of this conversation.
    if isinstance(error, ModelError) and error.scope != "attempt":
        raise error


class _ReviewRun:
    """Review in progress, with the usage of its conversations."""

    def __init__(
        self, *, given: QCInput, services: ReviewServices, protected: tuple[str, ...]
    ) -> None:
        self._given = given
        self._services = services
        self._protected = protected
        self.usage = TokenUsage()

    async def hold(self, brief: Sequence[Message], services: agent_loop.LoopServices) -> Verdict:
        """Hold one conversation and decide the verdict.

        Raises:
            AnswerError: Neither the first nor the repeated answer is valid.
        """
        talk = await self._ask(brief, services, None)
        try:
            answer = self._read(talk)
        except AnswerError as error:
            again = _INVALID.format(fault=error)
            talk = await self._ask(_append_message(talk, again), services, talk)
            answer = self._read(talk)
        return await self._rule(talk, answer, services)

    async def _ask(
        self,
        messages: Sequence[Message],
        services: agent_loop.LoopServices,
        before: Conversation | None,
    ) -> Conversation:
        talk = await converse(messages, services, spent=before.usage if before else None)
        # Usage counts from the start of a conversation, so only the difference is added.
        old = before.usage if before else TokenUsage()
        self.usage += TokenUsage(
            input_tokens=talk.usage.input_tokens - old.input_tokens,
            output_tokens=talk.usage.output_tokens - old.output_tokens,
        )
        return talk

    def _read(self, talk: Conversation) -> QCAnswer:
        given = self._given
        return parse(talk.answer.text, given.task.criteria, len(given.required_fixes))

    async def _rule(
        self, talk: Conversation, answer: QCAnswer, services: agent_loop.LoopServices
    ) -> Verdict:
        """Decide the verdict; if only quotes are missing, ask for them once."""
        case = await self._case(talk, answer)
        verdict = decide_verdict(case)
        missing = _find_missing_quotes(verdict, case)
        if not missing:
            return verdict
        named = "\n".join(f"- {one}" for one in missing)
        messages = _append_message(talk, _UNFOUNDED.format(list=named))
        try:
            talk = await self._ask(messages, services, talk)
            answer = self._read(talk)
        except (AnswerError, ModelError) as error:
            _require_attempt_scope(error)
            # The earlier answer is valid; its criteria without a quote stay unverified.
            return verdict
        return decide_verdict(await self._case(talk, answer))

    async def _case(self, talk: Conversation, answer: QCAnswer) -> ScoreInput:
        given = self._given
        return ScoreInput(
            task=given.task,
            verdict=answer,
            outcomes=given.outcomes,
            sources=await self._sources(talk, answer),
            commands=self._commands(talk),
            fixes=given.required_fixes,
            protected=self._protected,
            unsupported=given.unsupported,
        )

    async def _sources(self, talk: Conversation, answer: QCAnswer) -> Sources:
        """Return the texts that QC may quote: context blocks, its own calls, and named files."""
        sources = dict(quotable_sources(self._given))
        sources |= {f"qc:{number}": entry.text for number, entry in talk.ledger.items()}
        for opinion in (*answer.criteria, *answer.fixes):
            name = opinion.source.strip()
            if name.startswith("file:") and name not in sources:
                text = await self._services.read_file(name.removeprefix("file:"))
                if text is not None:
                    sources[name] = text[:MAX_FILE_CHARS]
        return sources

    def _commands(self, talk: Conversation) -> Commands:
        """Return the arguments of calls; QC may write in one call and read in the next."""
        cited = (self._given.cited_arguments or {}).items()
        commands = {f"call:{number}": argument_text(raw) for number, raw in cited}
        given = ""
        for number, entry in talk.ledger.items():
            given += f"{argument_text(entry.arguments)}\n"
            commands[f"qc:{number}"] = given
        return commands


def _append_message(talk: Conversation, text: str) -> tuple[Message, ...]:
    return (*talk.messages, Message(role="user", text=text))


def _find_missing_quotes(verdict: Verdict, case: ScoreInput) -> list[str]:
    """Describe missing quotes to ask for; empty if nothing depends on one."""
    if not (verdict.passed or verdict.unverifiable):
        return []
    judged = {result.id for result in verdict.criteria if result.basis == "judged"}
    criteria = [(f"criterion {o.id}", o) for o in case.verdict.criteria if o.id in judged]
    fixes = [(f"fix {o.index}", o) for o in case.verdict.fixes]
    needed = find_unsupported_passes(criteria, case.sources, case.commands)
    return needed and needed + find_unsupported_passes(fixes, case.sources, case.commands)
