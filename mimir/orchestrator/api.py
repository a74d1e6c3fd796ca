"""Programming interface of mimir for one project, used by all entry points."""

from collections.abc import Callable, Collection, Mapping, Sequence
from functools import partial

from mimir.domain.estimates import LearnedEstimate
from mimir.domain.event import Event
from mimir.domain.finding import Finding
from mimir.domain.forecast import RunForecast
from mimir.domain.invocation import InvocationRequest, PinnedDefinition
from mimir.domain.json_value import as_object
from mimir.domain.plan import Plan
from mimir.domain.requirement import REQUIREMENTS_TEXT
from mimir.domain.run import NO_LIMITS, Apply, RunBudget, RunResult
from mimir.domain.task_states import RunStatus
from mimir.errors import UsageError
from mimir.orchestrator import plan_creation, preflight, result_application, store_transfer
from mimir.orchestrator.delegation.documents import describe_documents
from mimir.orchestrator.delegation.stored_response import load_response
from mimir.orchestrator.delegation.task_building import require_fit
from mimir.orchestrator.patterns import ledger_import, ledger_state
from mimir.orchestrator.patterns.choose import (
    DIRECT,
    KEPT,
    PatternOptions,
    PlanFollowing,
    read_options,
)
from mimir.orchestrator.patterns.planning_run import PlanningResult
from mimir.orchestrator.questions.answering import (
    Answerer,
    AnswerResult,
    GivenAnswer,
    give_answer,
)
from mimir.orchestrator.runs import creation, execution, inspection, join
from mimir.orchestrator.runs.forecasting import forecast_plan
from mimir.orchestrator.services import ProjectServices
from mimir.orchestrator.sessions import verbs as session_verbs
from mimir.orchestrator.sessions.children import find_open_children
from mimir.orchestrator.sessions.limits import find_queue_place, renew_budget
from mimir.orchestrator.validation.validate import ValidationRequest, validate_invocation
from mimir.planning.format.diagnostics import SourceMap
from mimir.reporting.audit.verification import AuditResult, verify
from mimir.reporting.summary.run_data import RunData
from mimir.reporting.summary.run_loader import gather
from mimir.scheduling.lifecycle import refuse_todo_list
from mimir.store.operations import estimates, runs
from mimir.store.operations.record_loading import find_json, load_run
from mimir.store.protocol import ReadOps


class Mimir:
    """Verbs of one opened project; `bootstrap.app.open` creates it."""

    def __init__(self, services: ProjectServices) -> None:
        self._parts: ProjectServices = services

    @property
    def store_uri(self) -> str:
        """Address of the store, without secrets."""
        return self._parts.store.uri

    @property
    def planning_step(self) -> str:
        """Current step of the planning besides its model calls; empty: none."""
        return self._parts.progress.step

    async def create_planning_run(
        self,
        request: str,
        *,
        ecko: bool,
        output: str | None,
        model: str,
        limits: RunBudget = NO_LIMITS,
        pattern: PatternOptions = DIRECT,
    ) -> str:
        """Create a run that plans a request within `limits`; return its id."""
        return await plan_creation.create_planning_run(
            self._parts,
            request,
            with_ecko=ecko,
            output=output or "",
            model=model,
            limits=limits,
            pattern=pattern,
        )

    async def plan(
        self, request: str, *, ecko: bool, output: str | None, model: str
    ) -> PlanningResult:
        """Plan a request in its own run, without a stop, and write the plan."""
        run = await self.create_planning_run(request, ecko=ecko, output=output, model=model)
        return await self.make_plan(run)

    async def find_following(self, run: str) -> PlanFollowing:
        """Return the plan of a planning run, and the run that follows it."""

        def look(reads: ReadOps) -> PlanFollowing:
            record = load_run(reads, run)
            settings = record.settings.mapping()
            options = read_options(settings)
            then = options.then
            if record.kind != "plan" or record.status is not RunStatus.COMPLETED:
                then = "stop"
            # An approved plan needs no further confirmation.
            elif then == "confirm" and find_json(reads, run, REQUIREMENTS_TEXT):
                then = "execute"
            own = as_object(settings.get("run"))
            kept = {f"run.{name}": own[name] for name in KEPT if own.get(name) is not None}
            return PlanFollowing(
                path=record.plan_path,
                then=then,
                only=options.only,
                from_run=options.from_run,
                settings=kept,
            )

        return await self._parts.store.read(look)

    async def make_plan(self, run: str) -> PlanningResult:
        """Plan in a planning run, or continue it, and write the plan.

        Raises:
            Paused: The run can be resumed, or the user must answer.
        """
        return await plan_creation.make_plan(self._parts, run)

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
        """Create a run of a checked plan; reuse completed tasks of `from_run`; return its id.

        `agents` are the definitions that its tasks name.
        """
        source = (
            await inspection.find_own_run(self._parts, from_run, resumable=False)
            if from_run
            else ""
        )
        if source:
            refuse_todo_list(await self._parts.store.read(partial(load_run, run=source)))
            await self._require_seals(source)
        return await creation.create_run(
            self._parts,
            plan,
            plan_path,
            only=only,
            limits=limits,
            from_run=source,
            definitions=agents,
        )

    async def _require_seals(self, source: str) -> None:
        # Its results are sealed again, so an edit of them would become a verified result.
        audit = await verify(self._parts.store, self._parts.history, source)
        if audit.problems:
            raise UsageError(
                f"{source} differs from its seals, so its tasks are not reused: {audit.problems[0]}",
                next_step=f"See: mimir verify {source}",
            )

    async def create_invocation(
        self,
        plan: Plan,
        definition: PinnedDefinition,
        *,
        limits: RunBudget,
        request: InvocationRequest,
    ) -> str:
        """Create the run of an invocation, with its definition pinned; return its id.

        Raises:
            PlanError: The request exceeds the context of the model.
        """
        if definition.program is None:
            require_fit(request, definition, self._parts.choices["worker"].context_tokens)
        return await creation.create_run(
            self._parts,
            plan,
            "",
            only=(),
            limits=limits,
            from_run="",
            kind="agent",
            definitions=(definition,),
            request=request,
        )

    async def handoff(self, run: str) -> str:
        """Return the hand-off of a run in one line: done, next, and the words of the user."""
        services = self._parts
        return await services.store.read(
            lambda reads: ledger_state.read_handoff(
                reads, services.project_id, run, (), services.clock.now()
            )
        )

    async def import_ledger(self, text: str) -> tuple[str, int, int]:
        """Make a plan and notes from a ledger; return path, open tasks and notes."""
        return await ledger_import.import_ledger(self._parts, text, plan_creation.find_free_path)

    async def response(self, run: str) -> Mapping[str, object]:
        """Return the `AgentResponse` of an invocation."""
        dead = await inspection.find_dead_processes(self._parts, run)
        documents = await describe_documents(self._parts, run)

        def read(reads: ReadOps) -> Mapping[str, object]:
            shown = load_run(reads, run).shown_status(reads.now(), dead)
            return load_response(reads, run, shown, self._parts.clock.now(), documents)

        return await self._parts.store.read(read)

    async def validate(self, run: str, request: ValidationRequest) -> dict[str, object]:
        """Repeat the proof of an ended invocation; return the result of `validate_output`."""
        return await validate_invocation(self._parts, run, request)

    async def drive(
        self, run: str, *, workers: int, apply: Apply, limits: RunBudget, resumed: bool
    ) -> RunResult:
        """Serve a run to its end, or until it pauses; cancelling the call pauses the run."""
        record = await self._parts.store.read(partial(load_run, run=run), brief=True)
        refuse_todo_list(record)
        if record.kind == "plan":
            return await plan_creation.resume_planning(self._parts, run, limits)
        if resumed and record.session_id:
            renew = partial(renew_budget, session=record.session_id, limits=self._parts.limits)
            await self._parts.store.write(renew, durable=False)
        result = await execution.execute_run(
            self._parts, run, workers=workers, apply=apply, limits=limits, resumed=resumed
        )
        await session_verbs.start_waiting_after(self._parts, run)
        return result

    async def try_checks(self, plan: Plan, places: SourceMap) -> Sequence[Finding]:
        """Run the checks of a plan on the project as it is; return the findings."""
        return await preflight.try_plan(self._parts, plan, places)

    async def help(self, run: str, *, workers: int) -> RunResult:
        """Serve a running run as a further process, which coordinates it if the coordinator dies."""
        result = await join.join_run(self._parts, run, workers=workers)
        await session_verbs.start_waiting_after(self._parts, run)
        return result

    async def find_work(self, run: str | None) -> str:
        """Return the run to serve: exact, by a unique prefix, or the newest running one."""
        return await join.find_joinable_run(self._parts, run)

    async def workers(self, run: str) -> Mapping[str, object]:
        """Return the processes of a run, their claims and metrics: `workers`, `locks`, `metrics`."""
        return await inspection.load_workers(self._parts, run)

    async def find_run(self, run: str | None, *, resumable: bool = False) -> str:
        """Return a run's id: exact, by a unique prefix, or the newest one."""
        return await inspection.find_own_run(self._parts, run, resumable=resumable)

    async def events(self, run: str, after: int) -> Sequence[Event]:
        """Return the events of a run after number `after`."""
        return await self._parts.store.read(partial(runs.events, run=run, after=after))

    async def status(self, run: str) -> Mapping[str, object]:
        """Return the status of a run in the shape of `status --json`."""
        return await inspection.status(self._parts, run)

    async def material(self, run: str) -> RunData:
        """Return the stored data of a run from which its report is computed."""
        return await self._parts.store.read(partial(gather, run=run))

    async def report(self, run: str) -> tuple[str, str]:
        """Write the report of a run as it is now; return its path and text."""
        return await inspection.report_files(self._parts).write(run)

    async def report_json(self, run: str) -> Mapping[str, object]:
        """Return the report as JSON."""
        return await inspection.report_files(self._parts).read_json(run)

    async def export(
        self, run: str, form: store_transfer.Form, write: Callable[[str], object]
    ) -> None:
        """Write a run as text, line by line; an empty `run` is the whole store."""
        services = self._parts
        await store_transfer.export(services.store, run, form, write, room=services.work_room)

    async def answer(self, name: str, given: GivenAnswer) -> AnswerResult:
        """Answer a question of this project, typed where its run is executed."""
        answerer = Answerer(
            project_id=self._parts.project_id,
            by="user",
            transport="prompt",
            redact=self._parts.redact,
            project=self._parts.project,
        )
        return await give_answer(self._parts.store, name, given, answerer)

    async def cancel(self, run: str) -> None:
        """Cancel a run that has not ended."""
        await execution.cancel(self._parts, run)
        for child in await self._parts.store.read(partial(find_open_children, run=run)):
            await self.cancel(child)
        await session_verbs.start_waiting_after(self._parts, run)

    async def open_session(
        self, name: str, *, principal: str, chat: str = "", budget: RunBudget = NO_LIMITS
    ) -> str:
        """Open a session of invocations for a principal; return its id.

        `budget` only lowers the limits of the settings.

        Raises:
            LimitError: The principal has too many.
        """
        services = self._parts
        return await session_verbs.open_session(
            services, name, principal=principal, chat=chat, budget=budget
        )

    async def cancel_session(self, session: str, principal: str) -> Sequence[str]:
        """Cancel the open invocations of a session; return their runs."""
        return await session_verbs.cancel_session(self._parts, session, principal, execution.cancel)

    async def find_queue_place(self, run: str) -> int:
        """Return the place of an invocation in the queue of its session; 0: it does not wait."""
        dead = await inspection.find_dead_processes(self._parts, run)
        return await self._parts.store.read(partial(find_queue_place, run=run, dead=dead))

    async def apply(
        self,
        run: str,
        *,
        commit: bool,
        completed: bool = False,
        markers: bool = False,
        is_confirmed: bool = False,
    ) -> RunResult:
        """Apply a run's result to the user's directory."""
        refuse_todo_list(await self._parts.store.read(partial(load_run, run=run)))
        result = await result_application.apply_result(
            self._parts,
            run,
            commit=commit,
            completed=completed,
            markers=markers,
            is_confirmed=is_confirmed,
        )
        await inspection.renew_report(self._parts, run)
        return result

    async def verify(self, run: str, seal: str) -> AuditResult:
        """Recompute every seal of a run."""
        record = await self._parts.store.read(partial(load_run, run=run))
        refuse_todo_list(record)
        await self._parts.history.serve(run, record.base_commit)
        report_hash = inspection.report_files(self._parts).hash_of
        return await verify(self._parts.store, self._parts.history, run, seal, report_hash)

    async def explain(self, run: str, task: str) -> Sequence[str]:
        """Return the decision of each criterion of a task, as lines for a terminal."""
        return await self._parts.store.read(partial(inspection.explain, run=run, task=task))

    async def learned_estimates(self, roles: Collection[str]) -> Mapping[str, LearnedEstimate]:
        """Return the learned durations of worker roles; unknown roles are left out."""
        ask = partial(estimates.load_estimates, project=self._parts.project_id, roles=roles)
        return await self._parts.store.read(ask)

    async def forecast(self, plan: Plan, *, workers: int) -> RunForecast:
        """Return the probable effort of a plan, learned from the project's ended runs."""
        ask = partial(forecast_plan, project_id=self._parts.project_id, plan=plan, workers=workers)
        return await self._parts.store.read(ask)

    async def plan_size(self, plan: Plan) -> tuple[int, int, int]:
        """Return (tasks, most tool calls, most tokens) of a plan, for its confirmation."""
        return inspection.plan_size(self._parts, plan)
