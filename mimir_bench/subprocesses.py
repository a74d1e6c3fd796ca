"""Parts of a benchmark in processes of their own: what one holds in memory or in use of the processor is not another's."""

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

Ask = Callable[[str], Awaitable[str]]
"""A line in, a line out; UnavailableError: the process failed, with the last line of what it said."""

_LONGEST = 1 << 26
"""Bytes of an answer."""


async def ask(module: str, question: str) -> str:
    """Have a process of its own answer once; errors as `answering_process` has them."""
    async with answering_process(module) as asked:
        return await asked(question)


@contextlib.asynccontextmanager
async def answering_process(module: str) -> AsyncGenerator[Ask]:
    """Have a process of its own answer, as often as it is asked. It ends with the block, and what it leaves behind is cleared away.

    Raises:
        UnavailableError: It failed, at the latest when nothing more was asked; the message is the last line of what it said.
    """
    room = await asyncio.to_thread(_room)
    try:
        with tempfile.TemporaryFile() as words:
            process = await asyncio.create_subprocess_exec(
                *(sys.executable, "-m", module),
                cwd=room,
                stdin=asyncio.subprocess.PIPE,
                stdout=asyncio.subprocess.PIPE,
                stderr=words,
                limit=_LONGEST,
                start_new_session=True,  # Ctrl-C is for us: we end it
            )
            try:
                yield partial(_answer, process, words)
                await _ended(process, words)
            finally:
                if process.returncode is None:
                    process.kill()
                    await process.wait()
    finally:
        await asyncio.to_thread(remove_tree, room)


async def _answer(process: asyncio.subprocess.Process, words: IO[bytes], question: str) -> str:
    assert process.stdin is not None
    assert process.stdout is not None
    with contextlib.suppress(ConnectionError):  # it is gone: how, is said below
        process.stdin.write(f"{question}\n".encode())
        await process.stdin.drain()
    answer = await process.stdout.readline()
    if not answer:
        await _ended(process, words)
        raise UnavailableError("A part of the benchmark gave no answer.")
    return answer.decode()


async def _ended(process: asyncio.subprocess.Process, words: IO[bytes]) -> None:
    """Let it end, for nothing more is asked, and see that it did not fail."""
    assert process.stdin is not None
    process.stdin.close()
    if await process.wait():
        words.seek(0)
        lines = words.read().decode(errors="replace").strip().splitlines() or ["no word"]
        raise UnavailableError(f"A part of the benchmark failed: {lines[-1]}")


def questions() -> Iterator[str]:
    """Yield what this process is asked; from now on its temporary files are where whoever asks clears them away."""
    tempfile.tempdir = str(Path.cwd())
    # By its lines, not as it is: it would be closed with this generator, and who waits for its end would be told too early.
    yield from iter(sys.stdin.readline, "")


def question() -> str:
    """Return what this process is asked once."""
    return next(questions())


def _room() -> Path:
    return Path(tempfile.mkdtemp(prefix="mimir-bench-")).resolve()
