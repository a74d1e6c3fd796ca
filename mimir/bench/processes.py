"""Parts of a benchmark in processes of their own: what one holds in memory or in use of the processor is not another's."""

import asyncio
import sys
import tempfile
from pathlib import Path

from mimir.errors import UnavailableError
from mimir.workspace.clearing import remove


async def ask(module: str, question: str) -> str:
    """Have a process of its own answer: a line in, a text out. What it leaves behind is cleared away, however it ends.

    Raises:
        UnavailableError: It failed; the message is the last line of what it said.
    """
    room = await asyncio.to_thread(_room)
    try:
        code, out, said = await _asked(module, question, room)
    finally:
        await asyncio.to_thread(remove, room)
    if code:
        lines = said.decode(errors="replace").strip().splitlines() or ["no word"]
        raise UnavailableError(f"A part of the benchmark failed: {lines[-1]}")
    return out.decode()


async def _asked(module: str, question: str, room: Path) -> tuple[int, bytes, bytes]:
    """Return a process's exit code, answer and words; it ends with the one who asked."""
    process = await asyncio.create_subprocess_exec(
        *(sys.executable, "-m", module),
        cwd=room,
        stdin=asyncio.subprocess.PIPE,
        stdout=asyncio.subprocess.PIPE,
        stderr=asyncio.subprocess.PIPE,
        start_new_session=True,  # Ctrl-C is for us: we end it
    )
    try:
        out, said = await process.communicate(f"{question}\n".encode())
    finally:
        if process.returncode is None:
            process.kill()
            await process.wait()
    return process.returncode or 0, out, said


def question() -> str:
    """Return what this process was asked; from now on its temporary files are where whoever asked clears them away."""
    tempfile.tempdir = str(Path.cwd())
    return sys.stdin.readline()


def _room() -> Path:
    return Path(tempfile.mkdtemp(prefix="mimir-bench-")).resolve()
