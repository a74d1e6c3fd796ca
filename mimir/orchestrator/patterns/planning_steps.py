"""Steps before the PM: clarification, specification, strategy."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path, PurePosixPath

from mimir.agents.agent_loop import LoopServices
from mimir.agents.context import quotation
from mimir.agents.preambles import templates
from mimir.domain.invocation import PlanningStep
from mimir.domain.requirement import Requirement, read_specification
from mimir.domain.value_class import value_class
from mimir.errors import AnswerError
from mimir.orchestrator.patterns.approvals import ApprovalStop
from mimir.orchestrator.patterns.choose import PatternOptions
from mimir.orchestrator.patterns.step_agent import StepAgent, ask_quota
from mimir.orchestrator.services import ProjectServices
from mimir.store.records.run_records import RunRecord
from mimir.store.transcripts.stored_transcript import StoredTranscript
from mimir.tools.protocol import Toolset

MAX_REPAIRS = 2
PLAN_NAME = "chain-output.md"
"""Name of a plan in a new folder of `chains/`."""
LoopFactory = Callable[[str, StoredTranscript, Toolset, str], LoopServices]
"""Makes the services of a conversation from role, transcript, tools and model."""


@value_class
class ApprovedSpecification:
    """Specification that the user approved."""

    text: str
    requirements: tuple[Requirement, ...]


@dataclass(slots=True, kw_only=True)
class PlanningSteps:
    """Steps of one planning run; each has a transcript, so that a resume repeats none."""

    services: ProjectServices
    record: RunRecord
    checkout: Path
    definitions: Mapping[str, PlanningStep]
    limits: PatternOptions
    loop: LoopFactory
    noted: str = ""
    """Reason of the choice by `auto`; empty: the user chose the pattern."""
    _oracle: StepAgent | None = None

    async def summarise(self) -> str:
        """Hold the interview, and return the summary that the user approved."""
        # The conversation is the same after a rejection: the answers of the user stay known.
        agent = await self._open_agent("interviewer", rounds=self.limits.rounds)
        text = await agent.ask(self._interview())
        stop = await self.open_stop(
            1, "summary", self._beside_plan("summary.md"), "the plan is made from this summary."
        )

        async def revise(words: str) -> str:
            return await agent.ask(
                f"{words}\n\nAsk further questions if the words leave something open. Then answer with the whole new summary."
            )

        return await stop.approve(text, revise, _no_problems)

    async def clarify(self) -> str:
        """Hold the interview, and return its summary."""
        agent = await self._open_agent("interviewer", rounds=self.limits.rounds)
        return await agent.ask(self._interview())

    async def specify(self, summary: str) -> ApprovedSpecification:
        """Return the specification that the user approved.

        Raises:
            AnswerError: The model wrote none with a requirement.
        """
        agent = await self._open_agent("spec-writer")
        clarified = f"## Clarification\n\n{quotation.fence_block(summary)}"
        text = await self._repair(
            agent,
            f"{self._request()}\n\n{clarified}\n\nAnswer with the whole specification.",
        )
        stop = await self.open_stop(
            1,
            "specification",
            self._beside_plan("specification.md"),
            "strategy and plan are made from it.",
        )

        async def revise(words: str) -> str:
            return await self._repair(
                agent, f"{words}\n\nAnswer with the whole revised specification."
            )

        approved = await stop.approve(text, revise, _problems_of)
        return ApprovedSpecification(
            text=approved, requirements=read_specification(approved).requirements
        )

    async def find_strategy(self, specification: str) -> str:
        """Return the strategy of the oracle."""
        self._oracle = await self._open_agent("oracle")
        body = quotation.fence_block(specification)
        return await self._oracle.ask(
            f"{self._request()}\n\n## Approved specification\n\n{body}\n\nAnswer with the strategy."
        )

    async def revise_strategy(self, words: str) -> str:
        """Return the strategy that the oracle revised after the plan was rejected."""
        if self._oracle is None:
            raise AnswerError("There is no strategy to revise.")
        return await self._oracle.ask(f"{words}\n\nAnswer with the whole revised strategy.")

    async def open_stop(self, number: int, noun: str, path: str, consequence: str) -> ApprovalStop:
        """Return a stop at which the user approves a file."""
        return ApprovalStop(
            noun=noun,
            path=path,
            consequence=consequence,
            transcript=await self.services.open_transcript(self.record.id, "engine", number),
            project=self.services.project,
            limits=self.services.question_limits,
            # Counted at each stop: the steps do not share their authors.
            rejections=self.limits.rejections,
        )

    async def _repair(self, agent: StepAgent, request: str) -> str:
        """Return a specification without problems; after two repairs, one with a requirement."""
        text = await agent.ask(request)
        for _ in range(MAX_REPAIRS):
            problems = _problems_of(text)
            if not problems:
                return text
            shown = "\n".join(f"- {one}" for one in problems[:20])
            text = await agent.ask(
                f"The engine cannot read this specification:\n\n{shown}\n\nAnswer with the whole corrected specification."
            )
        # The user reads its other problems and may approve it despite them.
        if not read_specification(text).requirements:
            raise AnswerError("The specification has no requirement of the form '- R1: …'.")
        return text

    async def _open_agent(self, name: str, *, rounds: int = 0) -> StepAgent:
        # Names of transcripts have no hyphen, as those of the roles.
        role = name.replace("-", "_")
        transcript = await self.services.open_transcript(self.record.id, role)
        quota, step = ask_quota(rounds), self.definitions[name]
        tools = self.services.planner_tools(self.checkout, transcript, quota, step.tools)
        return StepAgent(
            f"{step.prompt}\n\n{templates.fixed_rules(name)}",
            lambda: self.loop(role, transcript, tools, step.model),
            quota,
        )

    def _beside_plan(self, file: str) -> str:
        path = PurePosixPath(self.record.plan_path)
        # Beside a plan that the user named may be other files.
        name = file if path.name == PLAN_NAME else f"{path.stem}.{file}"
        return path.with_name(name).as_posix()

    def _interview(self) -> str:
        rounds = self.limits.rounds
        # The questions begin with the facts that Ecko missed in the request.
        noted = f"\n\nNoted before: {quotation.one_line(self.noted)}." if self.noted else ""
        return (
            f"{self._request()}{noted}\n\nYou may ask in at most {rounds} rounds of 3 questions. "
            "Answer with the summary when nothing that changes the result is open."
        )

    def _request(self) -> str:
        return f"## The request, word for word\n\n{quotation.fence_block(self.record.request)}"


def _problems_of(text: str) -> tuple[str, ...]:
    return read_specification(text).problems


def _no_problems(_: str) -> tuple[str, ...]:
    return ()
