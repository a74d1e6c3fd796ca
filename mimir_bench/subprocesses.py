"""Parts of a benchmark in separate processes, so that memory and CPU time are separate."""

import asyncio
import contextlib
import sys
import tempfile
from collections.abc import AsyncGenerator, Awaitable, Callable, Iterator
from functools import partial
from pathlib import Path
from typing import IO

from mimir.errors import UnavailableError
from mimir.workspace.tree_removal import remove_tree
from mimir_bench.work_site import make_room

Ask = Callable[[str], Awaitable[str]]
"""Sends a line and returns the answer; errors carry the last line of standard error."""

_LONGEST = 1 << 26
"""Bytes of an answer."""


async def ask(module: str, question: str) -> str:
    """Send one question to a new process; it raises as `answering_process` does."""
    async with answering_process(module) as asked:
        return await asked(question)


@contextlib.asynccontextmanager
async def answering_process(module: str) -> AsyncGenerator[Ask]:
    """Start a process that answers questions until the block ends.

    Its working directory is temporary and removed at the end.

    Raises:
        UnavailableError: The process failed; the message is the last line of its standard error.
    """
    room = await asyncio.to_thread(make_room)
    try:
        # A file, not a pipe: errors are not read during the work, and a full pipe would block.
        with tempfile.TemporaryFile() as words:
            process = await asyncio.create_subprocess_exec(
                *(sys.executable, "-m", module),
                cwd=room,
                stdin=asyncio.subprocess.PIPE,
                stdout=asyncio.subprocess.PIPE,
                stderr=words,
                # The default of 64 KiB would cut off a long line of figures.
                limit=_LONGEST,
                start_new_session=True,  # Ctrl-C is handled by the parent, which ends it
            )
            try:
                yield partial(_answer, process, words)
                await _wait_for_end(process, words)
            finally:
                # An error in the block must not leave the process running.
                if process.returncode is None:
                    process.kill()
                    await process.wait()
    finally:
        await asyncio.to_thread(remove_tree, room)


async def _answer(process: asyncio.subprocess.Process, words: IO[bytes], question: str) -> str:
    assert process.stdin is not None
    assert process.stdout is not None
    with contextlib.suppress(ConnectionError):  # an early end is reported below
        process.stdin.write(f"{question}\n".encode())
        await process.stdin.drain()
    answer = await process.stdout.readline()
    if not answer:
        await _wait_for_end(process, words)
        raise UnavailableError("A part of the benchmark gave no answer.")
    return answer.decode()


async def _wait_for_end(process: asyncio.subprocess.Process, words: IO[bytes]) -> None:
    """Close the input, and raise if the process failed."""
    assert process.stdin is not None
    process.stdin.close()
    if await process.wait():
        words.seek(0)
        lines = words.read().decode(errors="replace").strip().splitlines() or ["no word"]
        raise UnavailableError(f"A part of the benchmark failed: {lines[-1]}")


def questions() -> Iterator[str]:
    """Yield the questions to this process; its temporary files go to its work directory."""
    # The parent removes this directory, even if this process is killed.
    tempfile.tempdir = str(Path.cwd())
    # Not `yield from sys.stdin`: it would be closed with this generator, as if the input ended.
    yield from iter(sys.stdin.readline, "")


def question() -> str:
    """Return the only question to this process."""
    return next(questions())
