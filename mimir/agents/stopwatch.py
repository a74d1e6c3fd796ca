"""Timer of an attempt's work: the time that counts against its limit."""

from mimir.domain.clock import Clock


class WorkTimer:
    """A timer that does not run until `start`.

    A resumed conversation replays its transcript first. If that time counted, it could trip at another message than the first
    time; so the first live call starts the timer.
    """

    def __init__(self, clock: Clock) -> None:
        self._clock = clock
        self._started: float | None = None

    def start(self) -> None:
        """Start the timer; a second start changes nothing."""
        if self._started is None:
            self._started = self._clock.monotonic()

    def __call__(self) -> float:
        """Return the seconds that count; 0 before `start`."""
        return 0.0 if self._started is None else self._clock.monotonic() - self._started
