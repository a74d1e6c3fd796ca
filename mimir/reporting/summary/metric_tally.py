"""Sums of the tasks and attempts that the metrics of a run are computed from. Pure."""

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, field, replace

from mimir.domain.clock import moment
from mimir.domain.task_states import Cause
from mimir.reporting.summary.metrics import MetricInputs
from mimir.reporting.summary.run_data import AttemptData, TaskData

UNCLEAR = (Cause.CRITERIA_IMPOSSIBLE.value, Cause.UNVERIFIABLE.value)


@dataclass(slots=True)
class MetricTally:
    """Sums over tasks, one at a time; reused work is left out, as its own run measured it."""

    sums: Counter[str] = field(default_factory=Counter[str])
    longest: dict[str, int] = field(default_factory=dict[str, int])
    """Hash of a piece → its most tokens."""
    worker_seconds: list[float] = field(default_factory=list[float])
    held_seconds: float = 0.0
    starts: list[str] = field(default_factory=list[str])
    """Times of the first and the last start of a worker."""

    def add(self, task: TaskData) -> None:
        """Add a task with its attempts."""
        if not task.taken_from:
            self.sums["tasks"] += 1
            self.sums["unclear"] += task.cause in UNCLEAR
            self.held_seconds += task.held_seconds
        # Each attempt is marked itself.
        for attempt in task.attempts:
            if not attempt.is_reused:
                self.add_attempt(attempt)

    def add_attempt(self, attempt: AttemptData) -> None:
        """Add an attempt that this run made."""
        sums = self.sums
        sums["attempts"] += 1
        sums["rejected"] += attempt.is_rejected
        sums["given"] += attempt.given_tokens
        sums["available"] += attempt.available_tokens
        for hash, tokens in attempt.pieces:
            sums["pieces"] += tokens
            self.longest[hash] = max(tokens, self.longest.get(hash, 0))
        start, end = attempt.started_at, attempt.answered_at
        if start and end:  # pauses count
            self.worker_seconds.append((moment(end) - moment(start)).total_seconds())
        if start:
            starts = [start, *self.starts]
            self.starts = [min(starts), max(starts)]

    def inputs(
        self, counted: MetricInputs, pm_context: Sequence[tuple[str, int | None]]
    ) -> MetricInputs:
        """Add the sums to the inputs that the store counted; `pm_context` as in `RunData`."""
        sums, starts = self.sums, self.starts
        return replace(
            counted,
            piece_tokens=sums["pieces"],
            unique_tokens=sum(self.longest.values()),
            given_tokens=sums["given"],
            available_tokens=sums["available"],
            worker_seconds=self.worker_seconds,
            attempts=sums["attempts"],
            rejected=sums["rejected"],
            tasks=sums["tasks"],
            unclear=sums["unclear"],
            held_seconds=self.held_seconds,
            pm_tokens_first=_tokens_at(pm_context, starts[0]) if starts else None,
            pm_tokens_last=_tokens_at(pm_context, starts[1]) if starts else None,
        )


def _tokens_at(pm_context: Sequence[tuple[str, int | None]], time: str) -> int | None:
    """Return the size of the PM's context in its last answer before a time."""
    return next((tokens for at, tokens in reversed(pm_context) if at <= time), None)
