"""Inputs of contexts: the facts that a role may see, as frozen values. Pure.

Every field may occur in a prompt, so none holds an absolute path, a time or a random id.
"""

from collections.abc import Mapping
from dataclasses import replace
from fractions import Fraction
from typing import Literal

from mimir.agents.context.receipt import WithheldPiece
from mimir.domain.evidence import CheckOutcome
from mimir.domain.invocation import MemoryHit, PinnedMaterial, PinnedSkill, PlanAgent
from mimir.domain.plan import Task
from mimir.domain.value_class import value_class

# Budgets of QC together, which are the largest of a role.
_LARGEST_BRIEF = 42_000


@value_class
class ContextBudgets:
    """Token limit of each part; a piece that does not fit is referenced."""

    files: int = 12_000
    dependencies: int = 4_000
    earlier: int = 14_000
    """Previous answer, diff and failed outputs of a retry."""
    answer: int = 6_000
    """The worker's answer, for QC."""
    checks: int = 10_000
    changed: int = 24_000
    """Contents and diffs, for QC."""
    related: int = 2_000
    repository: int = 10_000
    memory: int = 8_000

    @classmethod
    def within(cls, context_tokens: int | None) -> "ContextBudgets":
        """Return budgets that leave half of a model's context to tools and answers."""
        budgets = cls()
        if context_tokens is None or context_tokens >= 2 * _LARGEST_BRIEF:
            return budgets
        share = context_tokens / (2 * _LARGEST_BRIEF)
        values = {n: int(getattr(budgets, n) * share) for n in cls.__dataclass_fields__}
        return replace(budgets, **values)

    def smaller(self) -> "ContextBudgets":
        """Return a third of each, for a retry after a context that was too long."""
        # Every field is a budget, so all of them shrink.
        return replace(
            self, **{name: getattr(self, name) // 3 for name in self.__dataclass_fields__}
        )


@value_class
class FileView:
    """A context file of a task."""

    path: str
    size: int
    """Bytes."""
    text: str | None
    """None: absent or not text."""
    note: str = ""
    """Reason for no text: `not there`, `binary` …"""


@value_class
class DependencyView:
    """A completed task that this one depends on."""

    id: str
    title: str
    answer: str
    """Its closing answer; only the beginning is shown."""
    files: tuple[str, ...] = ()
    """Changed paths."""
    artifact: str = ""
    """Argument of `read_artifact` for the whole answer."""


@value_class
class FailedCheck:
    """A failed check of an earlier attempt."""

    id: str
    command: str
    outcome: str
    """`exit code 1`, `timed out` …"""
    output: str


@value_class
class EarlierAttempt:
    """An earlier attempt of the same task."""

    number: int
    reason: str
    """Of the retry: `qc_failure`, `integration`, `silent_no_op` …"""
    score: Fraction | None = None
    """None: judged without QC."""
    issues: tuple[str, ...] = ()
    checks: tuple[FailedCheck, ...] = ()
    answer: str = ""
    artifact: str = ""
    """Argument of `read_artifact` for the whole answer."""
    diff: str = ""
    tripped: str = ""
    """Trip of its circuit breaker; empty: none."""
    note: str = ""
    """Other facts: files with conflict markers, changes that were left out …"""


@value_class
class WorkerInput:
    """Everything that a worker may see."""

    preamble: str
    """Of the role, with the fixed rules."""
    task: Task
    attempt: int
    attempts: int
    """Number allowed; an integration retry adds one to both numbers."""
    tools: tuple[str, ...] = ()
    """Names of the granted tools."""
    tool_calls: int = 0
    """Limit of its tool calls. 0: not known."""
    foreign_tests: tuple[str, ...] = ()
    """Sentences on tests that other tasks own, or the project."""
    files: tuple[FileView, ...] = ()
    dependencies: tuple[DependencyView, ...] = ()
    earlier: tuple[EarlierAttempt, ...] = ()
    """Oldest first."""
    required_fixes: tuple[str, ...] = ()
    """Of the last judged attempt; QC gets the same numbered list."""
    skills: tuple[PinnedSkill, ...] = ()
    """Of an agent definition."""
    material: PinnedMaterial | None = None
    """Of an invocation; its context has three shares of `window`. None: any other worker."""
    within: tuple[str, ...] = ()
    """Globs of its definition within which alone it may write. Empty: no such limit."""
    window: int = 0
    """Tokens of the user message of an invocation."""
    hidden: tuple[WithheldPiece, ...] = ()
    """For the PM only (`PlannerKnowledge`)."""


@value_class
class ChangedFile:
    """A changed file of a deliverable."""

    path: str
    status: Literal["added", "modified", "deleted"]
    text: str | None = None
    """Content; None: deleted, binary or not read."""
    diff: str = ""


@value_class
class RelatedTask:
    """A near task in the task graph."""

    id: str
    title: str
    status: str
    distance: int
    """Edges away: 1 or 2."""
    relation: Literal["needs", "needed_by"]


@value_class
class QCInput:
    """Everything that QC may see: the deliverable, not how it was made."""

    preamble: str
    task: Task
    attempt: int
    attempts: int
    answer: str
    artifact: str = ""
    """Argument of `read_artifact` for the whole answer."""
    outcomes: tuple[CheckOutcome, ...] = ()
    changed: tuple[ChangedFile, ...] = ()
    cited: Mapping[int, str] | None = None
    """Quotable calls of the worker: cited, on the deliverable's tree. Number → text."""
    cited_arguments: Mapping[int, str] | None = None
    """Arguments of the cited calls: words in them are no evidence. Number → raw text."""
    unsupported: tuple[str, ...] = ()
    required_fixes: tuple[str, ...] = ()
    """Of the previous attempt, as the worker saw them."""
    related: tuple[RelatedTask, ...] = ()
    notes: tuple[str, ...] = ()
    """Findings of the engine: omitted files, changed protected files …"""
    form: str = ""
    """Form of the QC answer; closes the system message."""
    worker_tokens: int = 0
    """Tokens of the worker's brief; this context has at most twice as many. 0: no limit."""
    hidden: tuple[WithheldPiece, ...] = ()


@value_class
class PMInput:
    """Everything that the PM may see."""

    preamble: str
    request: str
    """The user's own words."""
    specification: str = ""
    """Ecko's, or the approved one; empty: none."""
    is_approved: bool = False
    """True: the user approved the specification."""
    repository: tuple[tuple[str, int], ...] = ()
    """(path, bytes), sorted."""
    files: tuple[FileView, ...] = ()
    """The most useful ones, such as README."""
    sandbox: tuple[str, ...] = ()
    """Facts about the sandbox: programs, shared folders, test command, limits."""
    memory: tuple[MemoryHit, ...] = ()
    agents: tuple[PlanAgent, ...] = ()
    """Agent definitions that its plan may name."""
    form: str = ""
    """Form of the plan; closes the system message."""
