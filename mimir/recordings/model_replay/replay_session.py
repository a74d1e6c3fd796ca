"""API of a project with replayed models, which counts the usage of the recording."""

from collections.abc import Sequence
from dataclasses import fields, replace
from functools import partial

from mimir.domain.event import EventKind
from mimir.domain.invocation import PinnedDefinition
from mimir.domain.plan import Plan, Task
from mimir.domain.run import INPUT, Apply, RunBudget, RunResult
from mimir.domain.task_states import RunStatus
from mimir.errors import Paused, PlanError
from mimir.orchestrator.api import Mimir
from mimir.orchestrator.patterns.planning_run import PlanningResult
from mimir.orchestrator.services import ProjectServices
from mimir.recordings.format.recording import Recording
from mimir.recordings.format.request_match import RequestDifference
from mimir.recordings.model_replay.recorded_answers import give_recorded_answers
from mimir.recordings.model_replay.recorded_models import RecordedModels, RecordingUsage
from mimir.recordings.model_replay.recorded_order import RecordedAttemptOrder, order_of
from mimir.store.operations import record_loading, runs
from mimir.store.protocol import GraphStore, WriteOps
from mimir.store.records.task_records import TaskProgressRecord


class ReplayingMimir(Mimir):
    """API with recorded answers."""

    def __init__(
        self, services: ProjectServices, models: RecordedModels, recording: Recording, name: str
    ) -> None:
        # A recording of an earlier version has no answers to findings of the checks.
        tries = any(run.settings.get("preflight") is True for run in recording.runs.values())
        super().__init__(replace(services, tries_checks=tries))
        self._models = models
        self._recording = recording
        self._name = name

    @property
    def used(self) -> RecordingUsage:
        """Usage of the recording so far."""
        return self._models.usage()

    async def create_run(
        self,
        plan: Plan,
        plan_path: str,
        *,
        only: Sequence[str],
        limits: RunBudget,
        from_run: str = "",
        agents: Sequence[PinnedDefinition] = (),
    ) -> str:
        """Create a run of the recorded plan.

        Raises:
            PlanError: It is another plan; the message names the first difference.
        """
        recorded = [run.plan for run in self._recording.runs.values() if run.plan is not None]
        found = [describe_plan_change(before, plan, only) for before in recorded]
        if all(found):
            cause = found[-1] if found else "it has no run of a plan"
            raise PlanError(
                f"The recording {self._name} is of another plan: {cause}.",
                code="recording-other-plan",
                next_step="Name the plan that was recorded, or record this one: mimir execute PLAN --record FILE",
            )
        return await super().create_run(
            plan, plan_path, only=only, limits=limits, from_run=from_run, agents=agents
        )

    async def make_plan(self, run: str) -> PlanningResult:
        """Make a plan with recorded answers to its questions; approvals are left to the user."""
        while True:
            try:
                return await super().make_plan(run)
            except Paused as paused:
                if paused.reason != INPUT or not await self._answer_as_recorded(run):
                    raise

    async def drive(
        self, run: str, *, workers: int, apply: Apply, limits: RunBudget, resumed: bool
    ) -> RunResult:
        """Execute a run in the recorded order, with as many agents as were active at once."""
        load = partial(record_loading.load_tasks, run=run, kind=TaskProgressRecord)
        tasks = {task.task_id for task in await self._parts.store.read(load)}
        for recorded in self._recording.runs.values():  # the last one counts, as for answers
            if recorded.plan and tasks <= {task.id for task in recorded.plan.tasks}:
                order = order_of(recorded, tasks)
                workers = max(workers, order.width)
                self._parts = replace(self._parts, pace=RecordedAttemptOrder(order, workers))
        drive = partial(super().drive, run, workers=workers, apply=apply, limits=limits)
        result = await drive(resumed=resumed)
        while result.outcome is RunStatus.PAUSED and await self._answer_as_recorded(run):
            result = await drive(resumed=True)
        return result

    async def _answer_as_recorded(self, run: str) -> bool:
        """Give recorded answers to the open questions of a run; return whether there was one."""
        write = partial(give_recorded_answers, run=run, recording=self._recording)
        return await self._parts.store.write(write)


def describe_plan_change(before: Plan, now: Plan, only: Sequence[str] = ()) -> str:
    """Describe how a plan differs from the recorded one; empty: not in its tasks."""
    known = {task.id: task for task in before.tasks}
    for task in now.tasks:
        if only and task.id not in only:
            continue
        if task.id not in known:
            return f"task {task.id!r} is not in it ({before.title!r} was recorded)"
        if task != known[task.id]:
            return f"task {task.id!r} has another {_field(known[task.id], task)}"
    gone = [id for id in known if id not in {task.id for task in now.tasks}]
    return f"task {gone[0]!r} of it is gone" if gone and not only else ""


def _field(one: Task, other: Task) -> str:
    for field in fields(one):
        if getattr(one, field.name) != getattr(other, field.name):
            return field.name.replace("_", " ")
    return "definition"


async def tell_drift(
    store: GraphStore | None, run: str, lane: str, call: int, difference: RequestDifference
) -> None:
    """Write the event that a tool's output differs from the recording."""
    task, attempt, role = (*lane.rsplit("/", 2), "", "")[:3]
    data = {
        "lane": lane, "role": role, "call": call, "part": difference.part, "first": difference.first, "last": difference.last,
        "recorded": difference.recorded, "now": difference.asked,
    }  # fmt: skip
    number = int(attempt) if attempt.isdecimal() else 0

    def work(ops: WriteOps) -> None:
        runs.append_event(ops, run, EventKind.DRIFT, task=task, attempt=number, data=data)

    if store is not None:
        await store.write(work)
