"""Time and ids as values that are handed in; only `app` makes real ones, so that a run can be replayed."""

import re
from datetime import UTC, datetime
from typing import Protocol

_FORM = re.compile(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{6}Z", re.ASCII)


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
    return f"{moment.astimezone(UTC).isoformat(timespec='microseconds')[:-6]}Z"


def moment(text: str) -> datetime:
    """Read what `stamp` wrote.

    Raises:
        ValueError: `text` is not of that form.
    """
    if not _FORM.fullmatch(text):  # ISO has more forms than ours
        raise ValueError(f"time data {text!r} does not match format {_FORM.pattern!r}")
    return datetime.fromisoformat(text)
