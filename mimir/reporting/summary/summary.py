"""Summary of a run: the facts of its report, computed from the stored run. Pure.

Words of models (feedback, issues, claims) are quoted as such; they decide nothing.
"""

import shlex
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import replace

from mimir.domain import ids, money
from mimir.domain.clock import moment
from mimir.domain.criteria_counts import NO_CRITERIA, CriteriaCounts
from mimir.domain.event import Event, EventKind
from mimir.domain.evidence import describe_broken_check
from mimir.domain.failure import PMFailureSummary, QCFailureReport, TimelineEntry
from mimir.domain.json_value import as_array
from mimir.domain.pace import TaskTime, measure_pace
from mimir.domain.question import describe_unanswered, is_unanswered
from mimir.domain.run import exit_code
from mimir.domain.task_states import ANSWERED, RUN_ENDED, Cause, RunStatus, TaskStatus, shown_state
from mimir.domain.value_class import value_class
from mimir.qc.judgement.diagnosis import failure_report, failure_summary
from mimir.reporting.summary import decisions
from mimir.reporting.summary.decisions import ReportedDecision
from mimir.reporting.summary.metric_tally import MetricTally
from mimir.reporting.summary.metrics import ContextUse, Metric, context_use, metrics
from mimir.reporting.summary.proofs import ProofReport, TaskProof, prove_run, prove_task
from mimir.reporting.summary.requirement_lines import RequirementLine, requirement_lines
from mimir.reporting.summary.run_data import (
    ReportedQuestion,
    RunData,
    StateTriangle,
    TaskData,
    without_places,
)
from mimir.reporting.summary.task_lines import TaskLine, describe_trip, task_line


@value_class
class RunTotals:
    """Counts and sums of a run."""

    tasks: int
    by_status: Mapping[str, int]
    """Status → tasks; only those that occur."""
    attempts: int
    model_calls: int
    """Without those of reporters."""
    tokens: int
    """Of these calls, as charged."""
    cost: str | None
    """Of these calls, exact, in the currency of the prices. None: no model has a price."""
    unpriced_calls: int
    """Calls of models without a price while others have one; they are not in `cost`."""
    criteria: CriteriaCounts
    prices_as_of: str = ""
    """Date of the price list. Empty: the user has set the prices, or there are none."""


@value_class
class RunSchedule:
    """Time of a run against its lower bound."""

    bound_seconds: float
    """Time of the critical path: with any number of agents, no schedule is faster."""
    critical_path: tuple[str, ...]
    """Of the ended tasks: the chain of dependencies that took longest."""
    loss_seconds: float
    """Time of the run beyond the bound: waiting for agents, merges, the final gate, pauses."""


@value_class
class NextStep:
    """A command that the user can run next."""

    why: str
    command: str


@value_class
class RunSummary:
    """Facts of a report, without its narrative."""

    run: str
    kind: str
    title: str
    request: str
    goal: str
    plan_path: str
    """Relative to the project. Empty: the plan has no file."""
    outcome: str
    """The displayed word."""
    exit_code: int
    because: str
    """Reason of the outcome."""
    reason: str
    """Of a pause: `budget`, `provider` … Empty: it is not paused."""
    message: str
    """Of a pause."""
    started: str
    ended: str
    """Time of the last counted event."""
    elapsed_seconds: float
    schedule: RunSchedule | None
    """None: no task has ended."""
    engine_version: str
    controls: str
    """`always`, `accepted` or `never`. Empty: an older version ran it, without controls."""
    base_commit: str
    head: str
    """Of the run branch."""
    final_commit: str
    """Empty: no task changed a file, or the run has not ended."""
    branch: str
    """Branch of the result. Empty: none."""
    totals: RunTotals
    tasks: tuple[TaskLine, ...]
    proof: ProofReport
    failures: tuple[QCFailureReport, ...]
    impact: PMFailureSummary | None
    """None: no task failed."""
    decisions: tuple[ReportedDecision, ...]
    warnings: tuple[str, ...]
    metrics: tuple[Metric, ...]
    """Always nine, in the same order."""
    context: ContextUse
    next_steps: tuple[NextStep, ...]
    questions: tuple[ReportedQuestion, ...] = ()
    """Questions to the user, oldest first."""
    triangle: StateTriangle | None = None
    """None: nothing was asked and nothing was assumed."""
    requirements: tuple[RequirementLine, ...] = ()
    """Requirements that the user approved. Empty: there is no approved specification."""


class _TaskCollection:
    """Values that the tasks of a run add to its summary; one task is in memory at a time."""

    def __init__(self, data: RunData) -> None:
        self._seconds = data.totals.seconds
        self._events = decisions.group_by_attempt(data.events)
        self.lines: list[TaskLine] = []
        self.proofs: list[TaskProof] = []
        self.decisions: list[ReportedDecision] = []
        self.notes: list[str] = []
        self.failures: dict[str, QCFailureReport] = {}
        self.statuses: dict[str, TaskStatus] = {}
        self.times: dict[str, TaskTime] = {}
        self.tally = MetricTally()

    def add(self, task: TaskData) -> None:
        """Add a task, in the order of the plan."""
        proof = prove_task(task)
        self.lines.append(task_line(task, self._seconds.get(task.id)))
        self.proofs.append(proof)
        self.tally.add(task)
        for attempt in task.attempts:
            events = self._events.get((task.id, attempt.number), ())
            self.decisions += decisions.list_attempt_decisions(task, attempt, events)
            notes = attempt.work.notes if attempt.work else ()
            self.notes += [f"{task.id}, attempt {attempt.number}: {note}" for note in notes]
        # Only a merge with changes of other tasks runs the checks again.
        if proof.merged:
            self.decisions.append(decisions.merge_decision(task))
        self.statuses[task.id] = task.status
        self.times[task.id] = TaskTime(
            dependencies=task.dependencies,
            seconds=self._seconds.get(task.id, 0.0),
            has_ended=True,
        )
        if task.status is TaskStatus.FAILED:
            self.failures[task.id] = _report_failure(task)


def summarise(
    data: RunData, outcome: RunStatus | None = None, *, tasks: Iterable[TaskData] | None = None
) -> RunSummary:
    """Compute the summary of a run in one pass over its tasks.

    Args:
        data: The run.
        outcome: Of a run whose last write is still to come. None: as stored.
        tasks: In the order of the plan, each read once. None: those of `data`.
    """
    collection = _TaskCollection(data)
    for task in data.tasks if tasks is None else tasks:
        collection.add(task)
    outcome = outcome or data.status
    if outcome not in RUN_ENDED:  # the end of a run that was interrupted is made again
        data = replace(data, seal="", final_commit="", gate_red=())
    return _summary(data, outcome, collection)


def _summary(data: RunData, outcome: RunStatus, tasks: _TaskCollection) -> RunSummary:
    proof = prove_run(data, tasks.proofs)
    totals = _totals(data, tasks.lines)
    ended = data.totals.last or data.created_at
    elapsed = _seconds(data.created_at, ended)
    measured = tasks.tally.inputs(data.measured, data.pm_context)
    return RunSummary(
        run=data.id,
        kind=data.kind,
        title=data.title,
        request=data.request,
        goal=data.goal,
        plan_path=data.plan_path,
        outcome=shown_state(outcome, is_read_only=data.is_read_only),
        exit_code=exit_code(outcome),
        because=" ".join(
            (
                *_broken_checks(proof),
                *_list_unanswered(data, outcome),
                _reason(outcome, data, totals),
            )
        ),
        reason=data.pause_reason,
        message=without_places(data.pause_message),
        started=data.created_at,
        ended=ended,
        elapsed_seconds=elapsed,
        schedule=_schedule(tasks.times, elapsed),
        engine_version=data.engine_version,
        controls=data.controls,
        base_commit=data.base_commit,
        head=data.head,
        final_commit=data.final_commit,
        branch=(data.result_branch or ids.branch(data.id)) if data.final_commit else "",
        totals=totals,
        tasks=tuple(tasks.lines),
        proof=proof,
        failures=tuple(tasks.failures.values()),
        impact=failure_summary(data.plan, tasks.statuses, tasks.failures) if data.plan else None,
        decisions=(*tasks.decisions, *decisions.list_run_decisions(data.events)),
        warnings=decisions.collect_warnings(data.sandbox, data.events, proof.checks, tasks.notes),
        metrics=metrics(measured),
        context=context_use(measured),
        next_steps=_next_steps(outcome, data),
        questions=data.questions,
        triangle=data.triangle,
        requirements=requirement_lines(
            data.requirements, tasks.lines, data.plan, is_red=bool(data.gate_red)
        ),
    )


def _schedule(times: Mapping[str, TaskTime], elapsed: float) -> RunSchedule | None:
    # Without a limit of agents, the bound is the critical path alone.
    pace = measure_pace(times, len(times))
    if pace is None:
        return None
    return RunSchedule(
        bound_seconds=round(pace.bound_seconds, 3),
        critical_path=tuple(id for id in pace.path if times[id].seconds),
        loss_seconds=round(max(0.0, elapsed - pace.bound_seconds), 3),
    )


def _totals(data: RunData, lines: Sequence[TaskLine]) -> RunTotals:
    by_status = Counter(task.status for task in lines)
    spent = data.totals
    return RunTotals(
        tasks=len(lines),
        by_status={s: by_status[s] for s in (*TaskStatus, ANSWERED) if by_status[s]},
        attempts=sum(task.attempts for task in lines),
        model_calls=spent.calls,
        tokens=spent.tokens,
        cost=money.format_money(money.units(spent.cost)) if spent.priced else None,
        unpriced_calls=spent.calls - spent.priced if spent.priced else 0,
        criteria=sum((task.counts for task in lines), NO_CRITERIA),
        prices_as_of=data.prices_as_of,
    )


def _report_failure(task: TaskData) -> QCFailureReport:
    """Compute why a task failed, from its rejected attempts."""
    timeline = [
        TimelineEntry(attempt=a.number, score=a.score, cause=a.cause, issues=a.issues)
        for a in task.attempts
        if a.cause
    ]
    # A cause of a later version is unknown here.
    known = task.cause in Cause.__members__.values()
    cause = Cause(task.cause) if known else Cause.QC_REJECTED
    return failure_report(task.id, cause, timeline, tripped=map(describe_trip, task.attempts))


def _broken_checks(proof: ProofReport) -> Iterator[str]:
    """Yield the broken checks in words: a fault of the plan comes first."""
    for one in proof.checks:
        if one.required and one.state == "broken":
            yield describe_broken_check(one.task, one.check, next(iter(one.findings), ""))


def _list_unanswered(data: RunData, outcome: RunStatus) -> Iterator[str]:
    """Yield the questions that expired without an answer: their tasks are not whole."""
    for one in data.questions if outcome is RunStatus.COMPLETED_WITH_GAPS else ():
        if is_unanswered(one.state, one.answer):
            yield describe_unanswered(one.task, one.id, one.title)


def _reason(outcome: RunStatus, data: RunData, totals: RunTotals) -> str:
    match outcome:
        case RunStatus.COMPLETED if data.is_read_only:
            return "The agent has answered; no criterion and no check decided about the answer."
        case RunStatus.COMPLETED:
            return "Every task is completed and no criterion is open."
        case RunStatus.COMPLETED_WITH_GAPS:
            return (
                "Every task is completed. Open criteria: "
                f"{totals.criteria.failed} failed, {totals.criteria.unverified} unverified."
            )
        case RunStatus.FAILED:
            return _failure_reason(data, totals)
        case RunStatus.CANCELLED:
            return f"The run was cancelled; {_count(totals, TaskStatus.COMPLETED)} of {totals.tasks} tasks are completed."
        case RunStatus.PAUSED:
            return "The run is paused and can be resumed; nothing is lost."
        case RunStatus.RUNNING:
            return "The run has not ended; this is its current state."


def _failure_reason(data: RunData, totals: RunTotals) -> str:
    parts: list[str] = []
    failed, blocked = _count(totals, TaskStatus.FAILED), _count(totals, TaskStatus.BLOCKED)
    if failed or blocked:
        parts.append(
            f"Of {totals.tasks} tasks {_count(totals, TaskStatus.COMPLETED)} completed, "
            f"{failed} failed and {blocked} blocked."
        )
    if data.gate_red:
        parts.append("The final gate is red: checks fail on the final tree.")
    return " ".join(parts) or "The run failed."


def _count(totals: RunTotals, status: TaskStatus) -> int:
    return totals.by_status.get(status.value, 0)


def _next_steps(outcome: RunStatus, data: RunData) -> tuple[NextStep, ...]:
    run = shlex.quote(data.id)
    steps: list[NextStep] = []
    if outcome not in RUN_ENDED:
        # The golden files pin this member as it is.
        steps.append(NextStep(why="Go on", command=f"mimir resume {run}"))
    if outcome is RunStatus.FAILED and data.plan_path:
        reason = "Correct the plan and run it again"
        steps.append(NextStep(why=reason, command=f"mimir execute {shlex.quote(data.plan_path)}"))
        reason = "Run only the rest again"
        again = f"mimir execute {shlex.quote(data.plan_path)} --from {run}"
        steps.append(NextStep(why=reason, command=again))
    if any(_is_applied(event) for event in data.events):
        steps.append(NextStep(why="Look at the changes", command=f"mimir show {run} --diff"))
    elif data.final_commit:
        is_partial = outcome is RunStatus.FAILED
        reason = "Apply the completed tasks" if is_partial else "Apply the result to your files"
        flag = " --completed" if is_partial else ""
        steps.append(NextStep(why=reason, command=f"mimir apply {run}{flag}"))
    seal = f" --seal {data.seal}" if data.seal else ""
    steps.append(NextStep(why="Recompute every seal", command=f"mimir verify {run}{seal}"))
    steps.append(NextStep(why="Show the state of the run", command=f"mimir status {run}"))
    return tuple(steps)


def _is_applied(event: Event) -> bool:
    return event.kind is EventKind.APPLIED and not as_array(event.data.get("conflicts"))


def _seconds(start: str, end: str) -> float:
    return (moment(end) - moment(start)).total_seconds() if start and end else 0.0
