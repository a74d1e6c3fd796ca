"""Start times: to the first request, and to the help text."""

import asyncio
import os
import sys
from dataclasses import dataclass
from pathlib import Path

from mimir.bootstrap.clock import SystemClock
from mimir.errors import UnavailableError
from mimir.planning.renderer import render
from mimir.workspace.tree_removal import remove_tree
from mimir_bench.engine import workload
from mimir_bench.engine.control_protocol import ServerControl
from mimir_bench.engine.workload import Workload
from mimir_bench.work_site import make_room

IMPORTS = "import langchain_openai, langgraph"
_LOAD = Workload(tasks=1, tools=False)
_SHORT_REPEATS = 5
"""Of programs that end in a tenth of a second: a short delay doubles their time."""


@dataclass(frozen=True, slots=True, kw_only=True)
class StartupTimes:
    """Least seconds of several starts: load only adds."""

    first_request: float
    """From the start of `mimir execute` to its first request at the model server."""
    imports: float
    """Of a program that only imports the modules that a LangChain agent needs."""
    help: float
    nothing: float
    """Of an interpreter without a program."""


async def measure(url: str, repeats: int) -> StartupTimes:
    """Start each program several times, in turns; short ones more often than `repeats`.

    Raises:
        UnavailableError: A program failed.
    """
    room = await asyncio.to_thread(make_room)
    try:
        plan = room / "plan.md"
        plan.write_text(render(workload.plan(_LOAD)), encoding="utf-8")
        long = [await _time_long(url, room, plan) for _ in range(repeats)]
        short = [await _time_short(room) for _ in range(max(repeats, _SHORT_REPEATS))]
    finally:
        await asyncio.to_thread(remove_tree, room)
    first, imports = map(min, zip(*long, strict=True))
    help, nothing = map(min, zip(*short, strict=True))
    return StartupTimes(first_request=first, imports=imports, help=help, nothing=nothing)


async def _time_long(url: str, room: Path, plan: Path) -> tuple[float, float]:
    """Return the seconds to the first request, and of the imports."""
    environment = _environment(room)
    control = ServerControl(url)
    await control.order(_LOAD, 0.0)
    given = {
        **environment,
        "MIMIR_LLM_BASE_URL": f"{url}/v1",
        "MIMIR_LLM_MODEL": "bench",
        "MIMIR_LLM_LANE_HEADER": "true",
    }
    began, _ = await _time_program(
        room, given, "-m", "mimir", "execute", str(plan), "--yes", "--apply", "never"
    )
    # Both processes read one monotonic clock, which counts from the start of the machine.
    first = (await control.meter())["first_seconds"] - began
    return first, (await _time_program(room, environment, "-c", IMPORTS))[1]


async def _time_short(room: Path) -> tuple[float, float]:
    """Return the seconds of the help text, and of an empty program."""
    environment = _environment(room)
    return (
        (await _time_program(room, environment, "-m", "mimir", "--help"))[1],
        (await _time_program(room, environment, "-c", "pass"))[1],
    )


async def _time_program(
    room: Path, environment: dict[str, str], *words: str
) -> tuple[float, float]:
    """Run a Python program; return its start time and its duration."""
    clock = SystemClock()
    began = clock.monotonic()
    process = await asyncio.create_subprocess_exec(
        *(sys.executable, *words),
        cwd=room,
        env=environment,
        stdin=asyncio.subprocess.DEVNULL,
        stdout=asyncio.subprocess.DEVNULL,
        stderr=asyncio.subprocess.PIPE,
        start_new_session=True,
    )
    try:
        _, said = await process.communicate()
    finally:
        if process.returncode is None:
            process.kill()
            await process.wait()
    if process.returncode:
        text = " ".join(said.decode(errors="replace").split())[:300]
        raise UnavailableError(f"A program of the benchmark failed: {' '.join(words[:3])}: {text}")
    return began, clock.monotonic() - began


def _environment(room: Path) -> dict[str, str]:
    # A minimal environment: settings and variables of the user would change the measured values.
    return {"HOME": str(room), "PATH": os.pathsep.join(os.get_exec_path()), "LANG": "C.UTF-8"}
