"""Event loop with virtual time: hours of scripted delays pass in seconds.

The clock stops while the engine computes, reads, writes or runs a program, and jumps to the next
timer when everything waits. It measures chosen delays only: those of models and of polling.
"""

import asyncio
import selectors
from collections.abc import Callable, Coroutine
from concurrent.futures import Executor
from typing import TypeVar

from mimir.store.protocol import GraphStore, ReadOps, WriteOps

T = TypeVar("T")


class _IdleSelector(selectors.DefaultSelector):
    """Selector that advances the clock instead of waiting when nothing is under way."""

    def __init__(self) -> None:
        super().__init__()
        self.now = 0.0
        self.under_way = 0
        """Operations outside the loop that will wake it: threads, programs, the store's writer."""

    def select(self, timeout: float | None = None) -> list[tuple[selectors.SelectorKey, int]]:
        """Return ready events; with nothing under way, advance the clock to the next timer."""
        if timeout is None or timeout <= 0:
            return super().select(timeout)
        if self.under_way:
            # Wait as long as it takes: the operation wakes the loop, and the clock stands still.
            return super().select(None)
        # Events that are ready now come before the jump to the next timer.
        ready = super().select(0)
        if not ready:
            self.now += timeout
        return ready


class VirtualLoop(asyncio.SelectorEventLoop):
    """Event loop with virtual time; it tracks executors, pipes and programs.

    `VirtualTimeStore` tracks a store.
    """

    def __init__(self) -> None:
        self._still = _IdleSelector()
        # asyncio may register a pipe again with another callback; it counts once.
        self._watched: set[int] = set()
        super().__init__(self._still)

    def time(self) -> float:
        """Return the virtual time in seconds."""
        return self._still.now

    def begin(self) -> None:
        """Count one more operation outside the loop."""
        self._still.under_way += 1

    def end(self) -> None:
        """Count one operation less."""
        self._still.under_way -= 1

    def add_reader(  # type: ignore[override]
        self, fd: int, callback: Callable[..., object], *args: object
    ) -> None:
        """Watch a pipe; the clock stops while it is watched."""
        if fd not in self._watched:
            self._watched.add(fd)
            self.begin()
        super().add_reader(fd, callback, *args)

    def remove_reader(self, fd: int) -> bool:  # type: ignore[override]
        """Stop watching a pipe."""
        if fd in self._watched:
            self._watched.remove(fd)
            self.end()
        return super().remove_reader(fd)

    def run_in_executor(  # type: ignore[override]
        self, executor: Executor | None, func: Callable[..., T], *args: object
    ) -> "asyncio.Future[T]":
        """Run a function in a thread; the clock stops until it returns."""
        future = super().run_in_executor(executor, func, *args)  # pyright: ignore[reportArgumentType]
        self.begin()
        # Also called after a cancellation, otherwise the clock would never move again.
        future.add_done_callback(lambda _: self.end())
        return future

    async def subprocess_exec(  # type: ignore[override]
        self,
        protocol_factory: Callable[[], asyncio.SubprocessProtocol],
        *args: object,
        **given: object,
    ) -> tuple[asyncio.SubprocessTransport, asyncio.SubprocessProtocol]:
        """Run a program; the clock stops until it ended and its output arrived."""
        self.begin()
        state = {"over": False, "exited": False}

        def end() -> None:
            if not state["over"]:
                state["over"] = True
                self.end()

        def made() -> asyncio.SubprocessProtocol:
            protocol = protocol_factory()
            exited, lost = protocol.process_exited, protocol.connection_lost

            def has_exited() -> None:
                state["exited"] = True
                exited()

            def has_lost(exc: Exception | None) -> None:
                if state["exited"]:  # asyncio calls it for a closed input too
                    end()
                lost(exc)

            protocol.process_exited, protocol.connection_lost = has_exited, has_lost
            return protocol

        try:
            return await super().subprocess_exec(made, *args, **given)  # pyright: ignore[reportArgumentType, reportUnknownVariableType, reportCallIssue]
        except BaseException:
            end()
            raise


class VirtualTimeStore:
    """Store whose reads and writes stop the virtual clock."""

    def __init__(self, inner: GraphStore, loop: VirtualLoop) -> None:
        self._inner = inner
        self._loop = loop

    @property
    def uri(self) -> str:
        """Address of the store."""
        return self._inner.uri

    async def init(self) -> None:
        """Open the store."""
        await self._inner.init()

    async def write(self, work: Callable[[WriteOps], T], /, *, durable: bool = True) -> T:
        """Run `work` in one transaction; the clock stops."""
        self._loop.begin()
        try:
            return await self._inner.write(work, durable=durable)
        finally:
            self._loop.end()

    async def read(self, work: Callable[[ReadOps], T], /, *, brief: bool = False) -> T:
        """Run `work` on one view; the clock stops."""
        self._loop.begin()
        try:
            return await self._inner.read(work, brief=brief)
        finally:
            self._loop.end()

    async def close(self) -> None:
        """Close the store."""
        await self._inner.close()


def run(job: Callable[[VirtualLoop], Coroutine[object, object, T]]) -> T:
    """Run a job on a new virtual loop."""
    loop = VirtualLoop()
    try:
        asyncio.set_event_loop(loop)
        return loop.run_until_complete(job(loop))
    finally:
        # Threads of the executor would keep the process alive.
        loop.run_until_complete(loop.shutdown_default_executor())
        asyncio.set_event_loop(None)
        loop.close()
