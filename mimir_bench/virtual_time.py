"""Time that passes only while everything waits for it: hours of scripted models in seconds, without a race against the machine.

The loop's clock stands still while the engine computes, reads, writes or runs a program, and jumps to the next timer as soon as nothing
else is under way. So what is measured on it is waiting that the engine chose: delays of models, and its own polling; not its computing.
"""

import asyncio
import selectors
from collections.abc import Callable, Coroutine
from concurrent.futures import Executor
from typing import TypeVar

from mimir.store.protocol import GraphStore, ReadOps, WriteOps

T = TypeVar("T")


class _IdleSelector(selectors.DefaultSelector):
    """Waits for real while something is under way; otherwise lets the time jump."""

    def __init__(self) -> None:
        super().__init__()
        self.now = 0.0
        self.under_way = 0
        """Things outside the loop that will wake it: threads, programs, the store's writer."""

    def select(self, timeout: float | None = None) -> list[tuple[selectors.SelectorKey, int]]:
        """Return what is ready; with nothing under way, move the clock to the next timer instead of waiting for it."""
        if timeout is None or timeout <= 0:
            return super().select(timeout)
        if self.under_way:
            return super().select(None)
        ready = super().select(0)
        if not ready:
            self.now += timeout
        return ready


class VirtualLoop(asyncio.SelectorEventLoop):
    """An event loop on such a clock. What goes on beside it must be known to it: executors, pipes and programs are, a store by `known`."""

    def __init__(self) -> None:
        self._still = _IdleSelector()
        self._watched: set[int] = set()
        super().__init__(self._still)

    def time(self) -> float:
        """Return the time that has passed, in seconds."""
        return self._still.now

    def begin(self) -> None:
        """Take note that something is under way outside the loop."""
        self._still.under_way += 1

    def end(self) -> None:
        """Take note that it has come back."""
        self._still.under_way -= 1

    def add_reader(  # type: ignore[override]
        self, fd: int, callback: Callable[..., object], *args: object
    ) -> None:
        """Watch a pipe; the clock stands still as long as anybody waits for what it says."""
        if fd not in self._watched:
            self._watched.add(fd)
            self.begin()
        super().add_reader(fd, callback, *args)

    def remove_reader(self, fd: int) -> bool:  # type: ignore[override]
        """Watch it no longer."""
        if fd in self._watched:
            self._watched.remove(fd)
            self.end()
        return super().remove_reader(fd)

    def run_in_executor(  # type: ignore[override]
        self, executor: Executor | None, func: Callable[..., T], *args: object
    ) -> "asyncio.Future[T]":
        """Run a function in a thread; the clock stands still until it has returned."""
        future = super().run_in_executor(executor, func, *args)  # pyright: ignore[reportArgumentType]
        self.begin()
        future.add_done_callback(lambda _: self.end())
        return future

    async def subprocess_exec(  # type: ignore[override]
        self,
        protocol_factory: Callable[[], asyncio.SubprocessProtocol],
        *args: object,
        **given: object,
    ) -> tuple[asyncio.SubprocessTransport, asyncio.SubprocessProtocol]:
        """Run a program; the clock stands still until it has ended and all that it said is here."""
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
    """A store whose reads and writes the loop knows of."""

    def __init__(self, inner: GraphStore, loop: VirtualLoop) -> None:
        self._inner = inner
        self._loop = loop

    @property
    def uri(self) -> str:
        """Where it is."""
        return self._inner.uri

    async def init(self) -> None:
        """Open it."""
        await self._inner.init()

    async def write(self, work: Callable[[WriteOps], T], /, *, durable: bool = True) -> T:
        """Run `work` in one transaction; the clock stands still."""
        self._loop.begin()
        try:
            return await self._inner.write(work, durable=durable)
        finally:
            self._loop.end()

    async def read(self, work: Callable[[ReadOps], T], /, *, brief: bool = False) -> T:
        """Run `work` on one view; the clock stands still."""
        self._loop.begin()
        try:
            return await self._inner.read(work, brief=brief)
        finally:
            self._loop.end()

    async def close(self) -> None:
        """Close it."""
        await self._inner.close()


def run(job: Callable[[VirtualLoop], Coroutine[object, object, T]]) -> T:
    """Run a job on a clock of its own."""
    loop = VirtualLoop()
    try:
        asyncio.set_event_loop(loop)
        return loop.run_until_complete(job(loop))
    finally:
        loop.run_until_complete(loop.shutdown_default_executor())
        asyncio.set_event_loop(None)
        loop.close()
