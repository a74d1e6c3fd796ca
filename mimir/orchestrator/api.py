"""Everything that can be asked of mimir in one project: what doors (command line, later others) program against."""

from collections.abc import Callable, Collection, Mapping, Sequence
from functools import partial

from mimir.domain.estimates import LearnedEstimate
from mimir.domain.event import Event
from mimir.domain.plan import Plan
from mimir.domain.run import NO_LIMITS, Apply, RunBudget, RunResult
from mimir.orchestrator import plan_creation, result_application, store_transfer
from mimir.orchestrator.plan_creation import PlanningResult
from mimir.orchestrator.runs import creation, execution, inspection, join, worker_status
from mimir.orchestrator.services import ProjectServices
from mimir.reporting.audit.verification import AuditResult, verify
from mimir.reporting.summary.run_data import RunData
from mimir.reporting.summary.run_loader import gather
from mimir.store import row_fields
from mimir.store.operations import estimates, runs


class Mimir:
    """The verbs; made by `app.open`."""

    def __init__(self, parts: ProjectServices) -> None:
        self._parts: ProjectServices = parts

    @property
    def store_uri(self) -> str:
        """Where the store is, without secrets."""
        return self._parts.store.uri

    async def plan(
        self,
        request: str,
        *,
        ecko: bool,
        output: str | None,
        model: str,
        limits: RunBudget = NO_LIMITS,
    ) -> PlanningResult:
        """Make a plan of a request and write it, by a run of its own; of `limits`, those of calls, tokens and money.

        Raises:
            Paused: The planning run can be resumed.
            ConfigurationError: No model can be asked.
            AnswerError: The model gave no usable answer.
        """
        run = await plan_creation.create_planning_run(
            self._parts, request, with_ecko=ecko, output=output or "", model=model, limits=limits
        )
        return await plan_creation.make_plan(self._parts, run)

    async def create_run(
        self,
        plan: Plan,
        plan_path: str,
        *,
        only: Sequence[str],
        limits: RunBudget,
        from_run: str = "",
    ) -> str:
        """Make a run of a checked plan; its id. `from_run`: whose completed tasks are taken over."""
        source = (
            await inspection.find_own_run(self._parts, from_run, resumable=False)
            if from_run
            else ""
        )
        return await creation.create_run(
            self._parts, plan, plan_path, only=only, limits=limits, from_run=source
        )

    async def drive(
        self, run: str, *, workers: int, apply: Apply, limits: RunBudget, resumed: bool
    ) -> RunResult:
        """Serve a run to its end, or to where it pauses; cancelling it pauses the run."""
        row = await self._parts.store.read(partial(runs.node, run=run), brief=True)
        if row.get("kind") == "plan":
            return await execution.resume_planning(self._parts, run, limits)
        return await execution.execute_run(
            self._parts, run, workers=workers, apply=apply, limits=limits, resumed=resumed
        )

    async def help(self, run: str, *, workers: int) -> RunResult:
        """Serve a run that is under way beside the process that coordinates it, or in its place when it dies."""
        return await join.join_run(self._parts, run, workers=workers)

    async def find_work(self, run: str | None) -> str:
        """Return the run to help: named whole or by its beginning, or the newest one that is being worked on.

        Raises:
            UsageError: There is none.
        """
        return await join.find_joinable_run(self._parts, run)

    async def workers(self, run: str) -> Mapping[str, object]:
        """Return which processes serve a run, what they hold and how they do: `workers`, `locks`, `metrics`."""
        return await worker_status.load_workers(self._parts, run)

    async def find_run(self, run: str | None, *, resumable: bool = False) -> str:
        """Return a run's id: itself, by a unique prefix, or the newest one.

        Raises:
            UsageError: There is none; the nearest are named.
        """
        return await inspection.find_own_run(self._parts, run, resumable=resumable)

    async def events(self, run: str, after: int) -> Sequence[Event]:
        """Return the events of a run behind `after`."""
        return await self._parts.store.read(partial(runs.events, run=run, after=after))

    async def status(self, run: str) -> Mapping[str, object]:
        """Return where a run stands: the shape of `status --json`."""
        return await inspection.status(self._parts, run)

    async def material(self, run: str) -> RunData:
        """Return all that the store holds of a run: what its report is made from."""
        return await self._parts.store.read(partial(gather, run=run))

    async def report(self, run: str) -> tuple[str, str]:
        """Write the report of a run as it stands; its path and text."""
        return await inspection.write_report(self._parts, run)

    async def report_json(self, run: str) -> Mapping[str, object]:
        """Return the report's JSON twin."""
        return await inspection.report_json(self._parts, run)

    async def export(
        self, run: str, form: store_transfer.Form, write: Callable[[str], object]
    ) -> None:
        """Write a run as text, line by line; an empty `run`: the whole store."""
        parts = self._parts
        await store_transfer.export(parts.store, run, form, write, room=parts.work_room)

    async def cancel(self, run: str) -> None:
        """Cancel what has not ended."""
        await execution.cancel(self._parts, run)

    async def apply(self, run: str, *, commit: bool) -> RunResult:
        """Bring a run's result into the person's directory by hand."""
        return await result_application.apply_result(self._parts, run, commit=commit)

    async def verify(self, run: str, seal: str) -> AuditResult:
        """Recompute every seal of a run."""
        row = await self._parts.store.read(partial(runs.node, run=run))
        await self._parts.history.serve(run, row_fields.text_field(row, "baseCommit"))
        return await verify(self._parts.store, self._parts.history, run, seal)

    async def doctor(self) -> Sequence[inspection.DoctorFinding]:
        """Say what works here and what does not."""
        return await inspection.doctor(self._parts)

    async def learned(self, roles: Collection[str]) -> Mapping[str, LearnedEstimate]:
        """Return what tasks of these worker roles took in finished runs; a role that nothing is known of is left out."""
        ask = partial(estimates.load_estimates, project=self._parts.project_id, roles=roles)
        return await self._parts.store.read(ask)

    async def plan_size(self, plan: Plan) -> tuple[int, int, int]:
        """Return (tasks, most tool calls, most tokens) of a plan: what is asked about before it runs."""
        return inspection.plan_size(self._parts, plan)
