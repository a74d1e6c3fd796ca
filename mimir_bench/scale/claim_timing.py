"""Store wrapper that times claims, including locks, disk and server."""

from collections.abc import Callable
from typing import TypeVar

from mimir.domain.clock import Clock
from mimir.store.operations import claims
from mimir.store.protocol import GraphStore, ReadOps, WriteOps

T = TypeVar("T")


class ClaimTimingStore:
    """Store that measures the duration of each claim."""

    def __init__(self, inner: GraphStore, clock: Clock, seconds: list[float]) -> None:
        """Wrap a store; `seconds` receives the duration of each claim."""
        self._inner = inner
        self._clock = clock
        self._seconds = seconds

    @property
    def uri(self) -> str:
        """Address of the store."""
        return self._inner.uri

    async def init(self) -> None:
        """Open the store."""
        await self._inner.init()

    async def write(self, work: Callable[[WriteOps], T], /, *, durable: bool = True) -> T:
        """Run `work` in one transaction; time it if it is a claim."""
        # The operation is a partial of this function; the store has no names of operations.
        if getattr(work, "func", None) is not claims.claim:
            return await self._inner.write(work, durable=durable)
        began = self._clock.monotonic()
        done = await self._inner.write(work, durable=durable)
        self._seconds.append(self._clock.monotonic() - began)
        return done

    async def read(self, work: Callable[[ReadOps], T], /, *, brief: bool = False) -> T:
        """Run `work` on one view."""
        return await self._inner.read(work, brief=brief)

    async def close(self) -> None:
        """Close the store."""
        await self._inner.close()
