"""What a run came to, computed from what is stored of it. Pure: the same material gives the same summary, whoever asks and whenever.

Nothing here is told by a model: where words of models stand in a summary (feedback, issues, claims) they are quoted as such.
"""

import shlex
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

from mimir.domain import ids, money
from mimir.domain.clock import moment
from mimir.domain.criteria_counts import NO_CRITERIA, CriteriaCounts
from mimir.domain.event import Event
from mimir.domain.failure import PMFailureSummary, QCFailureReport, TimelineEntry
from mimir.domain.run import exit_code
from mimir.domain.task_states import RUN_ENDED, Cause, RunStatus, TaskStatus
from mimir.qc.judgement.diagnosis import failure_report, failure_summary
from mimir.reporting.summary.decisions import DecisionCollector, ReportedDecision
from mimir.reporting.summary.metrics import ContextUse, Metric, context_use, metrics
from mimir.reporting.summary.proofs import ProofCollector, ProofReport
from mimir.reporting.summary.run_data import RunData, RunDataPart, TaskData, without_places
from mimir.reporting.summary.task_lines import TaskLine, describe_trip, lines


@dataclass(frozen=True, slots=True, kw_only=True)
class RunTotals:
    """The run in numbers."""

    tasks: int
    by_status: Mapping[str, int]
    """Status → tasks; only those that occur."""
    attempts: int
    model_calls: int
    """Of every agent but the reporters."""
    tokens: int
    """Of those calls, as charged."""
    cost: str | None
    """Of those calls, exact, in the currency of the prices; None: no model has a price."""
    unpriced_calls: int
    """Of those calls, asked of models without a price while others had one: not in `cost`."""
    criteria: CriteriaCounts


@dataclass(frozen=True, slots=True, kw_only=True)
class NextStep:
    """How to go on."""

    why: str
    command: str


@dataclass(frozen=True, slots=True, kw_only=True)
class RunSummary:
    """All that a report says, but for the prose of models."""

    run: str
    kind: str
    title: str
    request: str
    goal: str
    plan_path: str
    """Relative to the project; empty: the plan is no file."""
    outcome: RunStatus
    exit_code: int
    because: str
    """Why it is this outcome, in the engine's words."""
    reason: str
    """Of a pause: `budget`, `provider` …; empty: it is not paused."""
    message: str
    """What a paused run said."""
    started: str
    ended: str
    """When the last thing happened that is told of."""
    elapsed_seconds: float
    engine_version: str
    base_commit: str
    head: str
    """Of the run's line."""
    final_commit: str
    """Empty: nothing was merged, or the run has not ended."""
    branch: str
    """That holds the result; empty: there is none."""
    totals: RunTotals
    tasks: tuple[TaskLine, ...]
    proof: ProofReport
    failures: tuple[QCFailureReport, ...]
    impact: PMFailureSummary | None
    """None: nothing failed."""
    decisions: tuple[ReportedDecision, ...]
    warnings: tuple[str, ...]
    metrics: tuple[Metric, ...]
    """The nine, always in the same order."""
    context: ContextUse
    next_steps: tuple[NextStep, ...]


def summarise(data: RunData, outcome: RunStatus | None = None) -> RunSummary:
    """Compute the summary of a run.

    Args:
        data: The run.
        outcome: Of a run whose last write is still to come. None: as stored.
    """
    summing = SummaryBuilder(data.events, data.seconds)
    summing.add_part(data.whole)
    return summing.finish(data, outcome)


class SummaryBuilder:
    """Takes a run a part at a time, and keeps what its summary says."""

    def __init__(self, events: Sequence[Event], seconds: Mapping[str, float]) -> None:
        """Begin with what happened, as in `RunData`; both may grow, and must hold what concerns a task before it is taken in."""
        self._seconds = seconds
        self._proving = ProofCollector()
        self._deciding = DecisionCollector(events)
        self._told: list[TaskLine] = []
        self._failed: dict[str, QCFailureReport] = {}
        self._statuses: dict[str, TaskStatus] = {}

    def add_part(self, part: RunDataPart) -> None:
        """Take in some tasks, in the plan's order."""
        self._told += lines(part, self._seconds)
        self._deciding.take(part, self._proving.add_part(part))
        for task in part.tasks:
            self._statuses[task.id] = task.status
            if task.status is TaskStatus.FAILED:
                self._failed[task.id] = _failure(task)

    def finish(self, data: RunData, outcome: RunStatus | None = None) -> RunSummary:
        """Return the summary, when all parts were taken; `outcome` as in `summarise`."""
        came_to = outcome or data.status
        if came_to not in RUN_ENDED:  # what an end that was cut short has noted is made again
            data = replace(data, seal="", final_commit="", gate_red=())
        told, proven = tuple(self._told), self._proving.finish(data)
        totals = _totals(data, told)
        ended = data.last or data.created_at
        return RunSummary(
            run=data.id,
            kind=data.kind,
            title=data.title,
            request=data.request,
            goal=data.goal,
            plan_path=data.plan_path,
            outcome=came_to,
            exit_code=exit_code(came_to),
            because=_because(came_to, data, totals),
            reason=data.pause_reason,
            message=without_places(data.pause_message),
            started=data.created_at,
            ended=ended,
            elapsed_seconds=_seconds(data.created_at, ended),
            engine_version=data.engine_version,
            base_commit=data.base_commit,
            head=data.head,
            final_commit=data.final_commit,
            branch=ids.branch(data.id) if data.final_commit else "",
            totals=totals,
            tasks=told,
            proof=proven,
            failures=tuple(self._failed.values()),
            impact=failure_summary(data.plan, self._statuses, self._failed) if data.plan else None,
            decisions=self._deciding.decisions(),
            warnings=self._deciding.warnings(proven),
            metrics=metrics(data.measured),
            context=context_use(data.measured),
            next_steps=_next_steps(came_to, data),
        )


def _totals(data: RunData, told: tuple[TaskLine, ...]) -> RunTotals:
    by_status = Counter(task.status for task in told)
    spent = data.spent
    return RunTotals(
        tasks=len(told),
        by_status={s.value: by_status[s.value] for s in TaskStatus if by_status[s.value]},
        attempts=sum(task.attempts for task in told),
        model_calls=spent.calls,
        tokens=spent.tokens,
        cost=money.format_money(money.units(spent.cost)) if spent.priced else None,
        unpriced_calls=spent.calls - spent.priced if spent.priced else 0,
        criteria=sum((task.counts for task in told), NO_CRITERIA),
    )


def _failure(task: TaskData) -> QCFailureReport:
    """Compute why a task failed, from all of its attempts that ended without being accepted."""
    timeline = [
        TimelineEntry(attempt=a.number, score=a.score, cause=a.cause, issues=a.issues)
        for a in task.attempts
        if a.cause
    ]
    known = task.cause in Cause.__members__.values()
    cause = Cause(task.cause) if known else Cause.QC_REJECTED
    return failure_report(task.id, cause, timeline, tripped=map(describe_trip, task.attempts))


def _because(outcome: RunStatus, data: RunData, totals: RunTotals) -> str:
    match outcome:
        case RunStatus.COMPLETED:
            return "Every task is completed and no criterion is open."
        case RunStatus.COMPLETED_WITH_GAPS:
            return (
                "Every task is completed, but of the criteria "
                f"{totals.criteria.failed} failed and {totals.criteria.unverified} are unverified."
            )
        case RunStatus.FAILED:
            return _failed(data, totals)
        case RunStatus.CANCELLED:
            return f"It was cancelled; {_of(totals, TaskStatus.COMPLETED)} of {totals.tasks} tasks are completed."
        case RunStatus.PAUSED:
            return "It stopped and can be resumed; nothing is lost."
        case RunStatus.RUNNING:
            return "It has not ended; this is where it stands."


def _failed(data: RunData, totals: RunTotals) -> str:
    parts: list[str] = []
    failed, blocked = _of(totals, TaskStatus.FAILED), _of(totals, TaskStatus.BLOCKED)
    if failed or blocked:
        parts.append(
            f"Of {totals.tasks} tasks {_of(totals, TaskStatus.COMPLETED)} completed, "
            f"{failed} failed and {blocked} blocked."
        )
    if data.gate_red:
        parts.append("The final gate is red: the result does not hold together.")
    return " ".join(parts) or "It failed."


def _of(totals: RunTotals, status: TaskStatus) -> int:
    return totals.by_status.get(status.value, 0)


def _next_steps(outcome: RunStatus, data: RunData) -> tuple[NextStep, ...]:
    run = shlex.quote(data.id)
    steps: list[NextStep] = []
    if outcome not in RUN_ENDED:
        steps.append(NextStep(why="Go on", command=f"mimir resume {run}"))
    if outcome is RunStatus.FAILED and data.plan_path:
        why = "Run the plan again, once it is mended"
        steps.append(NextStep(why=why, command=f"mimir execute {shlex.quote(data.plan_path)}"))
    if data.final_commit:
        why = "Bring the result into your directory by hand"
        steps.append(NextStep(why=why, command=f"mimir apply {run}"))
    seal = f" --seal {data.seal}" if data.seal else ""
    steps.append(NextStep(why="Recompute every seal", command=f"mimir verify {run}{seal}"))
    steps.append(NextStep(why="See where it stands", command=f"mimir status {run}"))
    return tuple(steps)


def _seconds(start: str, end: str) -> float:
    return (moment(end) - moment(start)).total_seconds() if start and end else 0.0
