"""Benchmark "checks": check runs of accepted attempts, with and without negative controls.

It measures the demo, and one task on a project whose tests take some seconds.
"""

import asyncio
import sys
import time
from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass
from pathlib import Path

from mimir.bootstrap import app
from mimir.bootstrap.clock import SystemClock
from mimir.domain.evidence import CheckRun
from mimir.domain.plan import Check, Criterion, Plan, Task
from mimir.domain.run import RunBudget
from mimir.domain.task_states import TaskStatus
from mimir.errors import UnavailableError
from mimir.store.operations import record_loading
from mimir.store.protocol import ReadOps
from mimir.store.records.task_records import TaskRecord
from mimir.store.sqlite.sqlite_store import SqliteStore
from mimir.workspace.tree_removal import remove_tree
from mimir_bench.figures import Figures
from mimir_bench.result import BenchResult
from mimir_bench.size import Size
from mimir_bench.work_site import drive_run, make_room, site

NAME = "checks"
TITLE = "check runs for each accepted attempt, with and without negative controls"
MODES = ("accepted", "never")
"""Values of the setting `checks.controls`."""
_SECONDS: Mapping[Size, int] = {"smoke": 1, "usual": 10, "large": 10}
_WORK = "def add(a, b):\n    return {}\n"
_TEST = """import time
import unittest

from calc import add


class Add(unittest.TestCase):
    def test_add(self):
        self.assertEqual(add(2, 3), 5)

    def test_slow(self):
        time.sleep({seconds})
        self.assertEqual(add(20, 3), 23)
"""


@dataclass(frozen=True, slots=True, kw_only=True)
class CheckCosts:
    """Check runs of one run of the engine."""

    runs: tuple[CheckRun, ...]
    accepted: int
    """Attempts that passed."""
    seconds: float
    """Duration of the whole command or run."""


async def run(
    size: Size, *, say: Callable[[str], None], keep: Callable[[BenchResult], None]
) -> BenchResult:
    """Run both projects with each mode, one after another.

    Raises:
        UnavailableError: The machine has no sandbox, or a run did not complete.
    """
    figures = Figures(name=NAME, seeds="none", tolerance=0.5)
    seconds = _SECONDS[size]

    async def slow(mode: str) -> CheckCosts:
        return await _run_slow(mode, seconds)

    cases: Mapping[str, Callable[[str], Awaitable[CheckCosts]]] = {
        "demo": _run_demo,
        f"tests of {seconds} s": slow,
    }
    for case, measure in cases.items():
        for mode in MODES:
            of = f"{case}, controls {mode}"
            say(f"{NAME}: {of}")
            _add(figures, of, await measure(mode))
            keep(figures.result())
    return figures.result()


def _add(figures: Figures, of: str, costs: CheckCosts) -> None:
    controls = [run.control.runs for run in costs.runs if run.control]
    count = len(costs.runs) - len(controls) + sum(controls)
    figures.count("accepted attempts", costs.accepted, of=of)
    figures.ratio("check runs for each", count / costs.accepted, of=of)
    figures.ratio("of these, controls", sum(controls) / costs.accepted, of=of)
    busy = sum(run.seconds for run in costs.runs)
    figures.ratio("seconds in checks for each", busy / costs.accepted, of=of)
    figures.note(f"seconds, {of}", costs.seconds)


async def _run_slow(mode: str, seconds: int) -> CheckCosts:
    """Run one task whose check takes some seconds."""
    task = Task(
        id="add",
        title="Add numbers",
        prompt="Make the tests pass by a change of calc.py.",
        worker_role="Engineer",
        qc_role="Reviewer",
        criteria=(Criterion(id="c1", text="The tests pass"),),
        checks=(
            Check(
                id="unit",
                criteria=("c1",),
                run=("python3", "-m", "unittest", "-q", "tests.test_calc"),
                kind="flip",
            ),
        ),
        files=("calc.py",),
        estimated_tool_calls=4,
    )
    plan = Plan(title="Slow tests", tasks=(task,), request="Do it.", goal="Done.")
    write = {
        "tool": "write_file",
        "arguments": {"path": "calc.py", "content": _WORK.format("a + b")},
    }
    parts = [{"role": "worker", "task": "add", "turns": [{"calls": [write]}, "It is done."]}]
    files = {"calc.py": _WORK.format("0"), "tests/test_calc.py": _TEST.format(seconds=seconds)}
    async with site(files) as where:
        loaded = where.load_settings(parts, {"checks.controls": mode})
        begun = time.monotonic()
        async with app.open(where.project, loaded) as mimir:
            id = await mimir.create_run(
                plan, "chains/slow/chain-output.md", only=(), limits=RunBudget()
            )
            await drive_run(mimir, id, workers=1)
        return await _read_costs(where.project, time.monotonic() - begun)


async def _run_demo(mode: str) -> CheckCosts:
    """Run `mimir demo` in its own process."""
    room = await asyncio.to_thread(make_room)
    begun = time.monotonic()
    try:
        process = await asyncio.create_subprocess_exec(
            *("env", f"MIMIR_CHECKS_CONTROLS={mode}", sys.executable, "-m", "mimir"),
            *("demo", "--directory", str(room / "demo")),
            stdout=asyncio.subprocess.DEVNULL,
            start_new_session=True,  # Ctrl-C is handled by the parent, which ends it
        )
        try:
            if await process.wait():
                raise UnavailableError("The demo did not complete.")
        finally:
            if process.returncode is None:
                process.kill()
        return await _read_costs(room / "demo", time.monotonic() - begun)
    finally:
        await asyncio.to_thread(remove_tree, room)


async def _read_costs(project: Path, seconds: float) -> CheckCosts:
    store = SqliteStore(project / app.ROOM / "mimir.db", SystemClock())
    await store.init()

    def read(reads: ReadOps) -> CheckCosts:
        ids = [run.id for run in record_loading.find_runs(reads)]
        found = [one.check_run() for id in ids for one in record_loading.load_check_runs(reads, id)]
        tasks = [one for id in ids for one in record_loading.load_tasks(reads, id, TaskRecord)]
        # Each completed task has one accepted attempt.
        accepted = sum(task.status is TaskStatus.COMPLETED for task in tasks)
        return CheckCosts(runs=tuple(found), accepted=accepted, seconds=seconds)

    try:
        return await store.read(read)
    finally:
        await store.close()
