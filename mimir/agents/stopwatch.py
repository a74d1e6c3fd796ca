"""How long an attempt has worked: time that counts against its limit."""

from mimir.domain.clock import Clock


class WorkTimer:
    """Elapsed seconds that stand still until `start`.

    A resumed conversation replays its lane first. If time counted then, it could trip at another place than the first time and cut the
    lane; so `Lane.on_live` starts the watch, and until then nothing has elapsed. What earlier holders used is added from there on.
    """

    def __init__(self, clock: Clock, *, before_seconds: float = 0.0) -> None:
        self._clock = clock
        self._before_seconds = before_seconds
        self._started: float | None = None

    def start(self) -> None:
        """Let time count from now on; a second start changes nothing."""
        if self._started is None:
            self._started = self._clock.monotonic()

    def __call__(self) -> float:
        """Return the seconds that count; 0 before `start`."""
        if self._started is None:
            return 0.0
        return self._before_seconds + self._clock.monotonic() - self._started
