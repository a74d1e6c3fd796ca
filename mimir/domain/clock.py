"""Time and ids as injected values, so that a run can be replayed. Pure."""

import re
from datetime import UTC, datetime
from typing import Protocol

_FORM = re.compile(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{6}Z", re.ASCII)


class Clock(Protocol):
    """Source of time; `bootstrap` creates the real one."""

    def now(self) -> datetime:
        """Return the aware UTC time of day."""
        ...

    def monotonic(self) -> float:
        """Return seconds that never go back; for durations only."""
        ...


class IdFactory(Protocol):
    """Source of unique ids."""

    def new(self, kind: str) -> str:
        """Return an unused id, safe in file names and git refs."""
        ...


def stamp(moment: datetime) -> str:
    """Format a time as ISO-8601 UTC text of fixed width: text order is time order."""
    # The form without offset has a fixed width.
    return f"{moment.astimezone(UTC).isoformat(timespec='microseconds')[:-6]}Z"


def moment(text: str) -> datetime:
    """Parse the text that `stamp` writes; raise ValueError for any other form."""
    if not _FORM.fullmatch(text):  # ISO has more forms than ours
        raise ValueError(f"time data {text!r} does not match format {_FORM.pattern!r}")
    return datetime.fromisoformat(text)
