"""Time and ids for tests: only the test moves the clock."""

from collections import Counter
from datetime import UTC, datetime, timedelta

START = datetime(2030, 1, 2, 3, 4, 5, tzinfo=UTC)


class FrozenClock:
    """A `Clock` that moves only by `advance`."""

    def __init__(self, start: datetime = START) -> None:
        self._now = start
        self._monotonic = 1000.0

    def now(self) -> datetime:
        """Return the frozen time of day."""
        return self._now

    def monotonic(self) -> float:
        """Return the frozen seconds; they advance together with `now`."""
        return self._monotonic

    def advance(self, seconds: float) -> None:
        """Let time pass.

        Raises:
            ValueError: `seconds` is negative; use `set_back` for a clock that is put right.
        """
        if seconds < 0:
            raise ValueError(f"Time cannot pass backwards: {seconds!r} seconds.")
        self._now += timedelta(seconds=seconds)
        self._monotonic += seconds

    def set_back(self, seconds: float) -> None:
        """Put the time of day back, as a clock that is corrected; `monotonic` never goes back."""
        self._now -= timedelta(seconds=seconds)


class CountingIds:
    """An `IdFactory` whose ids are counted per kind: `run-1`, `run-2`."""

    def __init__(self) -> None:
        self._given: Counter[str] = Counter()

    def new(self, kind: str) -> str:
        """Return the next id of this kind."""
        self._given[kind] += 1
        return f"{kind}-{self._given[kind]}"
