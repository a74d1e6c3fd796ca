"""Contexts of all roles, with a receipt: equal inputs give equal bytes. Pure.

The system message is byte-equal for every call and attempt of a role, so that prompt caches work. The user message has the parts that
belong to one attempt; it begins with `Task: <id>` and `Attempt <n> of <m>`.
"""

from collections.abc import Mapping
from typing import Literal

from mimir.agents.context.agent import write_agent_context
from mimir.agents.context.inputs import ContextBudgets, PMInput, QCInput, WorkerInput
from mimir.agents.context.pm import write_pm_context
from mimir.agents.context.qc import write_qc_context
from mimir.agents.context.receipt import ContextReceipt, GivenPiece, WithheldPiece, fingerprint
from mimir.agents.context.token_budget import ContextBuilder, ContextPiece
from mimir.agents.context.worker import write_worker_context
from mimir.domain.message import Message
from mimir.domain.plan import Plan, Task
from mimir.domain.quoted_text import storable
from mimir.domain.usage import estimate
from mimir.domain.value_class import value_class

DEFAULT_BUDGETS = ContextBudgets()


@value_class
class AgentContext:
    """Context of one agent."""

    system: tuple[str, ...]
    """Parts of the system message: preamble with fixed rules, form of the answer."""
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


def get_task_context(
    role: Literal["worker", "qc", "pm"],
    given: WorkerInput | QCInput | PMInput,
    *,
    lane: str = "",
    budgets: ContextBudgets = DEFAULT_BUDGETS,
) -> AgentContext:
    """Return the context of an agent; a `TypeError` for another role's input.

    `lane` is for the receipt only. Use `budgets.smaller()` after a context that was too long.
    """
    sheet = ContextBuilder(lane=lane)
    # Each role has its own type of input, so that it cannot get data that it must not see.
    form, withheld = "", ()
    match role, given:
        case "worker", WorkerInput():
            if given.material is None:
                write_worker_context(given, budgets, sheet)
            else:
                write_agent_context(given, given.material, sheet)
            withheld = given.hidden
        case "qc", QCInput():
            write_qc_context(given, budgets, sheet)
            form, withheld = given.form, given.hidden
        case "pm", PMInput():
            write_pm_context(given, budgets, sheet)
            form = given.form
        case _:
            raise TypeError(f"{type(given).__name__} is no input of the role {role!r}.")
    system = tuple(storable(part) for part in (given.preamble, form) if part)
    return AgentContext(
        system=system, text=sheet.text, receipt=_receipt(role, sheet, system, withheld)
    )


def _receipt(
    role: str, sheet: ContextBuilder, system: tuple[str, ...], withheld: tuple[WithheldPiece, ...]
) -> ContextReceipt:
    # Headings and the engine's words are one piece, so that the sum is the whole prompt.
    frame = max(0, estimate(sheet.text) - sum(piece.tokens for piece in sheet.given))
    for name, part in zip(("preamble", "form"), system, strict=False):
        sheet.note(ContextPiece(name=name, content=part, importance="critical"), part)
    if frame:
        sheet.given.append(
            GivenPiece(name="frame", importance="critical", tokens=frame, hash=fingerprint("frame"))
        )
    return sheet.receipt(role, withheld)


@value_class
class PlannerKnowledge:
    """Pieces for the PM only, computed once a run for the receipts' `hidden`."""

    planning: tuple[WithheldPiece, ...]
    """Reasoning, research, and the PM's own context."""
    tasks: Mapping[str, int]
    """Task → tokens of title, prompt, criteria and tool instructions."""
    total: int
    """Sum of `tasks`: a plan may have thousands, and every attempt needs it."""

    @classmethod
    def from_plan(cls, plan: Plan, receipt: ContextReceipt | None = None) -> "PlannerKnowledge":
        """Compute it from a plan and the PM's receipt; None: the user wrote the plan."""
        texts = (("reasoning", plan.reasoning), ("goal", plan.goal), ("notes", plan.notes))
        own = tuple(
            WithheldPiece(name=f"plan:{name}", why="role", tokens=estimate(text))
            for name, text in texts
            if text
        )
        # Without hashes: no other agent gets these pieces, and every receipt repeats them.
        seen = tuple(
            WithheldPiece(name=f"pm:{piece.name}", why="role", tokens=piece.tokens)
            for piece in (receipt.given if receipt else ())
        )
        tasks = {
            t.id: sum(
                map(estimate, (t.title, t.prompt, t.tool_execution, *(c.text for c in t.criteria)))
            )
            for t in plan.tasks
        }
        return cls(planning=(*own, *seen), tasks=tasks, total=sum(tasks.values()))

    def hidden_from(self, task: Task) -> tuple[WithheldPiece, ...]:
        """Return the pieces withheld from one task's agents; other tasks are one piece."""
        others = len(self.tasks) - (task.id in self.tasks)
        if not others:
            return self.planning
        tokens = self.total - self.tasks.get(task.id, 0)
        other = WithheldPiece(name=f"{others} other tasks", why="role", tokens=tokens)
        return (*self.planning, other)
