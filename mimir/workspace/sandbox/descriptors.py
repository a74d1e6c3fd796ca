"""File descriptors between the engine and one command, each closed exactly once."""

import asyncio
import contextlib
import os
import tempfile
from collections.abc import Callable, Generator

_PIECE = 1 << 16


class DescriptorSet:
    """Pipes to and from one process tree, and contents that it reads."""

    def __init__(self) -> None:
        self._open: set[int] = set()
        self._theirs: list[int] = []
        self.said, self.say = self._pipe()
        """Standard output, and error if it has no own pipe."""
        self.errors: int | None = None
        """Standard error with an own pipe."""
        self.status, self.set_status = self._pipe()
        """From `launcher`."""
        self.info, self.set_info = self._pipe()
        """From bubblewrap: the first process inside."""
        self.wait, self._go = self._pipe()
        """To bubblewrap: closed, it continues."""
        self._theirs += [self.say, self.set_status, self.set_info, self.wait]
        self._first: int | None = None

    @property
    def theirs(self) -> tuple[int, ...]:
        """Descriptors that the started process inherits."""
        return tuple(self._theirs)

    def open_errors(self) -> int:
        """Return a pipe for standard error, which `errors` reads."""
        self.errors, written = self._pipe()
        self._theirs.append(written)
        return written

    def content(self, data: bytes) -> int:
        """Return a descriptor from which the started process reads `data`."""
        number = _in_memory()
        self._open.add(number)
        self._theirs.append(number)
        view = memoryview(data)
        while view:
            view = view[os.write(number, view) :]
        os.lseek(number, 0, os.SEEK_SET)
        return number

    def close_theirs(self) -> None:
        """Close the descriptors that only the started process needs; then its pipes can end."""
        for number in self._theirs:
            self._close(number)

    def let_go(self) -> None:
        """Let bubblewrap continue."""
        self._close(self._go)

    def hold_first(self, process: int) -> None:
        """Open the first process inside, so that a reused number cannot be confused with it."""
        if hasattr(os, "pidfd_open"):
            with contextlib.suppress(OSError):
                self._first = os.pidfd_open(process)
                self._open.add(self._first)

    async def until_first_ended(self, seconds: float) -> None:
        """Wait at most `seconds` for the first process inside, and with it all others, to end."""
        if self._first is None:
            return
        gone = asyncio.get_running_loop().create_future()
        with self._reading(self._first, lambda: gone.done() or gone.set_result(None)):
            await asyncio.wait({gone}, timeout=seconds)

    async def read(self, number: int, take: Callable[[bytes], object]) -> None:
        """Read a pipe to its end, or until `take` returns True."""
        over = asyncio.get_running_loop().create_future()

        def more() -> None:
            try:
                piece = os.read(number, _PIECE)
            except BlockingIOError:
                return
            if (not piece or take(piece) is True) and not over.done():
                over.set_result(None)

        os.set_blocking(number, False)
        with self._reading(number, more):
            await over

    def status_now(self) -> bytes:
        """Return the status of the launcher so far."""
        os.set_blocking(self.status, False)
        try:
            return os.read(self.status, 100)
        except BlockingIOError:
            return b""

    def close(self) -> None:
        """Close all open descriptors."""
        for number in tuple(self._open):
            self._close(number)

    @contextlib.contextmanager
    def _reading(self, number: int, more: Callable[[], object]) -> Generator[None]:
        loop = asyncio.get_running_loop()
        loop.add_reader(number, more)
        try:
            yield
        finally:
            loop.remove_reader(number)

    def _pipe(self) -> tuple[int, int]:
        read_end, write_end = os.pipe()
        self._open |= {read_end, write_end}
        return read_end, write_end

    def _close(self, number: int) -> None:
        # A closed number may belong to another run already.
        if number in self._open:
            self._open.remove(number)
            os.close(number)


def _in_memory() -> int:
    if hasattr(os, "memfd_create"):
        return os.memfd_create("mimir")
    with tempfile.TemporaryFile() as file:
        return os.dup(file.fileno())
