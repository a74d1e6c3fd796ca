"""Publishing store: before each write, it publishes the commits that the write may name."""

from collections.abc import Awaitable, Callable
from typing import TypeVar

from mimir.store.protocol import GraphStore, ReadOps, WriteOps

T = TypeVar("T")


class PublishingStore:
    """Store around another one."""

    def __init__(self, store: GraphStore, share: Callable[[], Awaitable[None]]) -> None:
        """Wrap a store; `share` publishes the commits made so far, and is fast if there are none."""
        self._store = store
        self._share = share

    @property
    def uri(self) -> str:
        """URI of the store."""
        return self._store.uri

    async def init(self) -> None:
        """Create or check the schema."""
        await self._store.init()

    async def write(self, work: Callable[[WriteOps], T], /, *, durable: bool = True) -> T:
        """Publish, then write.

        Raises:
            WorkspaceError: The commits cannot be published; nothing was written.
        """
        # Another host may read the row at once, so the commits that it names must be reachable
        # first.
        await self._share()
        return await self._store.write(work, durable=durable)

    async def read(self, work: Callable[[ReadOps], T], /, *, brief: bool = False) -> T:
        """Read."""
        return await self._store.read(work, brief=brief)

    async def close(self) -> None:
        """Close the store."""
        await self._store.close()
