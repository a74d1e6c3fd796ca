"""Benchmark "engine": workloads and the ratios between the engine and its peers.

Both sides of every ratio are measured in the same run.
"""

import asyncio
import contextlib
import json
import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, dataclass, replace

from mimir_bench.engine import startup
from mimir_bench.engine.control_protocol import model_server
from mimir_bench.engine.measured_process import SubjectCost, SubjectName, SubjectOrder
from mimir_bench.engine.workload import Workload
from mimir_bench.figures import Figures, Goal
from mimir_bench.result import BenchResult
from mimir_bench.size import Size
from mimir_bench.subprocesses import Ask, answering_process

NAME = "engine"
_SUBJECT = "mimir_bench.engine.measured_process"
TITLE = "cost of a task, beside floors and a peer that do the same work in this run"
# Short for a model, so that the engine's own time still shows next to the waiting.
LATENCY = 0.05
"""Response time of the model server in seconds, where waiting is measured."""
CPU = "CPU of a task over LangGraph's"
CPU_WITH_CHECK = "CPU of a task with a check over LangGraph's, programs left out"
CPU_OVER_FLOOR = "CPU of a task over bare httpx2"
FLOORS: tuple[SubjectName, ...] = ("openai", "httpx2")
PEER_AND_WE: tuple[SubjectName, ...] = ("langgraph", "mimir")
WALL = "wall over bare httpx2, 10 workers, 50 ms a call"
WALL_OF_PEER = "the same of LangGraph, which keeps nothing"
GROWTH = "growth of CPU with tasks, exponent"
RSS = "KB of memory for one task more"
STORED = "bytes stored over bytes said"
STORED_GROWTH = "growth of the store with tasks, exponent"
FAN_IN = "largest call, ten times the fan-in"
FIRST = "seconds to the first request over importing langchain_openai, langgraph"
HELP = "ms of --help"
# Shared with the repeats: a run whose figures meet them is not repeated.
MOST_GROWTH, MOST_KB = 1.05, 8.0
GOALS = (
    Goal(figure=CPU, most=1.0),
    Goal(figure=WALL, most=1.10),
    Goal(figure=GROWTH, most=MOST_GROWTH),
    Goal(figure=RSS, most=MOST_KB),
    Goal(figure=STORED, most=3.0),
    Goal(figure=STORED_GROWTH, most=1.05),
    Goal(figure=FAN_IN, most=2.0),
    Goal(figure=FIRST, most=0.5),
    Goal(figure=HELP, most=120.0),
)


@dataclass(frozen=True, slots=True, kw_only=True)
class BenchScope:
    """Amount of measured work."""

    tasks: int
    files: int
    """Tasks of the workload with a check; each costs several times as much as another task."""
    grown: int
    """Tasks of the large workload that shows the growth."""
    chain: int
    fan_in: int
    """Of the larger workload; the smaller one has a tenth."""
    repeats: int
    """Of timed workloads, twice as many for files. The least value counts: load only adds."""
    walls: int
    """Repeats of wall times, which load affects most; the peer, without a goal, has `repeats`."""


SCOPES: Mapping[Size, BenchScope] = {
    "smoke": BenchScope(tasks=20, files=10, grown=60, chain=20, fan_in=30, repeats=1, walls=1),
    "usual": BenchScope(
        tasks=100, files=20, grown=1000, chain=400, fan_in=1000, repeats=2, walls=6
    ),
    "large": BenchScope(
        tasks=100, files=20, grown=10_000, chain=400, fan_in=1000, repeats=2, walls=6
    ),
}


async def run(
    size: Size, *, say: Callable[[str], None], keep: Callable[[BenchResult], None]
) -> BenchResult:
    """Measure the engine.

    Raises:
        UnavailableError: The machine has no sandbox, or a part of the benchmark failed.
    """
    figures = Figures(
        name=NAME, seeds="none: every task follows from its number", tolerance=0.25, goals=GOALS
    )
    async with model_server() as url:
        services = _MeasurementServices(url=url, say=say, scope=SCOPES[size])
        small = await _measure_cpu(services, figures)
        keep(figures.result())
        # Early, because the large run is compared with the small one right before it.
        await _measure_growth(services, figures, small)
        files = await _measure_files(services)
        for part in (_measure_waiting, _measure_start):
            keep(figures.result())
            await part(services, figures)
        # Twice, with minutes between: the cost of programs drifts with the load of the machine.
        _report_files(services, figures, (files, await _measure_files(services)))
        keep(figures.result())
        await _measure_sizes(services, figures)
    return figures.result()


@dataclass(frozen=True, slots=True, kw_only=True)
class _MeasurementServices:
    url: str
    say: Callable[[str], None]
    scope: BenchScope

    @property
    def both(self) -> dict[SubjectName, int]:
        """The peer and the engine, with their repeats."""
        return dict.fromkeys(PEER_AND_WE, self.scope.repeats)

    async def take(self, name: SubjectName, load: Workload) -> SubjectCost:
        """Run a workload once in a new process."""
        async with answering_process(_SUBJECT) as ask:
            # A new process each: peak memory never falls again within one.
            return await self._asked(ask, name, load, 0.0)

    async def measure_repeatedly(
        self, times: Mapping[SubjectName, int], load: Workload, *, latency: float = 0.0
    ) -> Mapping[SubjectName, Sequence[SubjectCost]]:
        """Run a workload several times for each subject, in turns: load affects all alike.

        Each subject has one process: to start and warm it up takes longer than many a workload.
        """
        took: dict[SubjectName, list[SubjectCost]] = {name: [] for name in times}
        asks: dict[SubjectName, Ask] = {}
        async with contextlib.AsyncExitStack() as stack:
            # In turns, not one subject after the other: a busy minute then affects all of them.
            for nth in range(max(times.values())):
                for name, most in times.items():
                    if nth >= most:
                        continue
                    if name not in asks:  # not before: others are measured while it starts
                        asks[name] = await stack.enter_async_context(answering_process(_SUBJECT))
                    took[name].append(await self._asked(asks[name], name, load, latency))
        return took

    async def _asked(
        self, ask: Ask, name: SubjectName, load: Workload, latency: float
    ) -> SubjectCost:
        self.say(f"{NAME}: {name}, {load}{f', {latency * 1000:.0f} ms a call' if latency else ''}")
        order = SubjectOrder(subject=name, load=load, url=self.url, latency_seconds=latency)
        return SubjectCost(**json.loads(await ask(json.dumps(asdict(order)))))


def _least(took: Sequence[SubjectCost], of: Callable[[SubjectCost], float]) -> float:
    return min(map(of, took))


def _cpu(took: SubjectCost) -> float:
    return took.cpu_seconds + took.child_seconds


async def _measure_cpu(services: _MeasurementServices, figures: Figures) -> SubjectCost:
    """Measure CPU time per task, including programs; return the cheapest run of the engine."""
    load = Workload(tasks=services.scope.tasks)
    took: dict[SubjectName, Sequence[SubjectCost]] = dict(
        await services.measure_repeatedly(services.both, load)
    )
    for floor in FLOORS:
        # Once: floors have no goal of their own and vary less than the engine.
        took[floor] = [await services.take(floor, load)]
    # The least value: load from outside only adds time, it never removes any.
    ours = _least(took["mimir"], _cpu)
    figures.count("calls of models", int(took["mimir"][0].meter["calls"]), of=str(load))
    figures.ratio(CPU, ours / _least(took["langgraph"], _cpu), of=load.work)
    figures.ratio(CPU_OVER_FLOOR, ours / _least(took["httpx2"], _cpu), of=load.work)
    _report_cpu(figures, load, took)
    # The first time of its process: the memory of later ones adds to it.
    return replace(min(took["mimir"], key=_cpu), peak_bytes=took["mimir"][0].peak_bytes)


def _of_files(services: _MeasurementServices) -> Workload:
    return Workload(tasks=services.scope.files, work="files")


async def _measure_files(
    services: _MeasurementServices,
) -> Mapping[SubjectName, Sequence[SubjectCost]]:
    """Measure tasks that write a file, which a check reads."""
    return await services.measure_repeatedly(services.both, _of_files(services))


def _report_files(
    services: _MeasurementServices,
    figures: Figures,
    times: Sequence[Mapping[SubjectName, Sequence[SubjectCost]]],
) -> None:
    """Report several measurements, minutes apart."""
    # The cost of programs changes by half within minutes, so that it is a note, not a figure.
    load = _of_files(services)
    took: dict[SubjectName, list[SubjectCost]] = {
        name: [one for time in times for one in time[name]] for name in PEER_AND_WE
    }
    own = {name: _least(rows, lambda one: one.cpu_seconds) for name, rows in took.items()}
    ratio = own["mimir"] / own["langgraph"]
    figures.ratio(CPU_WITH_CHECK, ratio, of=load.work)
    _report_cpu(figures, load, took)


def _report_cpu(
    figures: Figures, load: Workload, took: Mapping[SubjectName, Sequence[SubjectCost]]
) -> None:
    for name, rows in took.items():
        best = min(rows, key=_cpu)
        own, run = (s * 1000 / load.tasks for s in (best.cpu_seconds, best.child_seconds))
        figures.note(f"CPU ms of a task, {load.work}, {name}", f"{own:.1f} + {run:.1f} of programs")


async def _measure_waiting(services: _MeasurementServices, figures: Figures) -> None:
    """Measure wall time with slow models."""
    load = Workload(tasks=services.scope.tasks)
    walls = services.scope.walls
    # Only the two sides of the goal are repeated more often.
    times: dict[SubjectName, int] = {"httpx2": walls, **services.both, "mimir": walls}
    took = await services.measure_repeatedly(times, load, latency=LATENCY)
    wall = {name: _least(rows, lambda one: one.wall_seconds) for name, rows in took.items()}
    figures.ratio(WALL, wall["mimir"] / wall["httpx2"], of=str(load))
    figures.ratio(WALL_OF_PEER, wall["langgraph"] / wall["httpx2"], of=str(load))
    for name, seconds in wall.items():
        figures.note(f"wall s at 50 ms a call, {name}", seconds)


async def _measure_growth(
    services: _MeasurementServices, figures: Figures, small: SubjectCost
) -> None:
    """Measure CPU time and memory of ten times the tasks.

    It repeats only if the first figures miss their goals. Each large run is compared with a small
    one right before it: within minutes a machine may become slower by a third.
    """
    scope = services.scope
    tasks = f"{scope.tasks} to {scope.grown} tasks"
    pairs: list[tuple[SubjectCost, SubjectCost]] = []
    exponent = more = peak = math.inf
    while len(pairs) < scope.repeats and (exponent > MOST_GROWTH or more > MOST_KB):
        # The first small run was measured minutes ago at most; later pairs need a new one.
        few = await services.take("mimir", Workload(tasks=scope.tasks)) if pairs else small
        pairs.append((few, await services.take("mimir", Workload(tasks=scope.grown))))
        exponent = min(
            _exponent(_cpu(few), _cpu(many), scope.tasks, scope.grown) for few, many in pairs
        )
        peak = min(many.peak_bytes for _, many in pairs)
        more = (peak - small.peak_bytes) / (scope.grown - scope.tasks) / 1024
    figures.ratio(GROWTH, exponent, of=tasks)
    figures.ratio(RSS, more, of=tasks)
    figures.note("peak memory MB", f"{small.peak_bytes / 1e6:.0f}, {peak / 1e6:.0f}")


async def _measure_sizes(services: _MeasurementServices, figures: Figures) -> None:
    """Measure counted sizes, in parallel, each with its own model server."""
    # Counted sizes do not depend on load, so that both measurements may run at once.
    chain = Workload(graph="chain", tasks=services.scope.chain, answer_bytes=1000)
    wide = Workload(graph="fan-in", tasks=services.scope.fan_in, tools=False)
    async with model_server() as other:
        chains, fans = await asyncio.gather(
            _measure_pair(services, chain, chain.tasks // 4),
            # Each server has one meter; two workloads on one server would be added up.
            _measure_pair(replace(services, url=other), wide, wide.tasks // 10),
        )
    _report_storage(figures, chain, *chains)
    _report_fan_in(figures, wide, *fans)


async def _measure_pair(
    services: _MeasurementServices, load: Workload, fewer: int
) -> tuple[SubjectCost, SubjectCost]:
    """Run a workload, and the same with fewer tasks."""
    return await services.take("mimir", load), await services.take(
        "mimir", replace(load, tasks=fewer)
    )


def _report_storage(
    figures: Figures, chain: Workload, long: SubjectCost, short: SubjectCost
) -> None:
    """Report stored bytes over message bytes, on a chain with answers of 1 kB."""
    figures.ratio(STORED, long.stored_bytes / long.meter["message_bytes"], of=str(chain))
    grown = _exponent(short.stored_bytes, long.stored_bytes, chain.tasks // 4, chain.tasks)
    figures.ratio(STORED_GROWTH, grown, of=f"{chain.tasks // 4} to {chain.tasks} tasks")
    figures.count("bytes said", int(long.meter["message_bytes"]), of=str(chain))
    figures.note("bytes stored", long.stored_bytes)
    figures.note("bytes of answers", int(long.meter["answer_bytes"]))


def _report_fan_in(
    figures: Figures, wide: Workload, large: SubjectCost, small: SubjectCost
) -> None:
    """Report the largest request of a task with many dependencies."""
    most, less = int(large.meter["largest_bytes"]), int(small.meter["largest_bytes"])
    figures.ratio(FAN_IN, most / less, of=f"{wide.tasks // 10} to {wide.tasks}")
    figures.count("bytes of the largest call", most, of=f"fan-in {wide.tasks}")


async def _measure_start(services: _MeasurementServices, figures: Figures) -> None:
    """Measure the time from start to the first effect."""
    services.say(f"{NAME}: starting")
    took = await startup.measure(services.url, services.scope.repeats)
    # Only the time above these imports counts: every LangChain agent pays for them.
    figures.ratio(FIRST, took.first_request - took.imports, of="execute PLAN")
    figures.ratio(HELP, took.help * 1000, of="mimir --help")
    figures.note("s to the first request", took.first_request)
    figures.note("s of the imports alone", took.imports)
    figures.note("ms of python -c pass", took.nothing * 1000)


def _exponent(small: float, large: float, few: int, many: int) -> float:
    """Return the power of the number of tasks with which a cost grows; 1: proportional."""
    # The slope of a line in a log-log plot.
    return math.log(large / small) / math.log(many / few)
