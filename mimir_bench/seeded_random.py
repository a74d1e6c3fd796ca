"""Random numbers from a printed seed, equal on every machine and Python version."""

import hashlib
from collections.abc import Sequence
from typing import TypeVar

T = TypeVar("T")


class SeededRandom:
    """Sequence of numbers that depends on its seed alone."""

    def __init__(self, *seed: object) -> None:
        """Start the sequence of a seed."""
        self._seed = "/".join(map(str, seed))
        self._drawn = 0

    def whole(self, low: int, high: int) -> int:
        """Return a number from `low` to `high`, both included."""
        self._drawn += 1
        # `random` promises equal sequences only for some of its methods and versions.
        digest = hashlib.sha256(f"{self._seed}#{self._drawn}".encode()).digest()
        # 64 bits: the bias of the remainder is far below one draw in a trillion.
        return low + int.from_bytes(digest[:8]) % (high - low + 1)

    def one_of(self, choices: Sequence[T]) -> T:
        """Return one of the choices."""
        return choices[self.whole(0, len(choices) - 1)]

    def some_of(self, choices: Sequence[T], count: int) -> list[T]:
        """Return `count` different choices, in random order."""
        left = list(choices)
        return [left.pop(self.whole(0, len(left) - 1)) for _ in range(count)]

    def chance(self, percent: int) -> bool:
        """Return True with a probability of `percent` in 100."""
        return self.whole(1, 100) <= percent
