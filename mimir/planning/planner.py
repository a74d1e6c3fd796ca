"""The PM: asks for a plan, checks it, sends the findings back at most twice. A plan that is not good enough is never replaced."""

from collections.abc import Awaitable, Callable, Collection, Sequence
from dataclasses import dataclass, replace

from mimir.agents.agent_loop import Conversation, LoopServices, converse
from mimir.domain.message import Message
from mimir.domain.plan import Plan
from mimir.planning import parser
from mimir.planning.format.diagnostics import PlanFinding
from mimir.planning.lint.plan_check import check

MAX_REPAIRS = 2


@dataclass(frozen=True, slots=True, kw_only=True)
class PlanProposal:
    """What the PM proposed last, with all that is wrong with it."""

    text: str
    """As the PM wrote it."""
    plan: Plan
    findings: tuple[PlanFinding, ...]
    repairs: int

    @property
    def acceptable(self) -> bool:
        """True if it may run: warnings only."""
        return not any(f.severity == "error" for f in self.findings)


@dataclass(frozen=True, slots=True, kw_only=True)
class PlannerServices:
    """What the planner needs beside the agent's services."""

    services: LoopServices
    tools: Collection[str]
    """Names that a plan may list."""
    exists: Callable[[str], bool] | None
    """True if a path is in the project."""
    on_proposal: Callable[[PlanProposal], Awaitable[None]]


async def propose(request: str, brief: Sequence[Message], desk: PlannerServices) -> PlanProposal:
    """Ask for a plan until it can be accepted, at most `MAX_REPAIRS` rounds more.

    Args:
        request: The person's own words; kept in the plan.
        brief: The PM's context, with the form made from the one table of labels.
        desk: Services.

    Raises:
        AnswerError: The model gave no readable answer after one re-ask.
    """
    messages = tuple(brief)
    repairs = 0
    while True:
        talk = await converse(messages, desk.services)
        proposal = _read(request, talk, desk, repairs)
        await desk.on_proposal(proposal)
        if proposal.acceptable or repairs == MAX_REPAIRS:
            return proposal
        repairs += 1
        messages = (*talk.messages, Message(role="user", text=_repair(proposal)))


def _read(request: str, talk: Conversation, desk: PlannerServices, repairs: int) -> PlanProposal:
    parsed = parser.parse_plan(talk.answer.text)
    plan = replace(parsed.plan, request=" ".join(request.split()))
    found = check(parsed, tools=desk.tools, exists=desk.exists)
    return PlanProposal(text=talk.answer.text, plan=plan, findings=found, repairs=repairs)


def _repair(proposal: PlanProposal) -> str:
    lines = [
        f"- line {f.line}: {f.code}: {f.message} {f.suggestion}".rstrip() for f in proposal.findings
    ]
    return (
        "The engine checked this plan and cannot accept it:\n\n"
        + "\n".join(lines[:100])
        + "\n\nAnswer with the whole corrected plan in the same format, and nothing else."
    )
