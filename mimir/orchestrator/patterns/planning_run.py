"""One planning run: the conversations of its steps, from the request to the plan."""

import asyncio
import shutil
from collections.abc import Mapping, Sequence
from dataclasses import replace
from functools import partial

from mimir.agents.agent_loop import LoopServices, ModelSettings, converse
from mimir.agents.circuit_breaker import CircuitBreaker
from mimir.agents.context.inputs import ContextBudgets
from mimir.agents.context.task_context import get_task_context
from mimir.agents.preambles import templates
from mimir.agents.stopwatch import WorkTimer
from mimir.domain.actor import CURRENT_ACTOR, Actor
from mimir.domain.agent import NAMED_TOOLS, ROLES
from mimir.domain.event import EventKind
from mimir.domain.finding import Finding
from mimir.domain.ids import PLAN_TASK
from mimir.domain.invocation import PLAN_AGENTS_TEXT, PlanAgent, PlanningStep
from mimir.domain.message import CallContext, Message
from mimir.domain.plan import Plan
from mimir.domain.requirement import REQUIREMENTS_TEXT
from mimir.domain.task_states import RunStatus
from mimir.domain.value_class import value_class
from mimir.llm import codec
from mimir.orchestrator import preflight
from mimir.orchestrator.delegation.plan_agents import check_plan_agents
from mimir.orchestrator.patterns.choose import (
    CHOICE_REQUEST,
    PatternChoice,
    choose_pattern,
    read_facts,
    read_options,
)
from mimir.orchestrator.patterns.planning_steps import PlanningSteps
from mimir.orchestrator.patterns.pm_input import PlanMaterial, read_pm_input
from mimir.orchestrator.patterns.step_agent import (
    HEAD,
    SDD,
    STEP_LIMITS,
    STEPS_TEXT,
    TASK_AGENTS,
    read_steps,
)
from mimir.orchestrator.services import ProjectServices
from mimir.planning import ecko, parser
from mimir.planning.format.diagnostics import SourceMap
from mimir.planning.lint.plan_check import check
from mimir.planning.lint.requirement_rules import check_requirements
from mimir.planning.planner import PlannerServices, PlanProposal, propose
from mimir.planning.renderer import render
from mimir.store.operations import runs
from mimir.store.operations.record_loading import find_json, save_run_text
from mimir.store.protocol import ReadOps, WriteOps
from mimir.store.records.artifact_records import JsonArtifactRecord
from mimir.store.records.record_codec import PackedJson
from mimir.store.records.run_records import RunRecord
from mimir.store.schema import pack
from mimir.store.transcripts.stored_transcript import StoredTranscript
from mimir.tools.protocol import NO_TOOLS, Toolset
from mimir.workspace.state_dir import write_state_file

CHOICE = 2
"""Number of the transcript in which Ecko decides the facts of a request."""
PM_SECONDS = 3600.0


@value_class
class PlanningResult:
    """Plan that a planning run wrote."""

    run: str
    path: str
    """Path of the plan, relative to the project."""
    plan: Plan
    findings: tuple[Finding, ...]
    pattern: PatternChoice
    exit_code: int
    """0, or 65: saved with findings that prevent its execution."""

    @property
    def outcome(self) -> RunStatus:
        """Outcome of the planning run."""
        return RunStatus.FAILED if self.exit_code else RunStatus.COMPLETED


@value_class
class _PlanAuthor:
    """The PM with its brief."""

    brief: Sequence[Message]
    planner: PlannerServices
    transcript: StoredTranscript

    def check_text(self, text: str) -> Sequence[Finding]:
        """Return the findings of a plan as the user may have edited it."""
        parsed = parser.parse_plan(text)
        own = self.planner
        return (
            *check(parsed, tools=own.tools, exists=own.exists),
            *own.check_more(parsed.plan, parsed.places),
        )


class PlanningRun:
    """One planning run: its conversations with the agents of its pattern."""

    def __init__(self, services: ProjectServices, record: RunRecord) -> None:
        self._services = services
        self._record = record
        self._checkout = services.work_room / record.id / "pm"
        self._options = read_options(record.settings.mapping())
        self._proposals = 0

    async def run(self) -> PlanningResult:
        """Hold the conversations of the pattern and write the plan.

        Raises:
            Waiting: The user must answer.
        """
        services, record = self._services, self._record
        await services.history.checkout(record.base_tree, self._checkout)
        try:
            return await self._plan()
        finally:
            shutil.rmtree(self._checkout.parent, ignore_errors=True)

    async def _plan(self) -> PlanningResult:
        choice = await self._choose()
        match choice.pattern:
            case "direct":
                with_ecko = self._record.settings.mapping().get("ecko") is True
                found = PlanMaterial(text=await self._specify() if with_ecko else "")
            case "ask":
                steps = await self._open_steps(choice)
                found = PlanMaterial(text=await steps.summarise(), is_approved=True)
            case "sdd":
                return await self._plan_specified(choice)
        proposal = await self._propose(await self._open_pm(found))
        # The findings name lines of the PM's own text, so a plan with errors is saved as it was written.
        text = render(proposal.plan) if proposal.acceptable else proposal.text
        write_state_file(self._services.project, self._record.plan_path, text.encode())
        return await self._finish(choice, proposal, text)

    async def _plan_specified(self, choice: PatternChoice) -> PlanningResult:
        """Plan along a specification; the user approves it, and then the plan."""
        steps = await self._open_steps(choice)
        spec = await steps.specify(await steps.clarify())
        # The runs of the plan report by requirement, long after the file was changed.
        rows = PackedJson.pack(spec.requirements).text
        save = partial(save_run_text, run=self._record.id, name=REQUIREMENTS_TEXT, text=rows)
        await self._services.store.write(save)
        strategy = await steps.find_strategy(spec.text)
        pm = await self._open_pm(
            PlanMaterial(
                text=f"{spec.text}\n# Strategy\n\n{strategy}",
                is_approved=True,
                planner=steps.definitions["planner"],
                requirements=spec.requirements,
            )
        )
        proposal = await self._propose(pm)
        if not proposal.acceptable:
            path = self._record.plan_path
            write_state_file(self._services.project, path, proposal.text.encode())
            return await self._finish(choice, proposal, proposal.text)

        # The oracle first: a plan along the rejected strategy would be rejected again.
        async def revise(words: str) -> str:
            nonlocal proposal
            again = await steps.revise_strategy(words)
            text = f"{words}\n\nThe strategy was revised:\n\n{again}\n\nAnswer with the whole new plan in the same format, and nothing else."
            brief = (*proposal.messages, Message(role="user", text=text))
            proposal = await self._propose(replace(pm, brief=brief))
            return render(proposal.plan) if proposal.acceptable else proposal.text

        def check(text: str) -> tuple[str, ...]:
            found = pm.check_text(text)
            return tuple(f"{f.code}: {f.message}" for f in found if f.severity == "error")

        stop = await steps.open_stop(2, "plan", self._record.plan_path, "the plan may be executed.")
        approved = await stop.approve(render(proposal.plan), revise, check)
        # The user may have edited it, so the approved text is read again.
        plan = parser.parse_plan(approved).plan
        final = replace(
            proposal,
            text=approved,
            plan=replace(plan, request=proposal.plan.request),
            findings=tuple(pm.check_text(approved)),
        )
        return await self._finish(choice, final, approved)

    async def _finish(
        self, choice: PatternChoice, proposal: PlanProposal, text: str
    ) -> PlanningResult:
        """Store the plan as it was saved: the file belongs to the user now."""
        run = self._record.id
        await self._services.store.write(partial(save_run_text, run=run, name="made", text=text))
        return PlanningResult(
            run=run,
            path=self._record.plan_path,
            plan=proposal.plan,
            findings=proposal.findings,
            exit_code=0 if proposal.acceptable else 65,
            pattern=choice,
        )

    async def _choose(self) -> PatternChoice:
        """Return the pattern; of `auto`, one call of Ecko decides."""
        if self._options.name != "auto":
            return PatternChoice(pattern=self._options.name)
        system = templates.system_message("ecko", self._services.own_preambles.read)
        transcript = await self._services.open_transcript(self._record.id, "ecko", CHOICE)
        loop = self._loop_services("ecko", transcript, NO_TOOLS, number=CHOICE)
        request = self._record.request
        text = f"{HEAD}\n\nThe request:\n\n{request}\n\n{CHOICE_REQUEST}"
        talk = await converse(
            (Message(role="system", text=system), Message(role="user", text=text)), loop
        )
        facts = read_facts(talk.answer.text, request)
        choice = choose_pattern(facts, is_terminal=self._options.is_terminal)
        # A pipe cannot ask, so the user must read which assumptions were made.
        if choice.warning:
            warn = partial(_warn_once, run=self._record.id, message=choice.warning)
            await self._services.store.write(warn)
        return choice

    async def _open_steps(self, choice: PatternChoice) -> PlanningSteps:
        return PlanningSteps(
            services=self._services,
            record=self._record,
            checkout=self._checkout,
            definitions=await self._load_steps(),
            limits=self._options,
            loop=self._loop_services,
            noted=choice.reason,
        )

    async def _load_steps(self) -> Mapping[str, PlanningStep]:
        """Return the definitions of the steps, looked up once."""
        run, store = self._record.id, self._services.store
        saved = await store.read(partial(find_json, run=run, name=STEPS_TEXT))
        if saved:
            return read_steps(saved.value.mapping())
        # Pinned: a definition may change before a resume, and a replay has none of the user.
        steps = await asyncio.to_thread(self._services.planning_steps)
        text = PackedJson.pack(steps).text
        await store.write(partial(save_run_text, run=run, name=STEPS_TEXT, text=text))
        return steps

    async def _specify(self) -> str:
        system = templates.system_message("ecko", self._services.own_preambles.read)
        transcript = await self._services.open_transcript(self._record.id, "ecko")
        loop = self._loop_services("ecko", transcript, NO_TOOLS)
        text = await ecko.specify(self._record.request, system, loop)
        await transcript.flush()
        return text

    async def _open_pm(self, found: PlanMaterial) -> "_PlanAuthor":
        services, record = self._services, self._record
        transcript = await services.open_transcript(record.id, "pm")
        known = frozenset(await services.history.paths(record.base_tree, None))
        agents = await self._load_agents(is_specified=bool(found.requirements))
        brief = await self._load_brief(found, agents or ())

        def check_more(plan: Plan, places: SourceMap) -> Sequence[Finding]:
            named = () if agents is None else check_plan_agents(plan, places, agents)
            return (*named, *check_requirements(plan, found.requirements))

        step = found.planner
        tools = services.planner_tools(self._checkout, transcript, None, step.tools)
        planner = PlannerServices(
            services=self._loop_services("pm", transcript, tools, step.model),
            tools=NAMED_TOOLS,
            exists=lambda path: path in known,
            try_checks=self._try_checks,
            check_more=check_more,
            on_proposal=self._log_proposal,
        )
        return _PlanAuthor(brief=brief, planner=planner, transcript=transcript)

    async def _propose(self, pm: "_PlanAuthor") -> PlanProposal:
        proposal = await propose(self._record.request, pm.brief, pm.planner)
        await pm.transcript.flush()
        return proposal

    async def _try_checks(self, plan: Plan, places: SourceMap) -> Sequence[Finding]:
        """Run the checks of a proposed plan on the base; runs of earlier versions did not."""
        record, services = self._record, self._services
        if not preflight.is_wanted(record):
            return ()
        services.show_base(record.base_commit, record.project_id)
        CURRENT_ACTOR.set(Actor(run=record.id))
        trial = await preflight.try_checks(services, plan, record.base_tree)
        return preflight.locate_findings(trial.findings, plan, places)

    async def _load_agents(self, *, is_specified: bool) -> tuple[PlanAgent, ...] | None:
        """Return the agents that the plan may name, looked up once; None: an older version asked."""
        run, store = self._record.id, self._services.store

        def look(reads: ReadOps) -> tuple[JsonArtifactRecord | None, bool]:
            saved = find_json(reads, run, PLAN_AGENTS_TEXT)
            return saved, find_json(reads, run, "brief") is not None

        saved, is_told = await store.read(look)
        if saved or is_told:
            return saved.value.decode(tuple[PlanAgent, ...]) if saved else None
        found = await asyncio.to_thread(self._services.plan_agents)
        # The agents of the steps do no tasks; two work on the tasks of an approved plan.
        named = TASK_AGENTS if is_specified else ()
        agents = tuple(
            one for one in found if one.address in named or not one.address.startswith(f"{SDD}/")
        )
        text = PackedJson.pack(agents).text
        await store.write(partial(save_run_text, run=run, name=PLAN_AGENTS_TEXT, text=text))
        return agents

    async def _load_brief(
        self, found: PlanMaterial, agents: Sequence[PlanAgent]
    ) -> tuple[Message, ...]:
        """Return the PM's brief, made and stored once: the memory may change before a resume."""
        run, store = self._record.id, self._services.store
        saved = await store.read(partial(find_json, run=run, name="brief"))
        if saved:
            messages = saved.value.decode(tuple[object, ...])
            return tuple(codec.read_message(message) for message in messages)
        budgets = ContextBudgets.within(self._services.choices["pm"].context_tokens)
        given = replace(
            await read_pm_input(self._services, self._record, self._checkout, found),
            agents=tuple(agents),
        )
        brief = get_task_context("pm", given, budgets=budgets).messages
        text = pack([codec.message_json(message) for message in brief])
        await store.write(partial(save_run_text, run=run, name="brief", text=text))
        return brief

    def _loop_services(
        self,
        role: str,
        transcript: StoredTranscript,
        tools: Toolset,
        model: str = "",
        *,
        number: int = 1,
    ) -> LoopServices:
        services, run = self._services, self._record.id
        choice = services.choice_of(role)
        # A model that the user named for the whole planning precedes that of a definition.
        named = self._record.settings.mapping().get("model")
        model = choice.model if named else model or choice.model
        timer = WorkTimer(services.clock)
        timer.start()
        limits = ROLES.get(role, STEP_LIMITS)
        return LoopServices(
            model=services.open_model(run, role, transcript, number, model=model),
            tools=tools,
            context=CallContext(
                project=services.project_id, run=run, task=PLAN_TASK, attempt=1, role=role
            ),
            # There is no estimate for planning; time and tokens are its only limits.
            breaker=CircuitBreaker.for_estimate(
                None, seconds=PM_SECONDS, max_tokens=services.attempt_tokens
            ),
            settings=ModelSettings(
                model=model,
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
        self._proposals += 1
        # A run of `direct` logs again after a resume, as its recordings of older versions did.
        known = 0 if self._options.name == "direct" else self._proposals
        log = partial(_log_proposal, run=self._record.id, kind=kind, data=data, number=known)
        await self._services.store.write(log)


def _log_proposal(
    ops: WriteOps, run: str, kind: EventKind, data: Mapping[str, object], number: int
) -> None:
    """Write the event of a proposal, unless there are `number` of them already; 0: always."""
    kinds = (EventKind.PLAN_PROPOSED, EventKind.PLAN_REPAIRED)
    if not number or len(runs.events(ops, run, kinds=kinds)) < number:
        runs.append_event(ops, run, kind, data=data)


def _warn_once(ops: WriteOps, run: str, message: str) -> None:
    """Write a warning; a resumed run has it already."""
    found = runs.events(ops, run, kinds=(EventKind.WARNING,))
    if all(event.data.get("message") != message for event in found):
        runs.append_event(ops, run, EventKind.WARNING, data={"message": message})
