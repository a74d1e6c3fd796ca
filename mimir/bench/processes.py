"""Parts of a benchmark in processes of their own: what one holds in memory or in use of the processor is not another's."""

import asyncio
import sys

from mimir.errors import UnavailableError


async def ask(module: str, question: str) -> str:
    """Have a process of its own answer: a line in, a text out.

    Raises:
        UnavailableError: It failed; the message is the last line of what it said.
    """
    process = await asyncio.create_subprocess_exec(
        *(sys.executable, "-m", module),
        stdin=asyncio.subprocess.PIPE,
        stdout=asyncio.subprocess.PIPE,
        stderr=asyncio.subprocess.PIPE,
        start_new_session=True,
    )
    try:
        out, said = await process.communicate(f"{question}\n".encode())
    finally:
        if process.returncode is None:
            process.kill()
            await process.wait()
    if process.returncode:
        lines = said.decode(errors="replace").strip().splitlines() or ["no word"]
        raise UnavailableError(f"A part of the benchmark failed: {lines[-1]}")
    return out.decode()
