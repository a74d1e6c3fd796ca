"""One attempt's door to the store: what may wait is committed with the attempt's next write, in one transaction.

What waits is safe to lose: a model's answer that is lost with its process is asked for again, once, as if the process had died a moment
before it came; nothing that follows from it is done before a write that carries it. On a server every transaction waits for the lock
of all others, so there are as few as can be.
"""

import asyncio
from collections.abc import Callable
from typing import TypeVar

from mimir.store.protocol import ReadOps, Transactions, WriteOps

T = TypeVar("T")
Work = Callable[[WriteOps], object]
Later = Callable[[Work], None]


class DeferringStore:
    """Doors of a store for one attempt."""

    def __init__(self, store: Transactions) -> None:
        self._store = store
        self._waiting: list[Work] = []
        self._turn = asyncio.Lock()

    def later(self, work: Work) -> None:
        """Have something committed with the next write, before it; done twice it must be as if done once."""
        self._waiting.append(work)

    async def write(self, work: Callable[[WriteOps], T], /, *, durable: bool = True) -> T:
        """Do what waits, then `work`, in one transaction; if that fails, what waits goes on waiting. It may all be lost where `work` may."""
        async with self._turn:
            waiting = tuple(self._waiting)

            def together(ops: WriteOps) -> T:
                for one in waiting:
                    one(ops)
                return work(ops)

            value = await self._store.write(together, durable=durable)
            del self._waiting[: len(waiting)]
            return value

    async def read(self, work: Callable[[ReadOps], T], /, *, brief: bool = False) -> T:
        """Read; what waits is not there yet."""
        return await self._store.read(work, brief=brief)

    async def settle(self) -> None:
        """Commit what still waits."""
        if self._waiting:
            await self.write(_nothing)


def _nothing(_ops: WriteOps) -> None:
    """Write nothing."""
