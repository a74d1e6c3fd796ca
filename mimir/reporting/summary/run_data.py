"""What a report is made from: a run as the store has it, in frozen values. Pure; `gather` fills them."""

import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from decimal import Decimal

from mimir.agents.circuit_breaker import Trip
from mimir.agents.context.receipt import ReceiptTotals
from mimir.domain.event import Event
from mimir.domain.evidence import CheckOutcome, EvidenceRecord
from mimir.domain.plan import Plan
from mimir.domain.task_states import RunStatus, TaskStatus
from mimir.domain.verdict import Verdict
from mimir.reporting.summary.metrics import NOTHING, MetricInputs

# A directory's name may hold blanks; a blank before a slash begins another path.
_PLACES = re.compile(r"(?<![\w./-])/(?:(?:(?!\s/)[^\n'\"`])*?/)?(?=\.mimir\b)")


def without_places(text: str) -> str:
    """Return an engine's message without the directory above `.mimir`: a report holds no absolute path."""
    return _PLACES.sub("", text)


@dataclass(frozen=True, slots=True, kw_only=True)
class DeliverableData:
    """A deliverable as its attempt left it."""

    answer: str
    """The worker's closing answer; untrusted."""
    base_tree: str
    tree: str
    commit: str
    """Empty: nothing was changed."""
    changed: tuple[str, ...]
    left_out: tuple[str, ...]
    protected: tuple[str, ...]
    notes: tuple[str, ...]
    unsupported: tuple[str, ...]
    """Citations that the worker's ledger does not hold."""
    tool_calls: int


@dataclass(frozen=True, slots=True, kw_only=True)
class AttemptData:
    """One attempt."""

    id: str
    """Of its node, and of its evidence chain."""
    number: int
    cause: str
    """Why it was not accepted; empty: it was, or it has not ended."""
    issues: tuple[str, ...]
    score: float | None
    """None: QC did not rule on it."""
    tool_calls: int
    """Of the worker, as the breaker counts; those of a rejected attempt as its lane counts."""
    seconds: float | None
    """That the worker took; None: it gave no deliverable."""
    work: DeliverableData | None = None
    outcomes: tuple[CheckOutcome, ...] = ()
    judgement: Verdict | None = None
    trip: Trip | None = None
    receipts: tuple[ReceiptTotals, ...] = ()
    """The worker's, then QC's."""


@dataclass(frozen=True, slots=True, kw_only=True)
class TaskData:
    """One task."""

    id: str
    """In the plan."""
    node: str
    title: str
    status: TaskStatus
    cause: str
    blocked_by: str
    made: int
    """Attempts made so far."""
    accepted: int
    """Number of the accepted attempt; 0: none."""
    score: float | None
    feedback: str
    """QC's words on the last judged attempt; untrusted."""
    max_retries: int
    integration_retries: int
    estimated_tool_calls: int | None
    files_changed: tuple[str, ...]
    """Of the accepted deliverable."""
    commit: str
    """With which it entered the run's line; empty: it changed nothing, or is not completed."""
    taken_from: str
    """Attempt of an earlier run that was taken over; empty: it was made in this run."""
    attempts: tuple[AttemptData, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class ArtifactData:
    """A text that an attempt produced."""

    id: str
    sha256: str
    """Computed from the text."""
    length: int
    """Characters."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ModelSpending:
    """What the calls of models came to; those of the reporters are left out."""

    calls: int = 0
    tokens: int = 0
    """As charged."""
    cost: Decimal = Decimal(0)
    """Of the calls that have one."""
    priced: int = 0
    """Calls that have a cost."""


NOTHING_SPENT = ModelSpending()


@dataclass(frozen=True, slots=True, kw_only=True)
class RunDataPart:
    """Some of a run's tasks, with what belongs to their attempts."""

    tasks: tuple[TaskData, ...]
    """In the plan's order."""
    evidence: Mapping[str, tuple[EvidenceRecord, ...]]
    """Chain → its records in order."""
    artifacts: Mapping[str, ArtifactData]
    """By id."""


@dataclass(frozen=True, slots=True, kw_only=True)
class RunData:
    """One run."""

    id: str
    kind: str
    title: str
    request: str
    goal: str
    plan_path: str
    status: RunStatus
    """As stored."""
    created_at: str
    engine_version: str
    sandbox: str
    base_commit: str
    head: str
    final_commit: str
    seal: str
    gate_red: tuple[str, ...]
    """In words."""
    pause_reason: str
    pause_message: str
    plan: Plan | None
    """None: no task failed or is blocked, so nobody asks what follows from it."""
    tasks: tuple[TaskData, ...] = ()
    """In the plan's order."""
    evidence: Mapping[str, tuple[EvidenceRecord, ...]] = field(
        default_factory=dict[str, tuple[EvidenceRecord, ...]]
    )
    """Chain → its records in order; the gate's chain among them."""
    events: tuple[Event, ...] = ()
    """Those that a report tells of one by one; none that is written with or after the report."""
    seconds: Mapping[str, float] = field(default_factory=dict[str, float])
    """Task → from its first attempt's start to its end; tasks that ended."""
    spent: ModelSpending = NOTHING_SPENT
    last: str = ""
    """When the last thing happened that is told of; empty: nothing did."""
    artifacts: Mapping[str, ArtifactData] = field(default_factory=dict[str, ArtifactData])
    """By id."""
    measured: MetricInputs = NOTHING
    """What its metrics are made from."""

    @property
    def gate(self) -> str:
        """Name of the final gate's chain."""
        return f"{self.id}/gate"

    @property
    def whole(self) -> RunDataPart:
        """Return all that belongs to its tasks."""
        return RunDataPart(tasks=self.tasks, evidence=self.evidence, artifacts=self.artifacts)
