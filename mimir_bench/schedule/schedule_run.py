"""Program that runs task graphs: `python -m mimir_bench.schedule.schedule_run`.

Input: cases as JSON. Output: seconds on the loop's clock.
"""

import asyncio
import json
import sys
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from fractions import Fraction

from mimir.bootstrap import app
from mimir.domain.json_value import as_array, as_object
from mimir.domain.plan import Criterion, Plan, Task
from mimir.domain.run import RunBudget
from mimir.store.codec import decode
from mimir.store.protocol import GraphStore
from mimir_bench import virtual_time
from mimir_bench.schedule.graph_families import Graph, make
from mimir_bench.subprocesses import question
from mimir_bench.work_site import Part, WorkSite, drive_run, site


@dataclass(frozen=True, slots=True, kw_only=True)
class ScheduleCase:
    """One run of a graph."""

    family: str
    seed: int
    workers: int


async def _run(
    where: WorkSite, case: ScheduleCase, around: Callable[[GraphStore], GraphStore]
) -> float:
    """Run a graph and return its duration on the loop's clock."""
    graph = make(case.family, case.seed)
    loaded = where.load_settings([_worker(at, job.seconds) for at, job in enumerate(graph)])
    async with app.open(where.project, loaded, around_store=around) as mimir:
        run = await mimir.create_run(_plan(case, graph), "", only=(), limits=RunBudget())
        clock = asyncio.get_running_loop()
        began = clock.time()
        await drive_run(mimir, run, case.workers)
        return clock.time() - began


async def _all(
    cases: Sequence[ScheduleCase], around: Callable[[GraphStore], GraphStore]
) -> list[float]:
    async with site({"README.md": "# A project\n"}) as where:
        return [await _run(where, case, around) for case in cases]


def _worker(at: int, seconds: float) -> Part:
    said = f"Part {at} is done, and what was asked of it is there."
    return {
        "role": "worker",
        "task": _name(at),
        "turns": [{"text": said, "delay_seconds": seconds}],
    }


def _plan(case: ScheduleCase, graph: Graph) -> Plan:
    tasks = tuple(
        Task(
            id=_name(at),
            title=f"Part {at}",
            prompt=f"Do part {at} and say so.",
            worker_role="Worker on parts",
            qc_role="Reviewer of parts",
            criteria=(Criterion(id="c1", text="The part is done", points=Fraction(100)),),
            dependencies=tuple(_name(n) for n in job.needs),
            # True durations: the order of the scheduler is measured, not the quality of estimates.
            estimated_minutes=job.seconds / 60,
            estimated_tool_calls=1,
            max_retries=0,
        )
        for at, job in enumerate(graph)
    )
    return Plan(title=f"{case.family} {case.seed}", tasks=tasks, request="Do it.", goal="Done.")


def _name(at: int) -> str:
    return f"p{at:03}"


def main() -> None:
    """Run the cases of the input in virtual or real time, and write their durations."""
    given = as_object(json.loads(question()))
    cases = [decode(ScheduleCase, case) for case in as_array(given["cases"])]
    if given["real"]:
        took = asyncio.run(_all(cases, lambda store: store))
    else:
        took = virtual_time.run(
            lambda loop: _all(cases, lambda store: virtual_time.VirtualTimeStore(store, loop))
        )
    sys.stdout.write(json.dumps(took))


if __name__ == "__main__":
    main()
