"""Composition of the services of one project from its settings."""

import os
import socket
from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import replace
from functools import cache, partial
from importlib.metadata import version
from pathlib import Path

from mimir.agents.preambles import templates
from mimir.agents.preambles.agentinator import Agentinator
from mimir.agents.preambles.preamble_cache import PreambleCache
from mimir.agents.preambles.trust import OwnPreambles, describe_ignored
from mimir.attempts.delivered_paths import DeliverableLimits
from mimir.attempts.services import ModelChoice
from mimir.bootstrap import stores
from mimir.bootstrap.agents.child_invocations import ChildInvocations
from mimir.bootstrap.agents.definition_files import open_agent_files, open_preambles
from mimir.bootstrap.agents.detached_worker import start_process
from mimir.bootstrap.agents.programs import (
    SandboxedPrograms,
    find_program,
    list_presets,
    program_environment,
)
from mimir.bootstrap.clock import RandomIds, SystemClock
from mimir.bootstrap.delegation_limits import read_limits
from mimir.bootstrap.git_program import find_git, git_login
from mimir.bootstrap.toolsets import ProjectSandbox, ToolFactory
from mimir.domain.agent import ROLES
from mimir.domain.call_outcome import CallOutcome, Transcript
from mimir.domain.clock import Clock
from mimir.domain.ids import PLAN_TASK, lane_id
from mimir.domain.invocation import PlanAgent, PlanningStep
from mimir.domain.json_value import as_text
from mimir.domain.message import ModelRequest
from mimir.domain.question import QuestionLimits
from mimir.errors import Paused, UsageError
from mimir.llm.endpoints import EndpointRegistry
from mimir.llm.protocol import ChatModel
from mimir.llm.wrappers.journaled_model import JournaledModel
from mimir.orchestrator import project_identity, project_ids
from mimir.orchestrator.delegation.plan_agents import list_plan_agents
from mimir.orchestrator.delegation.task_building import lacks_tools
from mimir.orchestrator.patterns.step_agent import SDD, STEP_AGENTS
from mimir.orchestrator.services import ProjectServices
from mimir.qc.checks.check_execution import CheckExecution
from mimir.qc.checks.check_runner import CheckRunner
from mimir.qc.checks.journaled_checks import JournaledChecks
from mimir.qc.checks.shared_runs import SharedRuns
from mimir.recordings.model_replay.recorded_models import RecordedModels
from mimir.recordings.recorded_history import RecordingHistory
from mimir.registry.catalogue import AgentEntry
from mimir.scheduling.attempt_order import AttemptOrder
from mimir.scheduling.run_services import WorkSignals
from mimir.settings.layers import LoadedSettings
from mimir.settings.model import SandboxSettings, Settings
from mimir.settings.principal import find_principal, find_session, find_spawn_caller
from mimir.store.operations.worker_processes import WorkerProcess
from mimir.store.protocol import GraphStore
from mimir.store.publishing_store import PublishingStore
from mimir.tools.secrets import Redactor
from mimir.workspace.git.history import GitHistory, GitRemote
from mimir.workspace.process_locks import ProcessLocks
from mimir.workspace.sandbox.sandbox import ProcessLimits as SandboxLimits
from mimir.workspace.sandbox.sandbox import Sandbox, SandboxConfig
from mimir.workspace.sandbox.sharing.caches import VARIABLES, UserMachine
from mimir.workspace.sandbox.sharing.outside_environment import find_outside_environment
from mimir.workspace.state_dir import ROOM

MB = 1024 * 1024
_version = cache(version)


async def compose_services(
    project: Path,
    loaded: LoadedSettings,
    store: GraphStore,
    endpoints: EndpointRegistry | RecordedModels,
    process: tuple[ProcessLocks, str],
    redact: Redactor,
    sandbox: Sandbox,
    *,
    history: GitHistory | None = None,
) -> ProjectServices:
    """Compose the services of a process for a project; `history` None: open the project's own."""
    settings, clock, state_dir = loaded.settings, SystemClock(), project / ROOM
    owners, owner = process
    is_replay = history is not None  # a replay creates nothing in the project
    if history is None:
        remote = GitRemote(url=settings.history.remote, environment=git_login(), name=owner)
        history = await RecordingHistory.open(
            project,
            state_dir / "work" / "history.git",
            owner=sandbox.owner,
            environment=find_outside_environment(project, _user_machine()),
            program=find_git(),
            remote=remote,
        )
    project_sandbox = ProjectSandbox(sandbox, history, project)
    project_id = (
        project_ids.find_project_id(project, state_dir)
        if is_replay
        else await project_identity.project_id(project, state_dir, history, store)
    )
    # Leases name no commit, so their writes need not wait for commits to be shared.
    # The order matters: leases keep the plain store.
    leases, store = store, PublishingStore(store, history.share)
    programs = SandboxedPrograms(sandbox, history.view, project, program_environment())
    asking = settings.questions
    question_limits = QuestionLimits(
        open_per_task=asking.max_open_per_task,
        open_per_run=asking.max_open_per_run,
        expire_days=asking.expire_days,
    )
    # Recorded answers and recorded programs belong together.
    serve = None
    if isinstance(endpoints, RecordedModels):
        serve = partial(_serve_program, endpoints, history)
    if isinstance(endpoints, RecordedModels):
        spawn = endpoints.find_spawned
    else:
        spawn = ChildInvocations(project, settings, store, owners).spawn
    tools = ToolFactory(
        project_sandbox, store, project_id, redact, programs, question_limits, spawn, serve
    )
    execution = CheckExecution(
        history=history,
        # Not the sandbox of the tools, which shows git the base: checks see their own tree.
        sandbox=ProjectSandbox(sandbox, history, project),
        room=state_dir / "work" / "checks",
        redact=redact,
        at_once=settings.run.parallel_checks,
    )
    choices = {role: _choice(settings, role) for role in ROLES}
    own = open_preambles(project, loaded)
    return ProjectServices(
        project=project,
        project_id=project_id,
        room=state_dir,
        store=store,
        leases=leases,
        history=history,
        sandbox=sandbox,
        checks=CheckRunner(history, JournaledChecks(SharedRuns(execution), store, owner)),
        models=endpoints,
        tools=tools,
        planner_tools=tools.planner,
        question_limits=question_limits,
        planning_steps=partial(_load_planning_steps, project, loaded),
        plan_agents=partial(_list_agents, project, loaded),
        own_preambles=own,
        agentinator=_agentinator_factory(
            PreambleCache(own, state_dir / "work" / "locks", _shared_preambles(settings)),
            own,
            endpoints,
            choices["agentinator"],
        ),
        clock=clock,
        ids=RandomIds(),
        owner=owner,
        owners=owners,
        process=WorkerProcess(
            owner=owner,
            host=socket.gethostname(),
            number=os.getpid(),
            lock_file=str(owners.path(owner).absolute()),
        ),
        wake=WorkSignals(),
        pace=AttemptOrder(),
        recording="",
        choices=choices,
        lease_seconds=settings.run.lease_seconds,
        attempt_tokens=settings.run.attempt_tokens,
        deliverable_limits=DeliverableLimits(
            files=settings.run.deliverable_files, megabytes=settings.run.deliverable_mb
        ),
        pinned=_pinned_settings(settings),
        prices=settings.prices,
        redact=redact,
        warnings=(*loaded.warnings, *_describe_ignored_templates(own)),
        notices=endpoints.notices,
        check_models=endpoints.check,
        engine_version=_version("mimir"),
        accept_memory=settings.agents.accept,
        sandbox_name=settings.sandbox.backend,
        test_command=settings.checks.test_command,
        link=stores.node_links(settings),
        show_base=tools.show,
        principal=find_principal(),
        session=find_session(),
        spawned_by=find_spawn_caller(),
        limits=read_limits(settings),
        start_process=partial(start_process, project, settings),
    )


async def _serve_program(
    models: RecordedModels, history: GitHistory, request: Mapping[str, object]
) -> CallOutcome:
    """Return the recorded outcome of a program, with its changes made to the files of now."""
    before, outcome = models.program(request)
    now = as_text(request.get("tree"))
    if not outcome.tree or outcome.tree == before:
        return replace(outcome, tree=now)
    problem = "are not in the hidden repository of this directory"
    if all(await history.trees([before, outcome.tree])):
        merged = await history.merge(now, outcome.tree, before)
        if not merged.conflicts:
            return replace(outcome, tree=merged.tree)
        problem = f"conflict with {merged.conflicts[0]!r}"
    raise Paused(
        f"The files that the recorded program left {problem}.",
        reason="recording",
        exit_code=65,
        next_step="Replay it in its project, or decide it again from its record: mimir replay FILE",
    )


def _list_agents(project: Path, loaded: LoadedSettings) -> Sequence[PlanAgent]:
    """Return the agent definitions that a plan may name, and that this machine can run."""
    presets, environment = list_presets(loaded.settings.agents), program_environment()

    def is_available(entry: AgentEntry) -> bool:
        if lacks_tools(entry):
            return False
        if entry.definition.kind != "cli":
            return True
        preset = presets.get(entry.definition.program)
        return preset is not None and find_program(preset, environment) is not None

    return list_plan_agents(open_agent_files(project, loaded).load(), is_available)


def _load_planning_steps(project: Path, loaded: LoadedSettings) -> Mapping[str, PlanningStep]:
    """Return the definitions of the planning steps; one of the user comes first.

    Raises:
        UsageError: A definition cannot be used for a step.
    """
    catalogue = open_agent_files(project, loaded).load()
    steps: dict[str, PlanningStep] = {}
    for name in STEP_AGENTS:
        entry = catalogue.find(f"{SDD}/{name}")
        # A program has no conversation that could continue after an answer.
        if not entry.definition.is_usable or entry.definition.kind == "cli":
            raise UsageError(
                f"The definition {entry.address} cannot be used for a step of planning.",
                next_step=f"See its findings: mimir agents show {entry.address}",
            )
        steps[name] = PlanningStep(
            prompt=entry.definition.prompt, model=entry.model, tools=entry.grant.granted
        )
    return steps


def _describe_ignored_templates(own: OwnPreambles) -> list[str]:
    """Return a warning for each template that is ignored; each run that would use them has it."""
    listed = (one for one in own.list_files() if one.path.startswith(f"{templates.FOLDER}/"))
    return [describe_ignored(one.path) for one in listed if one.state == "ignored"]


def _agentinator_factory(
    library: PreambleCache,
    own: OwnPreambles,
    endpoints: EndpointRegistry | RecordedModels,
    choice: ModelChoice,
) -> Callable[[Callable[[str, int], Awaitable[Transcript]], str], Agentinator]:
    """Return the maker of a run's agentinator, from an opener of transcripts and the run's id."""

    def make(open_transcript: Callable[[str, int], Awaitable[Transcript]], run: str) -> Agentinator:
        async def open_model(number: int) -> ChatModel:
            transcript = await open_transcript("agentinator", number)
            name = lane_id(run, PLAN_TASK, number, "agentinator")
            model = endpoints.for_lane("agentinator", name, choice.model)
            return JournaledModel(model, transcript)

        # A recording without a model of its own still names the model of its preambles.
        recorded = endpoints.preambles_by if isinstance(endpoints, RecordedModels) else ""
        return Agentinator(
            own=own,
            library=library,
            open_model=open_model,
            asking=ModelRequest(
                messages=(),
                model=choice.model or recorded,
                temperature=choice.temperature,
                max_tokens=choice.max_tokens or ROLES["agentinator"].answer_tokens,
            ),
            recorded=endpoints.preamble if isinstance(endpoints, RecordedModels) else None,
        )

    return make


def _shared_preambles(settings: Settings) -> Path | None:
    """Return the user's cache of preambles, if the user shares them between projects."""
    if not settings.agents.share_preambles:
        return None
    cache = os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache"
    return Path(cache, "mimir", "preambles")


def make_sandbox(settings: Settings, state_dir: Path, clock: Clock) -> Sandbox:
    """Return the sandbox that the settings name."""
    own = settings.sandbox
    config = SandboxConfig(
        mode=own.backend,
        share=tuple(own.share),
        read_only=tuple(Path(path) for path in own.read_only),
        environment=tuple(own.env.items()),
        user=_user_machine(),
        limits=SandboxLimits(
            memory_bytes=own.memory_mb * MB, processes=_processes(own), file_bytes=own.file_mb * MB
        ),
    )
    return Sandbox(config, scratch=state_dir / "work", clock=clock)


def _processes(own: SandboxSettings) -> int:
    # Build tools and test runners start threads by the number of cores.
    is_default = "processes" not in own.model_fields_set
    return max(own.processes, 64 * (os.cpu_count() or 1)) if is_default else own.processes


def _user_machine() -> UserMachine:
    return UserMachine(
        home=Path.home(),
        path=tuple(Path(entry) for entry in os.get_exec_path()),
        variables=tuple((name, os.environ[name]) for name in VARIABLES if name in os.environ),
    )


def _choice(settings: Settings, role: str) -> ModelChoice:
    chosen, model = settings.role(role), settings.model_of(role)
    limit = settings.llm.context_tokens
    if isinstance(limit, Mapping):
        limit = limit.get(model) or limit.get(settings.split_endpoint(model)[1])
    return ModelChoice(
        model=model,
        temperature=chosen.temperature,
        max_tokens=chosen.max_tokens,
        context_tokens=limit,
    )


def _pinned_settings(settings: Settings) -> Mapping[str, object]:
    """Return the settings that a run pins: no secret, no endpoint."""
    return settings.model_dump(
        mode="json",
        exclude={
            # Secrets and addresses must not reach the store; they come from today's settings.
            "llm": {
                **dict.fromkeys(("api_key", "headers", "extra_body", "proxy"), True),
                # Absent if there is none, as in runs of older versions.
                "endpoints": {"__all__": {"api_key", "headers", "extra_body"}}
                if settings.llm.endpoints
                else True,
            },
            "sandbox": {"env"},
            # The facts of a plan are stored with it.
            "checks": {"test_command"},
            "store": True,
            "history": True,
            "neo4j": True,
            # The plan and the pinned definition of an invocation record the decisions of these settings.
            "agents": True,
            # The stored questions record the decisions of these settings.
            "questions": True,
            # The age of a memory is that of now.
            "memory": True,
            # A run does not depend on the server that started it.
            "mcp": True,
            # A planning run pins its own pattern.
            "patterns": True,
        },
    )
