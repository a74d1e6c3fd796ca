"""A store whose writes wait until what they may name can be had elsewhere: the commits that this process has made for other hosts."""

from collections.abc import Awaitable, Callable
from typing import TypeVar

from mimir.store.protocol import GraphStore, ReadOps, WriteOps

T = TypeVar("T")


class PublishingStore:
    """A `GraphStore` around another one."""

    def __init__(self, store: GraphStore, share: Callable[[], Awaitable[None]]) -> None:
        """Wrap a store.

        Args:
            store: The other one.
            share: Publishes what was made so far; awaited before each write, and quick if there is nothing.
        """
        self._store = store
        self._share = share

    @property
    def uri(self) -> str:
        """Where it is."""
        return self._store.uri

    async def init(self) -> None:
        """Make or check the schema."""
        await self._store.init()

    async def write(self, work: Callable[[WriteOps], T], /, *, durable: bool = True) -> T:
        """Publish, then write.

        Raises:
            WorkspaceError: It cannot be published; nothing was written.
        """
        await self._share()
        return await self._store.write(work, durable=durable)

    async def read(self, work: Callable[[ReadOps], T], /, *, brief: bool = False) -> T:
        """Read."""
        return await self._store.read(work, brief=brief)

    async def close(self) -> None:
        """Let go."""
        await self._store.close()
