"""How long a writer that had the store's lock keeps away from it, so that the others have it before it comes back. Pure.

The server lets those who wait for a lock go on in no order, and whoever came last asks most often. Of ten processes that always have
something to write, one would wait for dozens of turns of the others. Those who keep away do not keep the server busy with asking, either.
"""

_SHARE = 0.9
"""Of the usual wait. At all of it the lock would be free at times while all keep away."""
_WEIGHT = 0.3
"""Of the newest wait in the usual one."""
_FREE = 0.8
"""What counts of a time that was kept away when nobody had the lock after it: it was too long."""
_NOTICED_SECONDS = 0.005
_LONGEST_SECONDS = 1.0


class Backoff:
    """Learns from each wait of one process, in seconds; without others it is nothing."""

    def __init__(self) -> None:
        """Begin without experience."""
        self._usual = 0.0
        """From the wish to write to the lock, the time that it kept away included."""
        self._fastest = float("inf")
        """What asking takes if nobody has the lock: the way to the server and back."""
        self._had_at = float("-inf")

    def seconds(self, now: float) -> float:
        """Return how long to keep away from here on."""
        if self._usual < _NOTICED_SECONDS:
            return 0.0
        return max(0.0, min(_SHARE * self._usual, _LONGEST_SECONDS) - (now - self._had_at))

    def had(self, *, away: float, asked: float, now: float) -> None:
        """Take in a transaction that is over.

        Args:
            away: How long it kept away.
            asked: How long it asked for the lock.
            now: When it was over.
        """
        self._fastest = min(self._fastest, asked)
        others = asked - self._fastest
        needed = away if others >= _NOTICED_SECONDS else _FREE * away
        self._usual += _WEIGHT * (needed + others - self._usual)
        self._had_at = now
