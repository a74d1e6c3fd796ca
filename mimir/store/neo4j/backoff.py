"""Backoff of a writer that had the store's lock, so that other processes get it next.

The server grants the lock in no order, and the latest process asks most often. So each process waits for about one round: the time in which
every writer has one turn. It learns from its own waits how much the lock is wanted.
"""

from dataclasses import dataclass

# Share of a round. With all of it, the lock would sometimes be free while all wait.
_SHARE = 0.9
# Weight of the newest turn in the average.
_WEIGHT = 0.3
# Factors of the wait after a turn with and without waiting for the lock.
_WANTED, _FREE = 1.3, 0.9
_LEAST, _MOST = 0.05, 1.1
_NOTICED_SECONDS = 0.005
_LONGEST_SECONDS = 1.0


@dataclass(slots=True, kw_only=True)
class LockTurn:
    """One turn with the lock, in seconds."""

    asked: float
    """Time until the lock was granted."""
    held: float = 0.0
    """Time with the lock; 0 while it is unknown."""
    writers: int
    """Processes that have written lately, this one included."""


class LockBackoff:
    """Backoff of one process, learned from its turns; without other writers it is 0."""

    def __init__(self) -> None:
        """Begin without experience: other writers are assumed to want the lock."""
        # Usual length of a turn.
        self._turn = 0.0
        self._others = 0
        # Share of a round to wait.
        self._wanted = 1.0
        # Time of a request while the lock is free: one round trip.
        self._fastest = float("inf")
        self._had_at = float("-inf")

    def seconds(self, now: float) -> float:
        """Return how long to wait from now on."""
        # Below a few milliseconds, a pause costs more than it gives.
        away = _SHARE * self._wanted * self._others * self._turn
        if away < _NOTICED_SECONDS:
            return 0.0
        return max(0.0, min(away, _LONGEST_SECONDS) - (now - self._had_at))

    def record_turn(self, turn: LockTurn, now: float) -> None:
        """Learn from a turn that ended at `now`."""
        # Only waits are measured: other processes report nothing about theirs.
        self._fastest = min(self._fastest, turn.asked)
        is_wanted = turn.asked - self._fastest >= _NOTICED_SECONDS
        usual = self._turn or turn.held
        # A rare pause is no rule.
        self._turn = usual + _WEIGHT * (min(turn.held, 2 * usual) - usual)
        self._others = max(0, turn.writers - 1)
        change = _WANTED if is_wanted else _FREE
        self._wanted = max(_LEAST, min(_MOST, self._wanted * change)) if self._others else 1.0
        self._had_at = now
