"""Measurement of a plan of ten thousand tasks: CPU seconds and megabytes.

`python -m scripts.large_plan [TASKS] [SHAPE]`. Shapes: `layered` (ten parallel tasks, three
dependencies each), `fan` (all after the first), `chain`; with `-files` each task declares its own
file, with `-file` all declare the same one.
"""

import argparse
import asyncio
import resource
import tempfile
import time
from collections.abc import Callable
from fractions import Fraction
from pathlib import Path
from typing import TypeVar

from mimir.bootstrap import app, quick_status
from mimir.domain.agent import ALL_TOOLS
from mimir.domain.plan import Check, Criterion, Plan, Task
from mimir.domain.run import RunBudget
from mimir.domain.scheduling_command import FinishRun, ReleaseTask
from mimir.domain.task_states import TaskStatus
from mimir.planning import parser as chain
from mimir.planning.lint.plan_check import check
from mimir.planning.renderer import render
from mimir.scheduling.decide import RunSnapshot, decide
from mimir.scheduling.priority import weights
from mimir.settings import layers

T = TypeVar("T")
WIDTH = 10
PATH = "chains/large/chain-output.md"


def task(number: int, shape: str) -> Task:
    """Return one task of the plan."""
    kind, _, files = shape.partition("-")
    layer = number // WIDTH * WIDTH
    needs = {
        "chain": range(max(0, number - 1), number),
        "fan": range(min(1, number)),
        "layered": range(max(0, layer - WIDTH), max(0, layer - WIDTH + 3)),
    }[kind]
    return Task(
        id=f"t{number}",
        title=f"Task {number}",
        prompt=f"Look at part {number}, and write down what it is for. " * 3,
        worker_role="Reader",
        qc_role="Reviewer",
        criteria=(Criterion(id="c1", text="It is written down", points=Fraction(100)),),
        checks=(
            Check(id="unit", criteria=("c1",), run=("python", "-m", "pytest", f"t{number}.py")),
        ),
        dependencies=tuple(f"t{n}" for n in needs if n < number),
        files={"": (), "files": (f"src/t{number}.py",), "file": ("src/all.py",)}[files],
        estimated_tool_calls=4,
    )


def timed(step: str, work: Callable[[], T]) -> T:
    """Run a step, and print its cost."""
    begun = time.process_time()
    done = work()
    told(step, time.process_time() - begun)
    return done


def told(step: str, seconds: float) -> None:
    """Print one line of figures."""
    memory = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss // 1024
    print(f"{step:<28} {seconds:8.2f} s {memory:6} MB", flush=True)


def run_through(plan: Plan) -> int:
    """Decide until every task has ended, ten at once; return the number of decisions."""
    snapshot = RunSnapshot.from_rows(plan, {}, [], weights(plan))
    decisions, ready = 0, list[tuple[float, str]]()
    while True:
        decisions += 1
        commands = decide(snapshot)
        if any(isinstance(command, FinishRun) for command in commands):
            return decisions
        for command in commands:
            if isinstance(command, ReleaseTask):
                snapshot.note_released(command.task)
                ready.append((-command.priority, command.task))
        ready.sort()
        for _, id in ready[:WIDTH]:
            snapshot.apply(id, TaskStatus.COMPLETED)
        del ready[:WIDTH]


async def in_store(plan: Plan) -> None:
    """Create a run of the plan, and load it."""
    with tempfile.TemporaryDirectory(prefix="mimir-large-") as name:
        project = Path(name) / "project"
        project.mkdir()
        (project / "README.md").write_text("# Large\n")
        play = Path(name) / "play.yaml"
        play.write_text("parts: []\n")
        loaded = layers.load(project, {"llm.model": f"play:{play}"}, {"HOME": name})
        async with app.open(project, loaded) as mimir:
            begun = time.process_time()
            run = await mimir.create_run(plan, PATH, only=(), limits=RunBudget())
            told("create the run", time.process_time() - begun)
        begun = time.process_time()
        await quick_status.status(project, loaded, run, print)
        told("status", time.process_time() - begun)
        size = sum(f.stat().st_size for f in (project / ".mimir").glob("mimir.db*"))
        print(f"store: {size // len(plan.tasks):,} bytes a task")


def main() -> None:
    """Print all figures."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("tasks", nargs="?", type=int, default=10_000)
    parser.add_argument("shape", nargs="?", default="layered")
    asked = parser.parse_args()
    tasks = tuple(task(number, asked.shape) for number in range(asked.tasks))
    text = timed("render", lambda: render(Plan(title="Large", tasks=tasks, request="r", goal="g")))
    parsed = timed(f"parse {len(text):,} characters", lambda: chain.parse_plan(text))
    timed("check", lambda: check(parsed, tools=ALL_TOOLS, exists=lambda _: False))
    decisions = timed("decide to the end", lambda: run_through(parsed.plan))
    print(f"decisions: {decisions:,}, each after at most {WIDTH} tasks ended")
    asyncio.run(in_store(parsed.plan))


if __name__ == "__main__":
    main()
