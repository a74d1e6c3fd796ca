"""Stored run as frozen values: the input of a summary, filled by `run_loader`. Pure."""

import re
from collections.abc import Mapping
from dataclasses import asdict, field

from mimir.agents.circuit_breaker import Trip
from mimir.agents.context.receipt import ReceiptTotals
from mimir.domain.deliverable import Deliverable
from mimir.domain.event import Event
from mimir.domain.evidence import CheckOutcome, EvidenceRecord
from mimir.domain.plan import Plan
from mimir.domain.requirement import Requirement
from mimir.domain.task_states import RunStatus, TaskStatus
from mimir.domain.value_class import value_class
from mimir.domain.verdict import Verdict
from mimir.reporting.summary.event_totals import EventTotals
from mimir.reporting.summary.metrics import NOTHING, MetricInputs

# The name of a directory may hold blanks; a blank before a slash starts another path.
_PLACES = re.compile(r"(?<![\w./-])/(?:(?:(?!\s/)[^\n'\"`])*?/)?(?=\.mimir\b)")


def without_places(text: str) -> str:
    """Remove the directory above `.mimir`: a report must not reveal local directories."""
    return _PLACES.sub("", text)


@value_class
class AttemptData:
    """One attempt with its evidence records."""

    id: str
    """Id of the node and name of the evidence chain."""
    number: int
    cause: str
    """Reason of its rejection. Empty: it was accepted, or has not ended."""
    issues: tuple[str, ...]
    score: float | None
    """None: no verdict."""
    tool_calls: int
    """Of the worker, as the circuit breaker counts them."""
    seconds: float | None
    """Time of the worker. None: no deliverable."""
    work: Deliverable | None = None
    """Without its tool log. None: the worker has not answered."""
    outcomes: tuple[CheckOutcome, ...] = ()
    judgement: Verdict | None = None
    trip: Trip | None = None
    receipts: tuple[ReceiptTotals, ...] = ()
    """Of the worker, then of QC."""
    evidence: tuple[EvidenceRecord, ...] = ()
    answer_hash: str = ""
    """SHA-256 of the stored answer. Empty: no answer is stored."""
    is_rejected: bool = False
    """True: it was judged and uses up an attempt."""
    is_reused: bool = False
    """True: an earlier run made it, so that run measured it."""
    given_tokens: int = 0
    """Context of the worker and QC."""
    available_tokens: int = 0
    """All that could be given to them."""
    pieces: tuple[tuple[str, int], ...] = ()
    """(hash, tokens) of each piece of these contexts."""
    started_at: str = ""
    """Start of the worker. Empty: not started."""
    answered_at: str = ""
    """Empty: no answer."""


@value_class
class TaskData:
    """One task with its attempts."""

    id: str
    """In the plan."""
    node: str
    title: str
    status: TaskStatus
    cause: str
    blocked_by: str
    made: int
    """Attempts so far."""
    accepted: int
    """Number of the accepted attempt. 0: none."""
    score: float | None
    feedback: str
    """Feedback of QC on the last judged attempt; untrusted."""
    max_retries: int
    integration_retries: int
    estimated_tool_calls: int | None
    files_changed: tuple[str, ...]
    """Of the accepted deliverable."""
    commit: str
    """On the run branch. Empty: no file was changed, or it is not completed."""
    taken_from: str
    """Attempt of an earlier run that was reused. Empty: this run made it."""
    dependencies: tuple[str, ...] = ()
    held_seconds: float = 0.0
    """Time under leases."""
    attempts: tuple[AttemptData, ...] = ()
    is_read_only: bool = False
    """True: nothing decided it."""

    @property
    def accepted_attempt(self) -> AttemptData | None:
        """Accepted attempt; None: none."""
        return next((one for one in self.attempts if one.number == self.accepted), None)

    @property
    def last_attempt(self) -> AttemptData | None:
        """Newest attempt; None: none."""
        return self.attempts[-1] if self.attempts else None


@value_class
class ReportedQuestion:
    """One question to the user."""

    id: str
    task: str
    attempt: int
    title: str
    """Of an agent; untrusted."""
    state: str
    """`open`, `answered`, `expired` or `withdrawn`."""
    blocking: bool
    answer: str
    """On one line. Empty: there is none."""
    default: str
    """Empty: there is none."""
    by: str
    """Empty: no user answered."""
    transport: str
    asked_at: str
    closed_at: str
    """Empty: it is open."""


@value_class
class StateTriangle:
    """Direction, assumptions and decisions of a run, in the words of users and agents."""

    direction: tuple[str, ...] = ()
    """The request, and the answers of the user."""
    assumptions: tuple[str, ...] = ()
    """Defaults that are in force without an answer, and assumptions of workers."""
    decisions: tuple[str, ...] = ()
    """The plan, and answered questions."""

    def as_json(self) -> Mapping[str, object]:
        """Return it as JSON values."""
        return {name: list(texts) for name, texts in asdict(self).items()}


@value_class
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
    controls: str = ""
    """`always`, `accepted` or `never`. Empty: an older version ran it, without controls."""
    base_commit: str
    head: str
    final_commit: str
    result_branch: str
    """Empty: it has the usual name."""
    seal: str
    gate_red: tuple[str, ...]
    """Red checks of the final gate, in words."""
    pause_reason: str
    pause_message: str
    is_read_only: bool = False
    """True: nothing decided the result."""
    plan: Plan | None
    """None: no task failed or is blocked, so the plan is not needed."""
    tasks: tuple[TaskData, ...] = ()
    """In the order of the plan."""
    prices_as_of: str = ""
    """Date of the price list. Empty: the user has set the prices, or there are none."""
    gate_evidence: tuple[EvidenceRecord, ...] = ()
    """Evidence chain of the final gate."""
    events: tuple[Event, ...] = ()
    """Events that a report lists; none that is written with or after the report."""
    totals: EventTotals = field(default_factory=EventTotals)
    measured: MetricInputs = NOTHING
    """Inputs of the metrics that do not follow from the tasks."""
    questions: tuple[ReportedQuestion, ...] = ()
    """Oldest first."""
    triangle: StateTriangle | None = None
    """None: nothing was asked and nothing was assumed."""
    requirements: tuple[Requirement, ...] = ()
    """Of the specification that the user approved. Empty: there is none."""
    pm_context: tuple[tuple[str, int | None], ...] = ()
    """(time of the answer, input tokens) of each model call of the PM, in order."""

    @property
    def gate(self) -> str:
        """Name of the final gate's evidence chain."""
        return f"{self.id}/gate"
