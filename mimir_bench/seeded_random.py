"""Chance from a printed seed: the same words give the same numbers on every machine and every Python."""

import hashlib
from collections.abc import Sequence
from typing import TypeVar

T = TypeVar("T")


class SeededRandom:
    """A row of numbers that follows from its seed alone."""

    def __init__(self, *seed: object) -> None:
        """Begin a row; equal seeds begin the same one."""
        self._seed = "/".join(map(str, seed))
        self._drawn = 0

    def whole(self, low: int, high: int) -> int:
        """Draw a number, both ends included."""
        self._drawn += 1
        digest = hashlib.sha256(f"{self._seed}#{self._drawn}".encode()).digest()
        return low + int.from_bytes(digest[:8]) % (high - low + 1)

    def one_of(self, choices: Sequence[T]) -> T:
        """Draw one of these."""
        return choices[self.whole(0, len(choices) - 1)]

    def some_of(self, choices: Sequence[T], count: int) -> list[T]:
        """Draw `count` different ones, in the order drawn."""
        left = list(choices)
        return [left.pop(self.whole(0, len(left) - 1)) for _ in range(count)]

    def chance(self, percent: int) -> bool:
        """Come out true in `percent` of a hundred."""
        return self.whole(1, 100) <= percent
