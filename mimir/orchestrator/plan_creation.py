"""Verb `plan`: Ecko (optional), the PM, parser and lint turn a request into a plan.

Planning is a run of its own, journaled and resumable like any other.
"""

import asyncio
import itertools
import shutil
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path

from mimir.agents.agent_loop import LoopServices, ModelSettings
from mimir.agents.circuit_breaker import CircuitBreaker
from mimir.agents.context.inputs import ContextBudgets, FileView, PMInput
from mimir.agents.context.task_context import get_task_context
from mimir.agents.preambles import templates
from mimir.agents.stopwatch import WorkTimer
from mimir.attempts.deliverable import HIDDEN
from mimir.domain.actor import CURRENT_ACTOR, Actor
from mimir.domain.agent import NAMED_TOOLS, ROLES
from mimir.domain.event import EventKind
from mimir.domain.finding import Finding
from mimir.domain.ids import PLAN_TASK
from mimir.domain.invocation import PLAN_AGENTS_TEXT, PlanAgent
from mimir.domain.message import CallContext, Message
from mimir.domain.plan import Plan
from mimir.domain.run import RunBudget
from mimir.domain.task_states import RunStatus
from mimir.errors import AnswerError, ModelError, Paused
from mimir.llm import codec
from mimir.orchestrator import preflight, run_models
from mimir.orchestrator.delegation.material import find_memory
from mimir.orchestrator.delegation.plan_agents import check_plan_agents
from mimir.orchestrator.sandbox_facts import describe_sandbox
from mimir.orchestrator.services import ProjectServices
from mimir.planning import ecko
from mimir.planning.format.diagnostics import SourceMap
from mimir.planning.format.labels import format_instructions
from mimir.planning.format.slug import slug
from mimir.planning.planner import PlannerServices, PlanProposal, propose
from mimir.planning.renderer import render
from mimir.scheduling import lifecycle
from mimir.store.operations import budget, runs
from mimir.store.operations.record_loading import find_json, load_run, save_run_text
from mimir.store.protocol import ReadOps
from mimir.store.records.artifact_records import JsonArtifactRecord
from mimir.store.records.record_codec import PackedJson
from mimir.store.records.run_records import RunRecord
from mimir.store.schema import pack
from mimir.store.transcripts.stored_transcript import StoredTranscript
from mimir.tools.empty import NO_TOOLS
from mimir.tools.protocol import Toolset
from mimir.workspace.paths import DirectoryTree
from mimir.workspace.state_dir import write_state_file

READ_FIRST = (
    "README.md",
    "README.rst",
    "AGENTS.md",
    "CONTRIBUTING.md",
    "pyproject.toml",
    "package.json",
)
READ_FIRST_BYTES = 40_000
PM_SECONDS = 3600.0


@dataclass(frozen=True, slots=True, kw_only=True)
class PlanningResult:
    """Plan that a planning run wrote."""

    run: str
    path: str
    """Path of the plan, relative to the project."""
    plan: Plan
    findings: tuple[Finding, ...]
    exit_code: int
    """0, or 65: saved with findings that prevent its execution."""

    @property
    def outcome(self) -> RunStatus:
        """Outcome of the planning run."""
        return RunStatus.FAILED if self.exit_code else RunStatus.COMPLETED


async def create_planning_run(
    services: ProjectServices,
    request: str,
    *,
    with_ecko: bool,
    output: str,
    model: str,
    limits: RunBudget,
) -> str:
    """Create a planning run; return its id.

    Raises:
        ConfigurationError: The settings do not allow a model call, or the cost is limited and a model has no price.
    """
    services.check_models()
    if limits.max_cost is not None:
        budget.must_have_prices(services.prices, models_of_planning(services, model))
    run = services.ids.new("plan")
    base = await services.history.base(run, hidden=HIDDEN)
    new = services.new_run(
        run,
        base,
        replace(limits, seconds=None),  # the conversation with the PM has a time limit of its own
        kind="plan",
        name=" ".join(request.split())[:80] or run,
        request=request,
        plan_path=output or find_free_path(services.project, request),
        settings={**services.pinned, "ecko": with_ecko, "model": model},
    )
    await services.store.write(partial(runs.create, new=new))
    return run


def models_of_planning(services: ProjectServices, model: str) -> frozenset[str]:
    """Return the models that planning may call; a named `model` replaces the set ones."""
    return frozenset(model or services.choices[role].model for role in ("ecko", "pm"))


async def raise_limits(services: ProjectServices, run: str, limits: RunBudget) -> None:
    """Set new limits of a planning run.

    Raises:
        ConfigurationError: The cost is to be limited, and a model had no price at the start.
    """
    record = await services.store.read(partial(load_run, run=run))
    if limits.max_cost is not None or record.max_cost is not None:
        model = str(record.settings.mapping().get("model") or "")
        budget.must_be_priced(record, models_of_planning(services, model))
    await services.store.write(partial(lifecycle.set_limits, run=run, limits=limits))


async def make_plan(
    services: ProjectServices, run: str, *, models: Mapping[str, str] | None = None
) -> PlanningResult:
    """Continue a planning run from its transcripts, with `models`, and write the plan.

    Raises:
        Paused: The run can be resumed.
        AnswerError: A model gave no usable answer; the run has failed.
        ModelError: The provider refused the conversation; the run has failed.
    """
    owner, store = services.owner, services.store
    take = partial(
        lifecycle.take_run,
        run=run,
        owner=owner,
        seconds=services.lease_seconds,
        dead=services.owners.find_dead(),
        resumed=True,
        models=models,
    )
    record = await store.write(take)
    try:
        planned = await _PlanningRun(run_models.services_for_run(services, record), record).run()
    except Paused as paused:
        await store.write(
            partial(lifecycle.pause, run=run, owner=owner, paused=paused, seconds=0.0)
        )
        raise
    except (AnswerError, ModelError) as error:
        outcome, data = RunStatus.FAILED, {"message": str(error)}
        await store.write(partial(lifecycle.end, run=run, owner=owner, outcome=outcome, data=data))
        raise
    data = {"plan": planned.path, "tasks": len(planned.plan.tasks)}
    end = partial(lifecycle.end, run=run, owner=owner, outcome=planned.outcome, data=data)
    await store.write(end)
    return planned


class _PlanningRun:
    """One planning run: its conversations with Ecko and the PM."""

    def __init__(self, services: ProjectServices, record: RunRecord) -> None:
        self._services = services
        self._record = record
        self._checkout = services.work_room / record.id / "pm"

    async def run(self) -> PlanningResult:
        """Hold both conversations and write the plan."""
        services, record = self._services, self._record
        await services.history.checkout(record.base_tree, self._checkout)
        try:
            with_ecko = record.settings.mapping().get("ecko") is True
            specification = await self._specify() if with_ecko else ""
            proposal = await self._propose(specification)
        finally:
            shutil.rmtree(self._checkout.parent, ignore_errors=True)
        # The findings name lines of the PM's own text, so a plan with errors is saved as it was written.
        text = render(proposal.plan) if proposal.acceptable else proposal.text
        write_state_file(services.project, record.plan_path, text.encode())
        # The file belongs to the user now; the stored copy keeps the plan as it was saved.
        await services.store.write(partial(save_run_text, run=record.id, name="made", text=text))
        return PlanningResult(
            run=record.id,
            path=record.plan_path,
            plan=proposal.plan,
            findings=proposal.findings,
            exit_code=0 if proposal.acceptable else 65,
        )

    async def _specify(self) -> str:
        system = templates.system_message("ecko", self._services.own_preambles.read)
        transcript = await self._services.open_transcript(self._record.id, "ecko")
        loop = self._loop_services("ecko", transcript, NO_TOOLS)
        text = await ecko.specify(self._record.request, system, loop)
        await transcript.flush()
        return text

    async def _propose(self, specification: str) -> PlanProposal:
        services, record = self._services, self._record
        transcript = await services.open_transcript(record.id, "pm")
        known = frozenset(await services.history.paths(record.base_tree, None))
        agents = await self._load_agents()
        brief = await self._load_brief(specification, agents or ())
        tools = services.planner_tools(self._checkout, transcript)
        planner = PlannerServices(
            services=self._loop_services("pm", transcript, tools),
            tools=NAMED_TOOLS,
            exists=lambda path: path in known,
            try_checks=self._try_checks,
            check_agents=partial(check_plan_agents, agents=agents)
            if agents is not None
            else _no_findings,
            on_proposal=self._log_proposal,
        )
        proposal = await propose(record.request, brief, planner)
        await transcript.flush()
        return proposal

    async def _try_checks(self, plan: Plan, places: SourceMap) -> Sequence[Finding]:
        """Run the checks of a proposed plan on the base; runs of earlier versions did not."""
        record, services = self._record, self._services
        if not preflight.is_wanted(record):
            return ()
        services.show_base(record.base_commit, record.project_id)
        CURRENT_ACTOR.set(Actor(run=record.id))
        found = await preflight.try_checks(services.checks, plan, record.base_tree)
        return preflight.locate_findings(found, plan, places)

    async def _load_agents(self) -> tuple[PlanAgent, ...] | None:
        """Return the agents that the plan may name, looked up once; None: an older version asked."""
        run, store = self._record.id, self._services.store

        def look(reads: ReadOps) -> tuple[JsonArtifactRecord | None, bool]:
            saved = find_json(reads, run, PLAN_AGENTS_TEXT)
            return saved, find_json(reads, run, "brief") is not None

        saved, is_told = await store.read(look)
        if saved or is_told:
            return saved.value.decode(tuple[PlanAgent, ...]) if saved else None
        agents = tuple(await asyncio.to_thread(self._services.plan_agents))
        text = PackedJson.pack(agents).text
        await store.write(partial(save_run_text, run=run, name=PLAN_AGENTS_TEXT, text=text))
        return agents

    async def _load_brief(
        self, specification: str, agents: Sequence[PlanAgent]
    ) -> tuple[Message, ...]:
        """Return the PM's brief, made and stored once: the memory may change before a resume."""
        run, store = self._record.id, self._services.store
        saved = await store.read(partial(find_json, run=run, name="brief"))
        if saved:
            messages = saved.value.decode(tuple[object, ...])
            return tuple(codec.read_message(message) for message in messages)
        budgets = ContextBudgets.within(self._services.choices["pm"].context_tokens)
        given = replace(await self._pm_input(specification), agents=tuple(agents))
        brief = get_task_context("pm", given, budgets=budgets).messages
        text = pack([codec.message_json(message) for message in brief])
        await store.write(partial(save_run_text, run=run, name="brief", text=text))
        return brief

    async def _pm_input(self, specification: str) -> PMInput:
        services = self._services
        sizes = await asyncio.to_thread(_file_sizes, self._checkout)
        # The recording grows during the run, so the PM's context would differ in a replay.
        sizes.pop(services.recording, None)
        return PMInput(
            preamble=templates.system_message("pm", services.own_preambles.read),
            request=self._record.request,
            specification=specification,
            repository=tuple(sorted(sizes.items())),
            files=tuple([await self._load_file(path) for path in READ_FIRST if path in sizes]),
            sandbox=await self._describe_sandbox(tuple(sizes)),
            memory=await find_memory(
                services, self._record.request, before=self._record.created_at
            ),
            form=format_instructions(),
        )

    async def _describe_sandbox(self, paths: Sequence[str]) -> tuple[str, ...]:
        if not self._services.has_sandbox:
            return ()
        return await describe_sandbox(self._services, self._checkout, paths)

    async def _load_file(self, path: str) -> FileView:
        content = await self._services.history.file(self._record.base_tree, path) or b""
        # A large file would displace the rest of the context; the PM can read it by tool.
        if len(content) > READ_FIRST_BYTES:
            return FileView(path=path, size=len(content), text=None, note="large")
        text = self._services.redact(content.decode("utf-8", "replace"))
        return FileView(path=path, size=len(content), text=text)

    def _loop_services(
        self, role: str, transcript: StoredTranscript, tools: Toolset
    ) -> LoopServices:
        services, choice, run = self._services, self._services.choices[role], self._record.id
        timer = WorkTimer(services.clock)
        timer.start()
        limits = ROLES[role]
        return LoopServices(
            model=services.open_model(run, role, transcript),
            tools=tools,
            context=CallContext(
                project=services.project_id, run=run, task=PLAN_TASK, attempt=1, role=role
            ),
            # There is no estimate for planning; time and tokens are its only limits.
            breaker=CircuitBreaker.for_estimate(
                None, seconds=PM_SECONDS, max_tokens=services.attempt_tokens
            ),
            settings=ModelSettings(
                model=choice.model,
                temperature=choice.temperature,
                answer_tokens=choice.max_tokens or limits.answer_tokens,
                working_tokens=choice.max_tokens or limits.working_tokens,
            ),
            elapsed=timer,
        )

    async def _log_proposal(self, proposal: PlanProposal) -> None:
        kind = EventKind.PLAN_REPAIRED if proposal.repairs else EventKind.PLAN_PROPOSED
        errors = sum(finding.severity == "error" for finding in proposal.findings)
        data = {"tasks": len(proposal.plan.tasks), "errors": errors, "repairs": proposal.repairs}
        append = partial(runs.append_event, run=self._record.id, kind=kind, data=data)
        await self._services.store.write(append)


def _no_findings(_: Plan, __: SourceMap) -> Sequence[Finding]:
    return ()


def _file_sizes(directory: Path) -> dict[str, int]:
    """Return the size in bytes of each regular file of a checkout, by its path."""
    tree = DirectoryTree(directory)
    return {path: tree.size(path) for path in tree.walk()}


def find_free_path(project: Path, request: str) -> str:
    """Return a free path `chains/<slug>/chain-output.md`; a number keeps older plans."""
    name = slug(request)
    folders = itertools.chain(
        (f"chains/{name}",), (f"chains/{name}-{number}" for number in itertools.count(2))
    )
    folder = next(one for one in folders if not (project / one).exists())
    return f"{folder}/chain-output.md"
