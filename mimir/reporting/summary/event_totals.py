"""Totals over the events of a run: most events are only added up, a few are listed. Pure."""

from collections.abc import Iterable
from dataclasses import dataclass, field
from decimal import Decimal

from mimir.domain.clock import moment
from mimir.domain.event import Event, EventKind
from mimir.domain.json_value import as_whole_number
from mimir.domain.task_states import TERMINAL

REPORTERS = ("qc_reporter", "pm_reporter")
"""Roles whose calls are left out: a report is the same with and without a narrative."""
_ENDS = frozenset(status.value for status in TERMINAL)


@dataclass(slots=True, kw_only=True)
class EventTotals:
    """Totals of a run's events, and the events that a report lists one by one."""

    listed: list[Event] = field(default_factory=list[Event])
    last: str = ""
    """Time of the last counted event. Empty: no event."""
    calls: int = 0
    """Model calls."""
    tokens: int = 0
    """Of these calls, as charged."""
    priced: int = 0
    """Calls with a price."""
    cost: Decimal = Decimal(0)
    """Of the calls with a price."""
    seconds: dict[str, float] = field(default_factory=dict[str, float])
    """Ended task → time from the start of its first attempt to its end."""


def total_events(events: Iterable[Event]) -> EventTotals:
    """Add up events in their order."""
    totals, started = EventTotals(), dict[str, str]()
    for event in events:
        if event.data.get("role") in REPORTERS:
            continue
        totals.last = max(totals.last, event.at)
        if event.kind is EventKind.MODEL_CALLED:
            totals.calls += 1
            totals.tokens += as_whole_number(event.data.get("tokens")) or 0
            # A call without a price has no cost, not the cost 0.
            if "cost" in event.data:
                totals.cost += Decimal(str(event.data["cost"]))
                totals.priced += 1
            continue
        if event.kind is EventKind.ATTEMPT_STARTED:
            # The first start counts: a retry belongs to the same task.
            started.setdefault(event.task, event.at)
            continue
        if event.data.get("to") in _ENDS and (began := started.pop(event.task, "")):
            totals.seconds[event.task] = (moment(event.at) - moment(began)).total_seconds()
        # Thousands of completed tasks are in the table of tasks already.
        if event.kind is not EventKind.TASK_COMPLETED:
            totals.listed.append(event)
    return totals
