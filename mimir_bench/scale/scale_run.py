"""Program that serves a run with several processes: `mimir_bench.scale.scale_run`.

Input: one order as JSON. Output: figures. The first process coordinates; the others are this
program too, with an order that names the project. They open it before the run exists, and then get
its id.
"""

import asyncio
import contextlib
import json
import sys
from collections.abc import AsyncGenerator, Sequence
from dataclasses import asdict, dataclass
from fractions import Fraction
from pathlib import Path

from mimir.bootstrap import app
from mimir.bootstrap.clock import SystemClock
from mimir.domain.json_value import as_number, as_object, as_objects, as_whole_number
from mimir.domain.plan import Criterion, Plan, Task
from mimir.domain.run import RunBudget
from mimir.errors import UnavailableError
from mimir.orchestrator.api import Mimir
from mimir.settings import layers
from mimir_bench.scale.claim_timing import ClaimTimingStore
from mimir_bench.subprocesses import question
from mimir_bench.work_site import Part, WorkSite, drive_run, site

Helper = asyncio.subprocess.Process
WORKER_SECONDS, JUDGE_SECONDS = 0.4, 0.2
"""Until the models of a task have answered; short, so that there is much to claim."""
READY = b"ready\n"


@dataclass(frozen=True, slots=True, kw_only=True)
class ScaleOrder:
    """Number of tasks, processes and workers."""

    tasks: int
    processes: int
    workers: int
    """In each process."""
    store: str = ""
    """URI; empty: the embedded store."""
    project: str = ""
    """Directory, for a process that helps; empty: this process coordinates."""
    play: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class ScaleResult:
    """Figures of one run."""

    completed: int
    claims_milliseconds: tuple[float, ...]
    tries: int
    granted: int
    idle: float
    """Share of the workers' time without a task."""
    seconds: float


async def lead(order: ScaleOrder) -> ScaleResult:
    """Coordinate a run that other processes help with."""
    clock, took = SystemClock(), list[float]()
    async with site({"README.md": "# A project\n"}) as where, _helpers(order, where) as helpers:
        loaded = where.load_settings(_parts(), _flags(order))
        async with app.open(
            where.project, loaded, around_store=lambda store: ClaimTimingStore(store, clock, took)
        ) as mimir:
            for helper in helpers:
                await _line(helper)
            run = await mimir.create_run(_plan(order.tasks), "", only=(), limits=RunBudget())
            # After all processes are ready: their start is not part of the figures.
            began = clock.monotonic()
            for helper in helpers:
                _send(helper, run)
            await drive_run(mimir, run, order.workers)
            seconds = clock.monotonic() - began
            for helper in helpers:
                took += json.loads(await _line(helper))
            return await _collect_result(mimir, run, took, seconds)


async def aid(order: ScaleOrder) -> list[float]:
    """Help with the run named in the second input line; return the duration of each claim."""
    clock, took = app.SystemClock(), list[float]()
    project = Path(order.project)
    given = {"llm.model": f"play:{order.play}", **_flags(order)}
    loaded = layers.load(project, given, {"HOME": str(project.parent)})
    async with app.open(
        project, loaded, around_store=lambda store: ClaimTimingStore(store, clock, took)
    ) as mimir:
        # Only now is the store open: the first process waits for it before it creates the run.
        sys.stdout.buffer.write(READY)
        sys.stdout.flush()
        # In a thread, because reading would block the event loop.
        run = (await asyncio.to_thread(sys.stdin.readline)).strip()
        await mimir.help(run, workers=order.workers)
    return took


async def _collect_result(
    mimir: Mimir, run: str, took: Sequence[float], seconds: float
) -> ScaleResult:
    report = await mimir.report_json(run)
    metrics = {str(m["id"]): m for m in as_objects(report["metrics"])}
    inputs = as_object(metrics["task_allocation_efficiency"]["inputs"])
    tasks = (await mimir.material(run)).tasks
    return ScaleResult(
        completed=sum(task.status.value == "completed" for task in tasks),
        claims_milliseconds=tuple(round(one * 1000, 2) for one in took),
        tries=as_whole_number(inputs["claim_tries"]) or 0,
        granted=as_whole_number(inputs["successful_claims"]) or 0,
        idle=as_number(metrics["worker_idle_time"]["value"]) or 0.0,
        seconds=seconds,
    )


def _flags(order: ScaleOrder) -> dict[str, object]:
    return {"store": order.store} if order.store else {}


@contextlib.asynccontextmanager
async def _helpers(order: ScaleOrder, where: WorkSite) -> AsyncGenerator[list[Helper]]:
    """Start the other processes; they end with this one."""
    helpers: list[Helper] = []
    play = where.room / "play.json"
    where.load_settings(_parts())  # writes the play, which they read
    text = json.dumps(asdict(order) | {"project": str(where.project), "play": str(play)})
    try:
        for _ in range(order.processes - 1):
            helper = await asyncio.create_subprocess_exec(
                *(sys.executable, "-m", "mimir_bench.scale.scale_run"),
                stdin=asyncio.subprocess.PIPE,
                stdout=asyncio.subprocess.PIPE,
            )
            helpers.append(helper)
            _send(helper, text)
        yield helpers
    finally:
        for helper in helpers:
            with contextlib.suppress(ProcessLookupError):
                helper.kill()
            await helper.wait()


def _send(helper: Helper, line: str) -> None:
    assert helper.stdin is not None
    helper.stdin.write(f"{line}\n".encode())


async def _line(helper: Helper) -> bytes:
    assert helper.stdout is not None
    line = await helper.stdout.readline()
    if not line:
        raise UnavailableError("A process of the benchmark ended early.")
    return line


def _parts() -> list[Part]:
    said = {"text": "The part is done, and what was asked of it is there."}
    verdict = {"verdict": {"auto": "pass"}, "repeat": "forever"}
    return [
        {"role": "worker", "turns": [{**said, "delay_seconds": WORKER_SECONDS}]},
        {"role": "qc", "turns": [{**verdict, "delay_seconds": JUDGE_SECONDS}]},
    ]


def _plan(tasks: int) -> Plan:
    return Plan(
        title="Parts",
        tasks=tuple(
            Task(
                id=f"p{at:03}",
                title=f"Part {at}",
                prompt=f"Do part {at} and say so.",
                worker_role="Worker on parts",
                qc_role="Reviewer of parts",
                criteria=(Criterion(id="c1", text="The part is done", points=Fraction(100)),),
                estimated_tool_calls=1,
                max_retries=0,
            )
            for at in range(tasks)
        ),
        request="Do it.",
        goal="Done.",
    )


def main() -> None:
    """Read an order, run it, and write the figures."""
    order = ScaleOrder(**json.loads(question()))
    found = asyncio.run(aid(order)) if order.project else asdict(asyncio.run(lead(order)))
    sys.stdout.write(f"{json.dumps(found)}\n")


if __name__ == "__main__":
    main()
