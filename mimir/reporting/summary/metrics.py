"""The nine metrics of a run: formula, inputs, goal, and whether the goal is reached. Pure.

A metric without inputs has no value and says why. `docs/metrics.md` has a query for each, for both stores.
"""

from collections.abc import Mapping, Sequence
from typing import Literal

from mimir.domain.value_class import value_class

Unit = Literal["share", "seconds"]
Number = int | float | None
Goal = tuple[Literal[">", "<", "="], float]

WORKER_SECONDS = 300
PM_SECONDS = 3600


@value_class
class MetricInputs:
    """Counts and sums of a run, from which its metrics are computed."""

    piece_tokens: int = 0
    """Of every piece that an agent was given, or that was withheld as a duplicate."""
    unique_tokens: int = 0
    """Of every different piece once, at its longest."""
    given_tokens: int = 0
    available_tokens: int = 0
    worker_seconds: Sequence[float] = ()
    """Lifetime of each worker that answered."""
    pm_seconds: float | None = None
    """Lifetime of the PM. None: no PM made the plan."""
    claims_granted: int = 0
    claims_empty: int = 0
    """Claims that failed because another process took the task first."""
    attempts: int = 0
    rejected: int = 0
    """Attempts that were judged and rejected."""
    red_tasks: int | None = None
    """Completed tasks with a red check on the final tree. None: the final gate did not run."""
    retrieved: int = 0
    """Memory nodes that tools returned, each counted once for an agent."""
    used: int = 0
    """Of these, the nodes that the same agent named afterwards."""
    tasks: int = 0
    unclear: int = 0
    """Tasks whose criteria are impossible or cannot be decided."""
    questions: int = 0
    """Questions of workers to the user."""
    pm_tokens_first: int | None = None
    """Size of the PM's context when the first worker started."""
    pm_tokens_last: int | None = None
    """Size of the PM's context when the last worker started."""
    held_seconds: float = 0.0
    """Time under leases, summed over tasks."""
    served_seconds: float = 0.0
    """Time of all agents in the run's processes, summed."""


NOTHING = MetricInputs()


@value_class
class Metric:
    """One metric of a run."""

    id: str
    name: str
    value: float | None
    """None: it has no inputs; `why` names the missing ones."""
    unit: Unit
    goal: str
    met: bool | None
    """None: it has no value."""
    formula: str
    inputs: Mapping[str, Number]
    """Name in the formula, with underscores → number."""
    why: str = ""


@value_class
class ContextUse:
    """Tokens that the agents of a run were given, out of all available ones."""

    given: int
    available: int
    reduction: float | None
    """1 − given ÷ available; None: no context was made."""


def metrics(measured: MetricInputs) -> tuple[Metric, ...]:
    """Return the nine metrics of a run, in their fixed order."""
    return (
        _deduplication(measured),
        _lifespan(measured),
        *_execution_metrics(measured),
        *_planning_metrics(measured),
        _idle_time(measured),
    )


def context_use(measured: MetricInputs) -> ContextUse:
    """Return the share of the available context that all agents together were given."""
    given, available = measured.given_tokens, measured.available_tokens
    reduction = round(1 - given / available, 6) if available else None
    return ContextUse(given=given, available=available, reduction=reduction)


def _ratio(
    id: str,
    name: str,
    formula: str,
    goal: Goal,
    *,
    above: float,
    below: float,
    inputs: Mapping[str, Number],
    why: str,
    is_complement: bool = False,
) -> Metric:
    """Return a metric that is a quotient; `is_complement`: one minus the quotient."""
    value = None
    if below:
        quotient = above / below
        value = round(1 - quotient if is_complement else quotient, 6)
    sign, bound = goal
    return Metric(
        id=id,
        name=name,
        value=value,
        unit="share",
        goal=f"{sign} {bound * 100:.0f} %",
        met=None if value is None else _is_reached(value, goal),
        formula=formula,
        inputs=inputs,
        why="" if below else why,
    )


def _deduplication(m: MetricInputs) -> Metric:
    return _ratio(
        "context_deduplication_rate",
        "Context deduplication rate",
        "1 − unique tokens ÷ total tokens",
        (">", 0.8),
        above=m.unique_tokens,
        below=m.piece_tokens,
        inputs={"unique_tokens": m.unique_tokens, "total_tokens": m.piece_tokens},
        why="no context was made",
        is_complement=True,
    )


def _lifespan(m: MetricInputs) -> Metric:
    seconds = m.worker_seconds
    mean = round(sum(seconds) / len(seconds), 3) if seconds else None
    met = None
    if mean is not None:
        met = mean < WORKER_SECONDS and (m.pm_seconds is None or m.pm_seconds < PM_SECONDS)
    return Metric(
        id="agent_context_lifespan",
        name="Agent context lifespan",
        value=mean,
        unit="seconds",
        goal="workers < 5 min, PM < 60 min",
        met=met,
        formula="worker seconds ÷ workers",
        inputs={
            "worker_seconds": round(sum(seconds), 3),
            "workers": len(seconds),
            "longest": round(max(seconds), 3) if seconds else None,
            "pm_seconds": m.pm_seconds,
        },
        why="" if seconds else "no worker has answered",
    )


def _execution_metrics(m: MetricInputs) -> Sequence[Metric]:
    """Return the metrics of claims, errors and memory searches."""
    tries = m.claims_granted + m.claims_empty
    red = m.red_tasks or 0
    return (
        _ratio(
            "task_allocation_efficiency",
            "Task allocation efficiency",
            "successful claims ÷ claim tries",
            (">", 0.95),
            above=m.claims_granted,
            below=tries,
            inputs={"successful_claims": m.claims_granted, "claim_tries": tries},
            why="nothing was claimed",
        ),
        _ratio(
            "cross_agent_error_propagation",
            "Cross-agent error propagation",
            "red at the final gate ÷ (red at the final gate + rejected attempts)",
            ("<", 0.05),
            above=red,
            # Without a gate, errors that spread are unknown: no value instead of 0.
            below=0 if m.red_tasks is None else red + m.rejected,
            inputs={"red_at_the_final_gate": m.red_tasks, "rejected_attempts": m.rejected},
            why="the final gate was not reached" if m.red_tasks is None else "no error was found",
        ),
        _ratio(
            "subgraph_retrieval_precision",
            "Subgraph retrieval precision",
            "nodes named afterwards ÷ nodes retrieved",
            (">", 0.9),
            above=m.used,
            below=m.retrieved,
            inputs={"nodes_named_afterwards": m.used, "nodes_retrieved": m.retrieved},
            why="no agent retrieved a node from the memory",
        ),
    )


def _planning_metrics(m: MetricInputs) -> Sequence[Metric]:
    """Return the metrics of the plan: hand-off, retries and the growth of the PM's context."""
    first, last = m.pm_tokens_first, m.pm_tokens_last
    return (
        _ratio(
            "hand_off_completeness",
            "PM → worker hand-off completeness",
            "1 − (questions + unclear tasks) ÷ tasks",
            (">", 0.9),
            above=m.questions + m.unclear,
            below=m.tasks,
            inputs={"questions": m.questions, "unclear_tasks": m.unclear, "tasks": m.tasks},
            why="no task was made in this run",
            is_complement=True,
        ),
        _ratio(
            "worker_retry_rate",
            "Worker retry rate",
            "rejected attempts ÷ attempts",
            ("<", 0.2),
            above=m.rejected,
            below=m.attempts,
            inputs={"rejected_attempts": m.rejected, "attempts": m.attempts},
            why="no attempt was made",
        ),
        _ratio(
            "pm_context_growth",
            "PM context growth",
            "(tokens at the last task − tokens at the first task) ÷ tokens at the first task",
            ("=", 0.0),
            above=(last or 0) - (first or 0),
            below=first if first and last is not None else 0,
            inputs={"tokens_at_the_first_task": first, "tokens_at_the_last_task": last},
            why="no PM made this plan, or its provider did not count tokens",
        ),
    )


def _idle_time(m: MetricInputs) -> Metric:
    held, served = round(m.held_seconds, 3), round(m.served_seconds, 3)
    return _ratio(
        "worker_idle_time",
        "Worker idle time",
        "1 − seconds at work ÷ seconds there",
        ("<", 0.05),
        # The clocks of two processes differ slightly: no agent works longer than it is there.
        above=min(held, served),
        below=served,
        inputs={"seconds_at_work": held, "seconds_there": served},
        why="no process has registered with the run",
        is_complement=True,
    )


def _is_reached(value: float, goal: Goal) -> bool:
    sign, bound = goal
    match sign:
        case ">":
            return value > bound
        case "<":
            return value < bound
        case "=":
            return value == bound
