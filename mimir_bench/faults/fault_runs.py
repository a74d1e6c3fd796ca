"""Runs of one case on the real engine: the clean one and every fault, under each judge."""

import asyncio
import json
import tempfile
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from mimir.bootstrap import app
from mimir.bootstrap.clock import SystemClock
from mimir.domain.plan import Plan, Task
from mimir.domain.run import RunBudget
from mimir.domain.task_states import RUN_ENDED, RunStatus
from mimir.errors import UnavailableError
from mimir.orchestrator.api import Mimir
from mimir.reporting.summary.run_data import RunData
from mimir.settings import layers
from mimir.workspace.process_locks import ProcessLocks
from mimir.workspace.tree_removal import remove_tree
from mimir_bench.faults.attacks.attacked_case import AttackedCase, script_attack
from mimir_bench.faults.fault_case import FaultCase, ProjectCase
from mimir_bench.faults.fault_outcome import FaultOutcome, find_catcher
from mimir_bench.faults.judges import Judge, turn
from mimir_bench.faults.lying_tools import LyingTools
from mimir_bench.faults.operators import CLEAN, OPERATORS, PLAIN, clean, is_honest
from mimir_bench.faults.oracle import Oracle
from mimir_bench.faults.record_rewriting import rewrite
from mimir_bench.faults.worker_script import Turn, WorkerScript, writes
from mimir_bench.seeded_random import SeededRandom
from mimir_bench.work_site import PREAMBLE, create_project

AT_ONCE = 4
"""Parallel runs: one waits for a command while another computes."""


@dataclass(frozen=True, slots=True, kw_only=True)
class FaultRun:
    """Judge and operator of one run."""

    judge: Judge
    operator: str
    """`clean`: no fault."""


@dataclass(frozen=True, slots=True, kw_only=True)
class _EngineRun:
    """A run with its scripts; task ids are unique, so that one file holds all scripts."""

    play: FaultRun
    script: WorkerScript
    key: str
    tasks: tuple[Task, ...]
    turns: Sequence[Sequence[Turn]]
    """Of the worker of each task."""


async def play_all(case: ProjectCase, plays: Sequence[FaultRun], below: Path) -> list[FaultOutcome]:
    """Run a case several times in a new directory; return the outcomes in order.

    Raises:
        UnavailableError: The machine has no sandbox, or lost it.
    """
    room = await asyncio.to_thread(_room, below)
    try:
        return await _in_room(room, case, plays)
    except ExceptionGroup as group:
        # Several runs report one cause; the first error suffices.
        raise group.exceptions[0] from None
    finally:
        await asyncio.to_thread(remove_tree, room)


def _room(below: Path) -> Path:
    return Path(tempfile.mkdtemp(dir=below)).resolve()


async def _in_room(room: Path, case: ProjectCase, plays: Sequence[FaultRun]) -> list[FaultOutcome]:
    project = room / "project"
    await create_project(project, case.files)
    made = [_assign_scripts(case, play, number) for number, play in enumerate(plays)]
    words = room / "play.yaml"
    # JSON is YAML; it is written and read many times faster.
    words.write_text(json.dumps({"parts": _parts(case, made)}), encoding="utf-8")
    flags: dict[str, object] = {"llm.model": f"play:{words}"}
    loaded = layers.load(project, flags, {"HOME": str(room)})
    # Only the target's worker receives altered results; its task id is unique.
    altered = {run.tasks[-1].id: run.script.altered for run in made}
    async with app.open(
        project, loaded, around=lambda true: LyingTools(true=true, alterations=altered)
    ) as mimir:
        # A starting run removes the files of dead processes, unless another process is alive. Here
        # the other runs are, in this process.
        ProcessLocks(project / app.ROOM / "work" / "owners").live("bench")
        oracle = await Oracle.open(case.oracle, project, room / "oracle", SystemClock())
        slots = asyncio.Semaphore(AT_ONCE)

        async def one(run: _EngineRun) -> FaultOutcome:
            async with slots:
                return await _play(mimir, project, oracle, case, run)

        async with asyncio.TaskGroup() as group:
            playing = [group.create_task(one(run)) for run in made]
        return [task.result() for task in playing]


def _assign_scripts(case: ProjectCase, play: FaultRun, number: int) -> _EngineRun:
    """Name the tasks of a run and write its worker script."""
    # Without the judge: every judge sees the same fault, so that judges can be compared.
    draw = SeededRandom(case.family, case.seed, play.operator)
    script = _script(case, play.operator, draw)
    planned = script.tasks or case.tasks
    # All runs share one store and one model script, so that each needs its own task ids.
    key = f"r{number}"
    names = {task.id: f"{task.id}-{key}" for task in planned}
    tasks = tuple(
        replace(task, id=names[task.id], dependencies=tuple(names[d] for d in task.dependencies))
        for task in planned
    )
    turns = [*(_earlier(case, script, task) for task in planned[:-1]), script.turns]
    return _EngineRun(play=play, script=script, key=key, tasks=tasks, turns=turns)


def _script(case: ProjectCase, operator: str, draw: SeededRandom) -> WorkerScript:
    match case:
        case AttackedCase() if operator != CLEAN:
            return script_attack(case, operator, draw)
        case FaultCase() if operator != CLEAN:
            return OPERATORS[operator](case, draw)
        case _:
            return clean(case, draw)


def _parts(case: ProjectCase, made: Sequence[_EngineRun]) -> list[Mapping[str, object]]:
    parts: list[Mapping[str, object]] = []
    for run in made:
        for name, turns in zip(run.tasks, run.turns, strict=True):
            is_target = name is run.tasks[-1]
            parts.append(_worker(name.id, turns))
            # A sequence of its own: the judge's chance must not shift the worker's.
            chance = SeededRandom(case.family, case.seed, run.play.operator, run.play.judge)
            is_clean = not is_target or is_honest(run.play.operator)
            says = turn(run.play.judge, chance, is_clean=is_clean)
            parts.append({"role": "qc", "task": name.id, "turns": [says]})
    parts.append({"role": "agentinator", "turns": [{"text": PREAMBLE, "repeat": "forever"}]})
    parts.append({"role": "*_reporter", "turns": [{"text": "As reported.", "repeat": "forever"}]})
    return parts


def _worker(task: str, turns: Sequence[Turn]) -> Mapping[str, object]:
    return {"role": "worker", "task": task, "turns": list(turns)}


def _earlier(case: ProjectCase, script: WorkerScript, task: Task) -> Sequence[Turn]:
    """Return the turns of a task before the target."""
    if task.id in script.earlier:
        return script.earlier[task.id]
    return [*writes(case.earlier[task.id]), "It is done as asked."]


async def _play(
    mimir: Mimir, project: Path, oracle: Oracle, case: ProjectCase, run: _EngineRun
) -> FaultOutcome:
    plan = Plan(title=f"{case.family} {run.key}", tasks=run.tasks, request="Do it.", goal="Done.")
    path = f"chains/{run.key}/chain-output.md"
    none = RunBudget()
    id = await mimir.create_run(plan, path, only=(), limits=none)
    await mimir.drive(id, workers=2, apply="never", limits=none, resumed=False)
    data = await mimir.material(id)
    # A paused run has no outcome; counting it as "not completed" would be a false detection.
    if data.status not in RUN_ENDED:
        raise UnavailableError(f"A run of the benchmark was cut short: {data.pause_message}")
    completed, stopped = data.status is RunStatus.COMPLETED, find_catcher(data)
    # A completed run has nothing to forge: its fault was already missed.
    if run.script.rewriting and not completed:
        store = project / ".mimir" / "mimir.db"
        await rewrite(store, SystemClock(), data, run.script.rewriting)
        verified = await mimir.verify(id, "")
        completed, stopped = verified.ok, "" if verified.ok else "seal"
    tree = _tree_to_judge(data)
    is_wrong = not await oracle.is_right(tree)
    shown = True
    if is_wrong and isinstance(case, FaultCase) and case.tests and run.play.operator in PLAIN:
        checks = [check for task in run.tasks for check in task.checks]
        shown = await oracle.is_shown(tree, checks, case.tests)
    return FaultOutcome(
        judge=run.play.judge,
        family=case.family,
        seed=case.seed,
        operator=run.play.operator,
        version=run.script.version,
        wrong=is_wrong,
        completed=completed,
        caught=stopped,
        shown=shown,
    )


def _tree_to_judge(data: RunData) -> str:
    """Return the tree for the oracle: the run's, or that of a deliverable not merged."""
    for task in data.tasks:
        # A rejected deliverable is in no commit of the run, but the engine judged it.
        if task.cause and task.attempts and (work := task.attempts[-1].work):
            return work.tree
    return data.head or data.base_commit
