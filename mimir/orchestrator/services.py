"""Services of one process for one project, composed by bootstrap."""

from collections.abc import Awaitable, Callable, Collection, Generator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import field
from pathlib import Path

from mimir.agents.preambles.agentinator import Agentinator
from mimir.agents.preambles.trust import OwnPreambles
from mimir.attempts.delivered_paths import DeliverableLimits
from mimir.attempts.services import ModelChoice, ModelSource, RoleTools
from mimir.domain.call_outcome import Transcript
from mimir.domain.clock import Clock, IdFactory
from mimir.domain.ids import PLAN_TASK, lane_id
from mimir.domain.invocation import DelegationLimits, PlanAgent, PlanningStep, SpawnCaller
from mimir.domain.money import ModelPrice
from mimir.domain.plan import Plan
from mimir.domain.question import QuestionLimits
from mimir.domain.run import RunBudget
from mimir.domain.value_class import value_class
from mimir.llm.protocol import ChatModel
from mimir.llm.wrappers.journaled_model import JournaledModel
from mimir.qc.checks.check_runner import CheckRunner
from mimir.reporting.render.sections import Link
from mimir.scheduling.attempt_order import AttemptOrder
from mimir.scheduling.run_services import WorkSignals
from mimir.store.operations.runs import NewRun, RunKind
from mimir.store.operations.worker_processes import WorkerProcess
from mimir.store.protocol import GraphStore
from mimir.store.sealing.run_facts import SEAL_FORM
from mimir.store.transcripts.stored_transcript import StoredTranscript
from mimir.tools.protocol import Toolset
from mimir.tools.wrappers.quota import CallQuota
from mimir.workspace.git.base_capture import BaseCommit
from mimir.workspace.git.history import GitHistory
from mimir.workspace.process_locks import ProcessLocks
from mimir.workspace.sandbox.sandbox import Sandbox

PlannerToolFactory = Callable[[Path, Transcript, CallQuota | None, Collection[str] | None], Toolset]
"""Makes the tools of the PM, or of a step with a quota, from a checkout and a transcript.

The last argument has the tools of a definition, which only narrow them; None: there is no definition.
"""


class PlanningProgress:
    """Current step of a planning run, for a screen; nothing records it."""

    def __init__(self) -> None:
        self.step = ""

    @contextmanager
    def show(self, step: str) -> Generator[None]:
        """Show a step while the block runs."""
        self.step = step
        try:
            yield
        finally:
            self.step = ""


@value_class
class ProjectServices:
    """One process's services for one project."""

    project: Path
    project_id: str
    room: Path
    """`.mimir` of the project."""
    store: GraphStore
    leases: GraphStore
    """The same store, for writes that name no commit and need not wait for one."""
    history: GitHistory
    sandbox: Sandbox
    checks: CheckRunner
    models: ModelSource
    tools: RoleTools
    planner_tools: PlannerToolFactory
    question_limits: QuestionLimits
    planning_steps: Callable[[], Mapping[str, PlanningStep]]
    """Returns the definitions of the planning steps now, by name."""
    plan_agents: Callable[[], Sequence[PlanAgent]]
    """Returns the agent definitions that a plan may name now."""
    own_preambles: OwnPreambles
    agentinator: Callable[[Callable[[str, int], Awaitable[Transcript]], str], Agentinator]
    """Makes a run's agentinator from an opener of transcripts (role, number) and its id."""
    clock: Clock
    ids: IdFactory
    owner: str
    owners: ProcessLocks
    process: WorkerProcess
    """Registration of this process in the runs that it serves; `owner` is its name."""
    wake: WorkSignals
    choices: Mapping[str, ModelChoice]
    """By role."""
    lease_seconds: float
    attempt_tokens: int
    deliverable_limits: DeliverableLimits
    pinned: Mapping[str, object]
    """Settings that a run pins; no secrets."""
    prices: Mapping[str, ModelPrice]
    """By model; a run pins them."""
    redact: Callable[[str], str]
    warnings: Sequence[str]
    """Of the settings."""
    check_models: Callable[[], None]
    """Raises `ConfigurationError` if the settings do not allow a model call."""
    notices: Callable[[], list[str]]
    """Returns the facts about endpoints that are new since its last call."""
    engine_version: str
    sandbox_name: str
    link: Link | None
    """Makes links to the store's nodes; None: the store has no page for them."""
    pace: AttemptOrder
    """Order in which attempts start and merge."""
    recording: str
    """Recording that is written or replayed; empty: none. It grows, so planning ignores it."""
    tries_checks: bool = True
    """Whether new runs try their checks first. False: a replay of a recording that did not."""
    has_sandbox: bool = True
    """False: a replay, which runs no command."""
    session: str = ""
    """Session whose limits hold for invocations. Empty: none."""
    spawned_by: SpawnCaller | None = None
    """Agent that spawns the invocations of this process. None: no agent does."""
    limits: DelegationLimits
    start_process: Callable[[str, str], object]
    """Starts a process that serves a run, with a model; empty: that of the settings."""
    principal: str = ""
    """Client of the server for which this process works. Empty: the user typed the command."""
    accept_memory: str = "primary"
    """The setting `agents.accept`: the principal that decides about proposed memories."""
    test_command: str = ""
    """Command line of the project's tests. Empty: it is found."""
    show_base: Callable[[str, str], None]
    """Sets the commit that git shows inside checks, and the project whose memory agents see."""
    progress: PlanningProgress = field(default_factory=PlanningProgress)

    @property
    def work_room(self) -> Path:
        """Directory of the attempts' workspaces."""
        return self.room / "work"

    def new_run(
        self,
        run: str,
        base: BaseCommit,
        limits: RunBudget,
        *,
        kind: RunKind,
        name: str,
        request: str,
        plan_path: str,
        plan: Plan | None = None,
        settings: Mapping[str, object] | None = None,
        only: tuple[str, ...] = (),
    ) -> NewRun:
        """Return a run to be created from `base`; it pins `settings`, or those in force."""
        return NewRun(
            id=run,
            kind=kind,
            project_id=self.project_id,
            project_name=self.project.name,
            name=name,
            request=request,
            plan=plan,
            plan_path=plan_path,
            settings={**(settings or self.pinned), "preflight": self.tries_checks},
            engine_version=self.engine_version,
            base_commit=base.commit,
            base_tree=base.tree,
            max_calls=limits.max_calls,
            max_tokens=limits.max_tokens,
            time_limit_seconds=limits.seconds,
            max_cost=limits.max_cost,
            prices=self.prices,
            only=only,
            principal=self.principal,
            seal_form=SEAL_FORM,
        )

    def choice_of(self, role: str) -> ModelChoice:
        """Return the model of a role; the agents of planning steps have that of the PM."""
        return self.choices.get(role) or self.choices["pm"]

    async def open_transcript(self, run: str, role: str, number: int = 1) -> StoredTranscript:
        """Open a transcript of an agent of the run itself; no lease protects it."""
        return await StoredTranscript.open(
            self.store, run=run, task=PLAN_TASK, attempt=number, role=role, fence=None
        )

    def open_model(
        self,
        run: str,
        role: str,
        transcript: StoredTranscript,
        number: int = 1,
        *,
        model: str = "",
    ) -> ChatModel:
        """Return a model for an agent of the run itself, journaled in its transcript.

        Without a name it is the model of the role.
        """
        name = lane_id(run, PLAN_TASK, number, role)
        found = self.models.for_lane(role, name, model or self.choice_of(role).model)
        return JournaledModel(found, transcript)
