"""PM conversation: ask for a plan, check it, and return findings to the PM at most twice."""

from collections.abc import Awaitable, Callable, Collection, Sequence
from dataclasses import replace

from mimir.agents.agent_loop import LoopServices, converse
from mimir.domain.finding import Finding
from mimir.domain.message import Message
from mimir.domain.plan import Plan
from mimir.domain.value_class import value_class
from mimir.planning import parser
from mimir.planning.format.diagnostics import SourceMap
from mimir.planning.lint.plan_check import check

MAX_REPAIRS = 2


@value_class
class PlanProposal:
    """The PM's last plan with its findings."""

    text: str
    """As the PM wrote it."""
    plan: Plan
    findings: tuple[Finding, ...]
    repairs: int
    messages: tuple[Message, ...] = ()
    """Conversation with the PM; a further user message continues it."""

    @property
    def acceptable(self) -> bool:
        """Whether the plan may run: it has warnings only."""
        return not any(f.severity == "error" for f in self.findings)


@value_class
class PlannerServices:
    """Services of the planner, next to those of its agent."""

    services: LoopServices
    tools: Collection[str]
    """Names that a plan may list."""
    exists: Callable[[str], bool] | None
    """Whether a path is in the project."""
    try_checks: Callable[[Plan, SourceMap], Awaitable[Sequence[Finding]]]
    """Runs the checks of a plan without errors, and returns their findings."""
    check_more: Callable[[Plan, SourceMap], Sequence[Finding]]
    """Returns the findings of agents that a plan names, and of requirements that it loses."""
    on_proposal: Callable[[PlanProposal], Awaitable[None]]


async def propose(
    request: str, brief: Sequence[Message], services: PlannerServices
) -> PlanProposal:
    """Ask for a plan until it is acceptable, with at most `MAX_REPAIRS` repairs.

    Args:
        request: The user's request, kept in the plan.
        brief: The PM's first messages, with the format instructions.
        services: Agent loop, tools and project facts.

    Raises:
        AnswerError: The model gave no readable answer after one re-ask.
    """
    messages = tuple(brief)
    repairs = 0
    while True:
        talk = await converse(messages, services.services)
        parsed = parser.parse_plan(talk.answer.text)
        proposal = PlanProposal(
            text=talk.answer.text,
            # The user's words, not the PM's version: reports and reuse depend on them.
            plan=replace(parsed.plan, request=" ".join(request.split())),
            findings=(
                *check(parsed, tools=services.tools, exists=services.exists),
                *services.check_more(parsed.plan, parsed.places),
            ),
            repairs=repairs,
            messages=talk.messages,
        )
        if proposal.acceptable:
            tried = await services.try_checks(parsed.plan, parsed.places)
            proposal = replace(proposal, findings=(*proposal.findings, *tried))
        await services.on_proposal(proposal)
        # A plan that is still faulty is returned as it is: the engine never replaces it.
        if repairs == MAX_REPAIRS or (
            proposal.acceptable and (repairs or not _has_old_red_tests(proposal))
        ):
            return proposal
        repairs += 1
        messages = (*talk.messages, Message(role="user", text=_repair_request(proposal)))


def _has_old_red_tests(proposal: PlanProposal) -> bool:
    """True if old red tests keep a `hold` from deciding: the PM may leave them out."""
    return any(f.code == "check-tests-red" for f in proposal.findings)


def _repair_request(proposal: PlanProposal) -> str:
    lines = [
        f"- line {f.line}: {f.code}: {f.message} {f.suggestion}".rstrip() for f in proposal.findings
    ]
    # A broken plan can have thousands of findings; the first ones are enough to repair it.
    verdict = (
        "can run it, but some checks decide nothing" if proposal.acceptable else "cannot accept it"
    )
    return (
        f"The engine checked this plan and {verdict}:\n\n"
        + "\n".join(lines[:100])
        + "\n\nAnswer with the whole corrected plan in the same format, and nothing else."
    )
