"""Time and ids as values that are handed in; only `app` makes real ones, so that a run can be replayed."""

from datetime import UTC, datetime
from typing import Protocol

_FORM = "2030-01-02T03:04:05.000006Z"
_WIDTH = len(_FORM)


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
    if len(text) != _WIDTH or text[10] != "T" or text[-1] != "Z":  # ISO has more forms than ours
        raise ValueError(f"{text!r} is no time in the form {_FORM}.")
    return datetime.fromisoformat(text)
