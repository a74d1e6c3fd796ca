"""Contexts for all three roles, with a receipt: `get_task_context`. Pure: equal inputs give equal bytes.

The system message is the stable part: the preamble with the fixed rules, and the form of the answer. It is byte-equal for every call and
attempt of a role, so that prompt caches hold. What belongs to one attempt stands in the user message, which begins with `Task: <id>` and
`Attempt <n> of <m>`.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Literal, overload

from mimir.agents.context import quotation
from mimir.agents.context.inputs import ContextBudgets, PMInput, QCInput, WorkerInput
from mimir.agents.context.pm import pm
from mimir.agents.context.qc import qc
from mimir.agents.context.receipt import ContextReceipt, GivenPiece, WithheldPiece, fingerprint
from mimir.agents.context.token_budget import ContextBuilder, ContextPiece
from mimir.agents.context.worker import worker
from mimir.domain.message import Message
from mimir.domain.plan import Plan, Task
from mimir.domain.usage import estimate

DEFAULT_BUDGETS = ContextBudgets()


@dataclass(frozen=True, slots=True, kw_only=True)
class AgentContext:
    """What one agent is given."""

    system: tuple[str, ...]
    """Parts of the system message, stable first: preamble with fixed rules, then the form of the answer."""
    text: str
    """The user message."""
    receipt: ContextReceipt

    @property
    def messages(self) -> tuple[Message, Message]:
        """The brief: system and user message."""
        return (
            Message(role="system", text="\n\n".join(self.system)),
            Message(role="user", text=self.text),
        )


@overload
def get_task_context(
    role: Literal["worker"], given: WorkerInput, *, lane: str = "", budgets: ContextBudgets = ...
) -> AgentContext: ...
@overload
def get_task_context(
    role: Literal["qc"], given: QCInput, *, lane: str = "", budgets: ContextBudgets = ...
) -> AgentContext: ...
@overload
def get_task_context(
    role: Literal["pm"], given: PMInput, *, lane: str = "", budgets: ContextBudgets = ...
) -> AgentContext: ...
def get_task_context(
    role: Literal["worker", "qc", "pm"],
    given: WorkerInput | QCInput | PMInput,
    *,
    lane: str = "",
    budgets: ContextBudgets = DEFAULT_BUDGETS,
) -> AgentContext:
    """Return what an agent is given.

    Args:
        role: Whose view; each has an input of its own, so that a role cannot be handed what it must not see.
        given: What the engine knows.
        lane: Stands in the receipt, never in the text.
        budgets: Tokens of each part; `budgets.smaller()` after a context that was too long.

    Raises:
        TypeError: `given` is another role's input.
    """
    sheet = ContextBuilder(lane=lane)
    form, withheld = "", ()
    match role, given:
        case "worker", WorkerInput():
            worker(given, budgets, sheet)
            withheld = given.hidden
        case "qc", QCInput():
            qc(given, budgets, sheet)
            form, withheld = given.form, given.hidden
        case "pm", PMInput():
            pm(given, budgets, sheet)
            form = given.form
        case _:
            raise TypeError(f"{type(given).__name__} is no input of the role {role!r}.")
    system = tuple(quotation.printable(part) for part in (given.preamble, form) if part)
    return AgentContext(
        system=system, text=sheet.text, receipt=_receipt(role, sheet, system, withheld)
    )


def _receipt(
    role: str, sheet: ContextBuilder, system: tuple[str, ...], withheld: tuple[WithheldPiece, ...]
) -> ContextReceipt:
    """Return the receipt; headings and the engine's own words are one piece, so that the sum is the whole prompt."""
    frame = max(0, estimate(sheet.text) - sum(piece.tokens for piece in sheet.given))
    for name, part in zip(("preamble", "form"), system, strict=False):
        sheet.note(ContextPiece(name=name, content=part, importance="critical"), part)
    if frame:
        sheet.given.append(
            GivenPiece(name="frame", importance="critical", tokens=frame, hash=fingerprint("frame"))
        )
    return sheet.receipt(role, withheld)


@dataclass(frozen=True, slots=True, kw_only=True)
class PlannerKnowledge:
    """What the PM had and neither worker nor QC may see; made once a run, for the receipts' `hidden`."""

    planning: tuple[WithheldPiece, ...]
    """Reasoning, research, and what the PM was given."""
    tasks: Mapping[str, int]
    """Tokens of each task's title, prompt, criteria and words on tools."""
    total: int
    """Of them all: a plan may have thousands, and every attempt asks."""

    @classmethod
    def of(cls, plan: Plan, receipt: ContextReceipt | None = None) -> "PlannerKnowledge":
        """Take it from an accepted plan and the PM's receipt; None: a plan that a person wrote."""
        texts = (("reasoning", plan.reasoning), ("goal", plan.goal), ("notes", plan.notes))
        own = tuple(
            WithheldPiece(name=f"plan:{name}", why="role", tokens=estimate(text))
            for name, text in texts
            if text
        )
        # Without hashes: what no other agent is given is compared with nothing, and every receipt holds these lines.
        seen = tuple(
            WithheldPiece(name=f"pm:{piece.name}", why="role", tokens=piece.tokens)
            for piece in (receipt.given if receipt else ())
        )
        tasks = {t.id: _tokens(t) for t in plan.tasks}
        return cls(planning=(*own, *seen), tasks=tasks, total=sum(tasks.values()))

    def hidden_from(self, task: Task) -> tuple[WithheldPiece, ...]:
        """Return what is withheld from one task's agents for their role; other tasks in one line."""
        own = self.tasks.get(task.id)
        others = len(self.tasks) - (own is not None)
        if not others:
            return self.planning
        tokens = self.total - (own or 0)
        return (
            *self.planning,
            WithheldPiece(name=f"{others} other tasks", why="role", tokens=tokens),
        )


def _tokens(task: Task) -> int:
    """Return the tokens of what the PM wrote for a task's agents."""
    texts = (task.title, task.prompt, task.tool_execution, *(c.text for c in task.criteria))
    return sum(map(estimate, texts))
