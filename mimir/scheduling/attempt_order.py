"""When an attempt may begin, and when it may come onto the line: at once, or in the order of an earlier run."""

from typing import Protocol


class AttemptOrder(Protocol):
    """Keeps attempts in an order."""

    async def before_start(self, task: str, attempt: int) -> None:
        """Wait until the line stands where this attempt is to begin."""
        ...

    def started(self, task: str, attempt: int) -> None:
        """Take in that it knows what it begins on."""
        ...

    async def before_merge(self, task: str, attempt: int) -> None:
        """Wait until it may be merged."""
        ...

    def done(self, task: str, attempt: int) -> None:
        """Take in that this process does nothing more about it: nobody need wait for it."""
        ...


class Unordered:
    """No order."""

    async def before_start(self, task: str, attempt: int) -> None:
        """Do not wait."""

    def started(self, task: str, attempt: int) -> None:
        """Take no note."""

    async def before_merge(self, task: str, attempt: int) -> None:
        """Do not wait."""

    def done(self, task: str, attempt: int) -> None:
        """Take no note."""
