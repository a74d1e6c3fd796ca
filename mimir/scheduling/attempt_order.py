"""Order of attempts: at once, or as in an earlier run that is replayed."""

from typing import Protocol


class AttemptOrder(Protocol):
    """Order in which attempts start and are merged."""

    async def before_start(self, task: str, attempt: int) -> None:
        """Wait until the attempt may load what it starts from."""
        ...

    def started(self, task: str, attempt: int) -> None:
        """Record that the attempt has loaded what it starts from."""
        ...

    async def before_merge(self, task: str, attempt: int) -> None:
        """Wait until the attempt may be merged."""
        ...

    def done(self, task: str, attempt: int) -> None:
        """Record that this process has finished with the attempt."""
        ...


class Unordered:
    """No order: every method returns at once."""

    async def before_start(self, task: str, attempt: int) -> None:
        """Do not wait."""

    def started(self, task: str, attempt: int) -> None:
        """Record nothing."""

    async def before_merge(self, task: str, attempt: int) -> None:
        """Do not wait."""

    def done(self, task: str, attempt: int) -> None:
        """Record nothing."""
