"""Program that runs workloads of one subject, started by its module name.

Input: orders as JSON lines. Output: the cost of each. It warms up with a few tasks.
"""

import asyncio
import importlib
import json
import resource
import sys
from collections.abc import Awaitable, Callable, Mapping
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Literal

from mimir.bootstrap import app
from mimir.domain.run import RunBudget
from mimir.settings import layers
from mimir.store.codec import decode
from mimir.store.sqlite import malloc_tuning
from mimir.workspace.tree_removal import remove_tree
from mimir_bench.engine import workload
from mimir_bench.engine.control_protocol import ServerControl
from mimir_bench.engine.peers import bare_loop
from mimir_bench.engine.workload import Workload
from mimir_bench.subprocesses import questions
from mimir_bench.work_site import create_project, drive_run, make_room, write

SubjectName = Literal["mimir", "httpx2", "openai", "langgraph"]
# Imports, caches and compiled statements are paid once a process, not once a task.
WARM = Workload(tasks=4)


@dataclass(frozen=True, slots=True, kw_only=True)
class SubjectOrder:
    """Workload of a subject; the orders of one process differ in load and latency."""

    subject: SubjectName
    load: Workload
    url: str
    """Of the model server, without `/v1`."""
    latency_seconds: float = 0.0
    slots: int = 10


@dataclass(frozen=True, slots=True, kw_only=True)
class SubjectCost:
    """Cost of a workload."""

    cpu_seconds: float
    """Of the process itself."""
    child_seconds: float
    """Of its programs: git, sandbox, checks."""
    wall_seconds: float
    peak_bytes: int
    """Largest resident memory."""
    stored_bytes: int = 0
    """Growth of the store."""
    meter: Mapping[str, float]
    """Traffic at the model server."""


Do = Callable[[Workload], Awaitable[int]]
"""Runs a workload; returns the size of the store."""


async def _mimir(order: SubjectOrder, room: Path) -> Do:
    # As in a process of mimir itself, which opens its store before it starts a thread.
    malloc_tuning.use_single_arena()
    project = room / "project"
    await create_project(project, workload.project())
    flags = {"llm.base_url": f"{order.url}/v1", "llm.model": "bench", "llm.lane_header": True}
    loaded = layers.load(project, flags, {"HOME": str(room)})

    async def do(load: Workload) -> int:
        async with app.open(project, loaded) as mimir:
            run = await mimir.create_run(workload.plan(load), "", only=(), limits=RunBudget())
            await drive_run(mimir, run, order.slots)
        # After closing: a closed store has merged its journal into this file.
        return (project / app.ROOM / "mimir.db").stat().st_size

    return do


async def _bare(order: SubjectOrder, room: Path) -> Do:
    write(room, workload.project())
    opened = bare_loop.over_httpx2 if order.subject == "httpx2" else bare_loop.over_sdk

    async def do(load: Workload) -> int:
        async with opened(f"{order.url}/v1") as post:
            await bare_loop.work(post, load, room, order.slots)
        return 0

    return do


async def _langgraph(order: SubjectOrder, room: Path) -> Do:
    write(room, workload.project())
    # Imported late, because its libraries would count as memory of every other subject.
    peer = importlib.import_module("mimir_bench.engine.peers.langgraph_agent")

    async def do(load: Workload) -> int:
        await peer.work(f"{order.url}/v1", load, room, order.slots)
        return 0

    return do


_MAKERS = {"mimir": _mimir, "httpx2": _bare, "openai": _bare, "langgraph": _langgraph}


class _MeasuredEngine:
    """A subject that is ready to be measured."""

    def __init__(self, do: Do, control: ServerControl) -> None:
        self._do = do
        self._control = control
        self._stored = 0

    @classmethod
    async def warm(cls, order: SubjectOrder, room: Path) -> "_MeasuredEngine":
        """Create a subject and warm it up."""
        subject = cls(await _MAKERS[order.subject](order, room), ServerControl(order.url))
        await subject.measure(WARM, 0.0)
        return subject

    async def measure(self, load: Workload, latency_seconds: float) -> SubjectCost:
        """Run a workload and return its cost."""
        clock, before = app.SystemClock(), self._stored
        await self._control.order(load, latency_seconds)
        # After the order: the request to the model server is not part of the work.
        own, children, started = _cpu(False), _cpu(True), clock.monotonic()
        self._stored = await self._do(load)
        return SubjectCost(
            cpu_seconds=_cpu(False) - own,
            child_seconds=_cpu(True) - children,
            wall_seconds=clock.monotonic() - started,
            peak_bytes=_peak(),
            stored_bytes=self._stored - before,
            meter=await self._control.meter(),
        )


def _cpu(children: bool) -> float:
    used = resource.getrusage(resource.RUSAGE_CHILDREN if children else resource.RUSAGE_SELF)
    return used.ru_utime + used.ru_stime


def _peak() -> int:
    """Return the peak memory of this program alone."""
    # The value of getrusage starts with that of the parent process.
    for row in Path("/proc/self/status").read_text(encoding="ascii").splitlines():
        if row.startswith("VmHWM:"):
            return int(row.split()[1]) * 1024
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024


def read_order(text: str) -> SubjectOrder:
    """Parse an order."""
    return decode(SubjectOrder, json.loads(text))


def main() -> None:
    """Run the workloads of the input, and write their costs."""
    room = make_room()
    try:
        with asyncio.Runner() as runner:
            subject: _MeasuredEngine | None = None
            for order in map(read_order, questions()):
                # All orders of a process name one subject, which is warmed up by the first one.
                subject = subject or runner.run(_MeasuredEngine.warm(order, room))
                took = runner.run(subject.measure(order.load, order.latency_seconds))
                sys.stdout.write(f"{json.dumps(asdict(took))}\n")
                # The parent waits for this line before it sends the next order.
                sys.stdout.flush()
    finally:
        remove_tree(room)


if __name__ == "__main__":
    main()
