"""What a run's events come to, an event at a time: most of a long run's events are calls and starts, of which only sums are kept. Pure."""

from decimal import Decimal

from mimir.domain.clock import moment
from mimir.domain.event import Event, EventKind
from mimir.domain.task_states import TERMINAL
from mimir.reporting.summary.run_data import ModelSpending

REPORTERS = ("qc_reporter", "pm_reporter")
"""Roles whose calls are left out: their prose may be there or not, and the rest of the report stays the same."""
_ENDS = frozenset(status.value for status in TERMINAL)


class EventTotals:
    """Takes events in their order."""

    def __init__(self) -> None:
        """Begin with nothing."""
        self.kept: list[Event] = []
        """Events that are told of one by one."""
        self.last = ""
        """When the last event was that is told of; empty: there was none."""
        self._calls = self._tokens = self._priced = 0
        self._cost = Decimal(0)
        self.seconds: dict[str, float] = {}
        """Task that ended → from its first attempt's start to its end."""
        self._started: dict[str, str] = {}
        """Task that has not ended → when its first attempt began."""

    @property
    def spent(self) -> ModelSpending:
        """What the calls of models came to."""
        return ModelSpending(
            calls=self._calls, tokens=self._tokens, cost=self._cost, priced=self._priced
        )

    def take(self, event: Event) -> None:
        """Take in an event."""
        if event.data.get("role") in REPORTERS:
            return
        self.last = max(self.last, event.at)
        if event.kind is EventKind.MODEL_CALLED:
            self._charge(event)
        elif event.kind is EventKind.ATTEMPT_STARTED:
            self._started.setdefault(event.task, event.at)
        else:
            self._note(event)

    def _charge(self, event: Event) -> None:
        """Add up a call of a model."""
        tokens = event.data.get("tokens")
        self._calls += 1
        self._tokens += tokens if isinstance(tokens, int) else 0
        if "cost" in event.data:
            self._cost += Decimal(str(event.data["cost"]))
            self._priced += 1

    def _note(self, event: Event) -> None:
        if event.data.get("to") in _ENDS and (began := self._started.pop(event.task, "")):
            self.seconds[event.task] = (moment(event.at) - moment(began)).total_seconds()
        if event.kind is not EventKind.TASK_COMPLETED:
            self.kept.append(event)
