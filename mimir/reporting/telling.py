"""What a run's events come to, an event at a time: most of a long run's events are calls and starts, of which only sums are kept. Pure."""

from collections.abc import Mapping
from dataclasses import replace
from decimal import Decimal

from mimir.domain.attempt import TERMINAL
from mimir.domain.clock import moment
from mimir.domain.event import Event, EventKind
from mimir.reporting.material import NOTHING_SPENT, Spent

REPORTERS = ("qc_reporter", "pm_reporter")
"""Roles whose calls are left out: their prose may be there or not, and the rest of the report stays the same."""
_ENDS = frozenset(status.value for status in TERMINAL)


class Telling:
    """Takes events in their order."""

    def __init__(self) -> None:
        """Begin with nothing."""
        self.kept: list[Event] = []
        """Events that are told of one by one."""
        self.last = ""
        """When the last event was that is told of; empty: there was none."""
        self.spent: Spent = NOTHING_SPENT
        self._started: dict[str, str] = {}
        """Task → when its first attempt began."""
        self._took: dict[str, float] = {}

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

    def seconds(self) -> Mapping[str, float]:
        """Return for each task that ended the seconds from its first attempt's start to its end."""
        return self._took

    def _charge(self, event: Event) -> None:
        """Add up a call of a model."""
        spent, tokens = self.spent, event.data.get("tokens")
        spent = replace(
            spent,
            calls=spent.calls + 1,
            tokens=spent.tokens + (tokens if isinstance(tokens, int) else 0),
        )
        if "cost" in event.data:
            cost = spent.cost + Decimal(str(event.data["cost"]))
            spent = replace(spent, priced=spent.priced + 1, cost=cost)
        self.spent = spent

    def _note(self, event: Event) -> None:
        if event.data.get("to") in _ENDS and (began := self._started.pop(event.task, "")):
            self._took[event.task] = (moment(event.at) - moment(began)).total_seconds()
        if event.kind is not EventKind.TASK_COMPLETED:
            self.kept.append(event)
