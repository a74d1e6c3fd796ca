"""Preflight: all checks of a plan run on the base tree before a worker's first call.

The runs are those before the work: attempts use them again, and no command runs twice on one tree. A process that has just planned the
run uses those of the planning.
"""

from collections.abc import Collection, Iterable, Sequence
from dataclasses import replace
from functools import partial
from pathlib import Path

from mimir.attempts.deliverable import HIDDEN
from mimir.domain.actor import CURRENT_ACTOR, Actor
from mimir.domain.event import EventKind
from mimir.domain.evidence import PRODUCTS_TEXT
from mimir.domain.finding import Finding
from mimir.domain.graph import TaskGraph
from mimir.domain.plan import Plan
from mimir.domain.task_states import TaskStatus
from mimir.domain.value_class import value_class
from mimir.errors import MimirError, Paused, PlanError
from mimir.orchestrator.services import ProjectServices
from mimir.planning import parser
from mimir.planning.format.diagnostics import SourceMap, make_finding
from mimir.planning.lint.file_rules import is_task_0
from mimir.qc.checks.trial import TrialFinding, judge_trial
from mimir.store.operations import runs
from mimir.store.operations.record_loading import (
    decode_plan,
    find_json,
    load_run_with_plan,
    load_tasks,
    save_run_text,
)
from mimir.store.protocol import ReadOps, WriteOps
from mimir.store.records.run_records import RunRecord
from mimir.store.records.task_records import TaskProgressRecord
from mimir.store.schema import pack
from mimir.workspace.aio import await_all

DONE = "preflight"
"""Name of the run's text that marks its checks as tried.

A resumed run accepts the findings.
"""


def is_wanted(record: RunRecord) -> bool:
    """Return whether a run tries its checks first; runs of earlier versions do not."""
    return record.settings.mapping().get("preflight") is True


@value_class
class PlanTrial:
    """Result of the runs of a plan's checks on one tree."""

    findings: tuple[TrialFinding, ...]
    products: tuple[str, ...]
    """New files and folders that the checks made."""


async def try_checks(
    services: ProjectServices, plan: Plan, tree: str, *, done: Collection[str] = ()
) -> PlanTrial:
    """Run every check of a plan on a tree, once for each command.

    `done` are tasks that an earlier run completed: the tree may contain their work.

    Raises:
        Paused: The sandbox or the disk failed.
    """
    graph = TaskGraph.from_plan(plan)
    tasks = {task.id: task for task in plan.tasks}
    paths = frozenset(await services.history.paths(tree))

    products: set[str] = set()

    async def try_task(id: str) -> list[TrialFinding]:
        task = tasks[id]
        earlier = [name for name in sorted(graph.upstream(id)) if name in tasks]
        # Task 0 changes nothing: what is red before it is red after it.
        before = [tasks[name] for name in earlier if not is_task_0(name)]
        known = {check.id: check for check in task.checks}
        prepared = await services.checks.prepare(task, tree)
        products.update(path for run in prepared for path in run.products)
        found = (judge_trial(known[run.check], run, (task, *before), paths) for run in prepared)
        return [one for one in found if one is not None]

    with services.progress.show("trying the checks of the plan"):
        found = await await_all(try_task(task.id) for task in plan.tasks if task.id not in done)
    findings = tuple(one for of_task in found for one in of_task)
    return PlanTrial(findings=findings, products=tuple(sorted(products)))


def locate_findings(
    found: Iterable[TrialFinding], plan: Plan, places: SourceMap
) -> tuple[Finding, ...]:
    """Return trial findings as findings of the plan, each at the position of its check."""
    position = {
        (task.id, check.id): places.position_of(number, "checks", item)
        for number, task in enumerate(plan.tasks)
        for item, check in enumerate(task.checks)
    }

    def locate(one: TrialFinding) -> Finding:
        place = position[one.task, one.check]
        finding = make_finding(one.code, one.message, place, one.suggestion)
        # A check that is not required decides nothing.
        return finding if one.is_required else replace(finding, severity="warning")

    return tuple(map(locate, found))


async def try_plan(services: ProjectServices, plan: Plan, places: SourceMap) -> tuple[Finding, ...]:
    """Try the checks of a plan on the project's files as they are, outside of a run.

    Raises:
        Paused: The sandbox or the disk failed.
    """
    base = await services.history.base(services.ids.new("check"), hidden=HIDDEN)
    services.show_base(base.commit, services.project_id)
    trial = await try_checks(services, plan, base.tree)
    return locate_findings(trial.findings, plan, places)


async def check_run(services: ProjectServices, run: str) -> None:
    """Try the checks of a run before its first attempt, once.

    Raises:
        Paused: A check cannot decide its criteria; a resume accepts that.
    """
    record, is_done = await services.store.read(partial(_look, run=run))
    if is_done or not is_wanted(record):
        return
    plan = decode_plan(record)
    services.show_base(record.base_commit, record.project_id)
    CURRENT_ACTOR.set(Actor(run=record.id, plan_run=record.plan_run))
    source = record.from_run
    done = await services.store.read(partial(_list_completed, run=source)) if source else ()
    trial = await try_checks(services, plan, record.base_tree, done=done)
    places = _read_places(services.project, record.plan_path, plan)
    located = locate_findings(trial.findings, plan, places)
    if not (located or trial.products):
        return
    lines = {one: one.render(record.plan_path or "plan") for one in located}
    warnings = [line for one, line in lines.items() if one.severity == "warning"]
    errors = [line for one, line in lines.items() if one.severity == "error"]

    def work(ops: WriteOps) -> None:
        if trial.products:
            save_run_text(ops, record.id, PRODUCTS_TEXT, pack(list(trial.products)))
        if lines:
            save_run_text(ops, record.id, DONE, pack(list(lines.values())))
        for line in warnings:
            runs.append_event(ops, record.id, EventKind.WARNING, data={"message": line})

    await services.store.write(work, durable=bool(errors))
    if errors:
        raise Paused(
            "\n".join((f"The plan has checks that cannot decide ({len(errors)}).", *errors)),
            reason="plan",
            exit_code=PlanError.exit_code,
            next_step=f"Correct the plan and execute it again, or accept it: mimir resume {record.id}",
        )


def _look(reads: ReadOps, run: str) -> tuple[RunRecord, bool]:
    """Return a run, and whether its checks were tried."""
    # Findings are stored; a run without any begins.
    begun = runs.events(reads, run, kinds=(EventKind.RUN_STARTED,), limit=1)
    return load_run_with_plan(reads, run), bool(begun) or find_json(reads, run, DONE) is not None


def _list_completed(reads: ReadOps, run: str) -> list[str]:
    tasks = load_tasks(reads, run, TaskProgressRecord)
    return [task.task_id for task in tasks if task.status is TaskStatus.COMPLETED]


def _read_places(project: Path, plan_path: str, plan: Plan) -> SourceMap:
    """Return the positions of a plan's file; none if the file is another plan by now."""
    try:
        parsed = parser.parse_document(project / plan_path)
    except (MimirError, OSError):
        return SourceMap()
    return parsed.places if _ids(parsed.plan) == _ids(plan) else SourceMap()


def _ids(plan: Plan) -> Sequence[object]:
    return [(task.id, [check.id for check in task.checks]) for task in plan.tasks]
