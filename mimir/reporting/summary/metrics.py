"""The nine metrics of a run: each with its formula, what went into it, its goal, and whether that is reached. Pure.

What has no inputs has no value: it says why, and no number is made up. `docs/metrics.md` has a query for each, for both stores.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Literal

Unit = Literal["share", "seconds"]
Number = int | float | None
Goal = tuple[Literal[">", "<", "="], float]

WORKER_SECONDS = 300
PM_SECONDS = 3600


@dataclass(frozen=True, slots=True, kw_only=True)
class MetricInputs:
    """What was counted in a run."""

    piece_tokens: int = 0
    """Of each piece that was given to an agent, or withheld from one as a duplicate."""
    unique_tokens: int = 0
    """Of each different one of these pieces once, at its longest."""
    given_tokens: int = 0
    available_tokens: int = 0
    worker_seconds: Sequence[float] = ()
    """Lifetime of each worker that answered."""
    pm_seconds: float | None = None
    """Lifetime of the PM; None: the plan was not made by one."""
    claims_granted: int = 0
    claims_empty: int = 0
    """Claims that found what they went for taken by others."""
    attempts: int = 0
    rejected: int = 0
    """Attempts that were judged and not accepted."""
    red_tasks: int | None = None
    """Completed tasks with a red check on the final tree; None: the final gate was not passed through."""
    retrieved: int = 0
    """Nodes that memory tools gave to an agent, each once an agent."""
    used: int = 0
    """Those of them that the agent named afterwards, to read or to quote them."""
    tasks: int = 0
    unclear: int = 0
    """Tasks whose criteria could not be met or not be decided."""
    questions: int = 0
    """Asked by workers of whoever planned."""
    pm_tokens_first: int | None = None
    """In the PM's context when the first worker began."""
    pm_tokens_last: int | None = None
    """The same when the last worker began."""
    held_seconds: float = 0.0
    """For how long tasks were worked on, summed."""
    served_seconds: float = 0.0
    """For how long agents were there for it, summed."""


NOTHING = MetricInputs()


@dataclass(frozen=True, slots=True, kw_only=True)
class Metric:
    """One figure of a run."""

    id: str
    name: str
    value: float | None
    """None: there is nothing to compute it from; `why` says what is missing."""
    unit: Unit
    goal: str
    met: bool | None
    """None: it has no value."""
    formula: str
    inputs: Mapping[str, Number]
    """Names as in the formula, with lines for blanks → what was counted."""
    why: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class ContextUse:
    """How much of what there was the agents of a run were given, in tokens by the engine's estimate."""

    given: int
    available: int
    reduction: float | None
    """1 − given ÷ available; None: no context was made."""


@dataclass(frozen=True, slots=True, kw_only=True)
class _RatioMetric:
    """A metric that is one minus, or just, a quotient."""

    id: str
    name: str
    formula: str
    goal: Goal
    above: float
    below: float
    inputs: Mapping[str, Number]
    why: str
    complement: bool = field(default=False)
    """True: 1 − above ÷ below."""

    def metric(self) -> Metric:
        value = None
        if self.below:
            quotient = self.above / self.below
            value = round(1 - quotient if self.complement else quotient, 6)
        sign, bound = self.goal
        return Metric(
            id=self.id,
            name=self.name,
            value=value,
            unit="share",
            goal=f"{sign} {bound * 100:.0f} %",
            met=None if value is None else _met(value, self.goal),
            formula=self.formula,
            inputs=self.inputs,
            why="" if self.below else self.why,
        )


def metrics(measured: MetricInputs) -> tuple[Metric, ...]:
    """Return the nine metrics of a run, in their fixed order."""
    return (
        _deduplication(measured),
        _lifespan(measured),
        _allocation(measured),
        _propagation(measured),
        _precision(measured),
        _hand_off(measured),
        _retries(measured),
        _growth(measured),
        _idle(measured),
    )


def context_use(measured: MetricInputs) -> ContextUse:
    """Return what all agents together were given of what there was."""
    given, available = measured.given_tokens, measured.available_tokens
    reduction = round(1 - given / available, 6) if available else None
    return ContextUse(given=given, available=available, reduction=reduction)


def _deduplication(m: MetricInputs) -> Metric:
    unique, total = m.unique_tokens, m.piece_tokens
    return _RatioMetric(
        id="context_deduplication_rate",
        name="Context deduplication rate",
        formula="1 − unique tokens ÷ total tokens",
        goal=(">", 0.8),
        above=unique,
        below=total,
        inputs={"unique_tokens": unique, "total_tokens": total},
        why="no context was made",
        complement=True,
    ).metric()


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


def _allocation(m: MetricInputs) -> Metric:
    tries = m.claims_granted + m.claims_empty
    return _RatioMetric(
        id="task_allocation_efficiency",
        name="Task allocation efficiency",
        formula="successful claims ÷ claim tries",
        goal=(">", 0.95),
        above=m.claims_granted,
        below=tries,
        inputs={"successful_claims": m.claims_granted, "claim_tries": tries},
        why="nothing was claimed",
    ).metric()


def _propagation(m: MetricInputs) -> Metric:
    red = m.red_tasks or 0
    errors = red + m.rejected if m.red_tasks is not None else 0
    passed = m.red_tasks is not None
    return _RatioMetric(
        id="cross_agent_error_propagation",
        name="Cross-agent error propagation",
        formula="red at the final gate ÷ (red at the final gate + rejected attempts)",
        goal=("<", 0.05),
        above=red,
        below=errors,
        inputs={"red_at_the_final_gate": m.red_tasks, "rejected_attempts": m.rejected},
        why="no error was found" if passed else "the final gate was not reached",
    ).metric()


def _precision(m: MetricInputs) -> Metric:
    return _RatioMetric(
        id="subgraph_retrieval_precision",
        name="Subgraph retrieval precision",
        formula="nodes named afterwards ÷ nodes retrieved",
        goal=(">", 0.9),
        above=m.used,
        below=m.retrieved,
        inputs={"nodes_named_afterwards": m.used, "nodes_retrieved": m.retrieved},
        why="no agent retrieved a node from the memory",
    ).metric()


def _hand_off(m: MetricInputs) -> Metric:
    return _RatioMetric(
        id="hand_off_completeness",
        name="PM → worker hand-off completeness",
        formula="1 − (questions + unclear tasks) ÷ tasks",
        goal=(">", 0.9),
        above=m.questions + m.unclear,
        below=m.tasks,
        inputs={"questions": m.questions, "unclear_tasks": m.unclear, "tasks": m.tasks},
        why="no task was made in this run",
        complement=True,
    ).metric()


def _retries(m: MetricInputs) -> Metric:
    return _RatioMetric(
        id="worker_retry_rate",
        name="Worker retry rate",
        formula="rejected attempts ÷ attempts",
        goal=("<", 0.2),
        above=m.rejected,
        below=m.attempts,
        inputs={"rejected_attempts": m.rejected, "attempts": m.attempts},
        why="no attempt was made",
    ).metric()


def _growth(m: MetricInputs) -> Metric:
    first, last = m.pm_tokens_first, m.pm_tokens_last
    return _RatioMetric(
        id="pm_context_growth",
        name="PM context growth",
        formula="(tokens at the last task − tokens at the first task) ÷ tokens at the first task",
        goal=("=", 0.0),
        above=(last or 0) - (first or 0),
        below=first if first and last is not None else 0,
        inputs={"tokens_at_the_first_task": first, "tokens_at_the_last_task": last},
        why="no PM made this plan, or its provider did not count tokens",
    ).metric()


def _idle(m: MetricInputs) -> Metric:
    held, served = round(m.held_seconds, 3), round(m.served_seconds, 3)
    return _RatioMetric(
        id="worker_idle_time",
        name="Worker idle time",
        formula="1 − seconds at work ÷ seconds there",
        goal=("<", 0.05),
        # Times of two clocks may differ by a hair: nobody works longer than it is there.
        above=min(held, served),
        below=served,
        inputs={"seconds_at_work": held, "seconds_there": served},
        why="no process has registered with the run",
        complement=True,
    ).metric()


def _met(value: float, goal: Goal) -> bool:
    sign, bound = goal
    match sign:
        case ">":
            return value > bound
        case "<":
            return value < bound
        case "=":
            return value == bound
