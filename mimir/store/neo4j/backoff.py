"""How long a writer that had the store's lock keeps away from it, so that the others have it before it comes back. Pure.

The server lets those who wait for a lock go on in no order, and whoever came last asks most often. Of ten processes that always have
something to write, one would wait for dozens of turns of the others. Those who keep away do not keep the server busy with asking, either.

One round is what all writers need for one turn each. That is nearly the same for all of them, so all come back in the same rhythm; what
one learns from its own waits is only whether the lock is wanted that much.
"""

from dataclasses import dataclass

_SHARE = 0.9
"""Of a round. At all of it the lock would be free at times while all keep away."""
_WEIGHT = 0.3
"""Of the newest turn in the usual one."""
_WANTED, _FREE = 1.3, 0.9
"""What a turn that was waited for makes of the eagerness to keep away, and one that was not."""
_LEAST, _MOST = 0.05, 1.1
_NOTICED_SECONDS = 0.005
_LONGEST_SECONDS = 1.0


@dataclass(slots=True, kw_only=True)
class LockTurn:
    """How a process had the lock for once, in seconds."""

    asked: float
    """For how long it asked for it."""
    held: float = 0.0
    """For how long it had it; 0 as long as that is not known."""
    writers: int
    """Processes that have written lately, this one included."""


class LockBackoff:
    """Learns from each turn of one process, in seconds; without others it is nothing."""

    def __init__(self) -> None:
        """Begin without experience: where there are others, they are believed to want the lock as well."""
        self._turn = 0.0
        """What a turn takes, as a rule."""
        self._others = 0
        self._wanted = 1.0
        """How much of a round is kept away."""
        self._fastest = float("inf")
        """What asking takes if nobody has the lock: the way to the server and back."""
        self._had_at = float("-inf")

    def seconds(self, now: float) -> float:
        """Return how long to keep away from here on."""
        away = _SHARE * self._wanted * self._others * self._turn
        if away < _NOTICED_SECONDS:
            return 0.0
        return max(0.0, min(away, _LONGEST_SECONDS) - (now - self._had_at))

    def record_turn(self, turn: LockTurn, now: float) -> None:
        """Take in a turn that is over; `now`: when it was."""
        self._fastest = min(self._fastest, turn.asked)
        is_wanted = turn.asked - self._fastest >= _NOTICED_SECONDS
        usual = self._turn or turn.held
        # A rare pause is no rule.
        self._turn = usual + _WEIGHT * (min(turn.held, 2 * usual) - usual)
        self._others = max(0, turn.writers - 1)
        change = _WANTED if is_wanted else _FREE
        self._wanted = max(_LEAST, min(_MOST, self._wanted * change)) if self._others else 1.0
        self._had_at = now
