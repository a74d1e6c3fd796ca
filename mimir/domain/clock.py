"""Time and ids as values that are handed in; only `app` makes real ones, so that a run can be replayed."""

from datetime import UTC, datetime
from typing import Protocol


class Clock(Protocol):
    """What time it is."""

    def now(self) -> datetime:
        """Return the time of day, aware, UTC."""
        ...

    def monotonic(self) -> float:
        """Return seconds that never go back; for durations only."""
        ...


class IdFactory(Protocol):
    """Names for things that are new."""

    def new(self, kind: str) -> str:
        """Return an id that was never given before, safe in file names and git refs."""
        ...


def stamp(moment: datetime) -> str:
    """Write a time as ISO-8601 UTC text of fixed width, so that text order is time order."""
    return moment.astimezone(UTC).strftime("%Y-%m-%dT%H:%M:%S.%fZ")


def moment(text: str) -> datetime:
    """Read what `stamp` wrote.

    Raises:
        ValueError: `text` is not of that form.
    """
    return datetime.strptime(text, "%Y-%m-%dT%H:%M:%S.%fZ").replace(tzinfo=UTC)
