"""Services and facts of one attempt; the process that claimed the task provides them."""

from collections.abc import Awaitable, Callable, Container, Mapping, Sequence
from dataclasses import field
from pathlib import Path
from typing import Protocol

from mimir.agents.circuit_breaker import Trip
from mimir.agents.context.inputs import RelatedTask
from mimir.agents.context.task_context import PlannerKnowledge
from mimir.attempts.delivered_paths import DEFAULT_LIMITS, DeliverableLimits
from mimir.attempts.journal import AttemptJournal
from mimir.attempts.program.journaled_program import JournaledProgram
from mimir.domain.agent import NAMED_TOOLS, ROLES, SKILL_TOOL, SPAWN_TOOL, grant_notes
from mimir.domain.call_outcome import Transcript
from mimir.domain.clock import Clock
from mimir.domain.evidence import EvidenceRecord, RecordKind
from mimir.domain.graph import TaskGraph
from mimir.domain.invocation import PinnedDefinition, PinnedSkill
from mimir.domain.json_value import OMIT_EMPTY
from mimir.domain.message import CallContext, Message
from mimir.domain.plan import Plan, PreambleRole, Task, preamble_roles
from mimir.domain.run import ControlMode
from mimir.domain.value_class import value_class
from mimir.llm.protocol import ChatModel
from mimir.qc.checks.check_runner import CheckRunner
from mimir.qc.evidence import seal
from mimir.qc.evidence.payloads import Body
from mimir.qc.scope.write_scope import WriteRefusal
from mimir.tools.protocol import Toolset
from mimir.workspace.git.history import GitHistory
from mimir.workspace.shared_checkouts import SharedCheckouts

Stand = Callable[[bool], Awaitable[Path]]
"""Returns the directory for a tool call. True: the call may change files."""


@value_class
class PinnedPreamble:
    """Preamble of a role, pinned for the run."""

    text: str
    hash: str
    """SHA-256 of its file."""


@value_class
class PinnedRun:
    """Facts of a run, pinned when it was created."""

    id: str
    project: str
    """Id of the project."""
    plan: Plan
    base_commit: str
    base_tree: str
    preambles: dict[PreambleRole, PinnedPreamble]
    """By (kind, role). It grows: a task starts when its own are pinned."""
    background: PlannerKnowledge
    """Knowledge of the PM that attempts do not see; for the receipts."""
    tasks: Mapping[str, Task]
    """The plan's tasks by id; a plan may have thousands."""
    graph: TaskGraph
    learned: Mapping[str, float]
    """Worker role → minutes of its tasks in earlier runs."""
    attempt_tokens: int = 1_000_000
    """Token limit of a worker in one attempt."""
    deliverable_limits: DeliverableLimits = DEFAULT_LIMITS
    controls: ControlMode = "never"
    """Which attempts the checks are controlled in; "never": also runs of older versions."""
    agents: Mapping[str, PinnedDefinition] = field(default_factory=dict[str, PinnedDefinition])
    """Pinned agent definitions, by worker role."""
    depth: int = 1
    """Of its agents: 1 below the caller of mimir."""
    max_depth: int = 2
    """Longest chain of agents."""
    green_runs: int = 1
    """Green runs that a check needs after the work."""

    def has_preambles(self, task: Task) -> bool:
        """Return whether the preambles of a task's agents are known here."""
        return all(key in self.preambles for key in preamble_roles([task]))

    def granted_tools(self, task: Task) -> tuple[str, ...]:
        """Return the tools that a task's worker may use: those of the plan and of the role."""
        # A program has tools of its own.
        agent = self.agents.get(task.worker_role)
        if agent is not None and agent.program is not None:
            return ()
        # A plan can restrict the tools of the role, never extend them.
        # A task that names only unknown tools gets none, not all.
        named = grant_notes(tuple(t for t in NAMED_TOOLS if t in task.tools))
        own = named if task.tools else ROLES["worker"].tools
        skills = (SKILL_TOOL,) if agent is not None and agent.skills else ()
        return (*own, *skills, *((SPAWN_TOOL,) if self.may_spawn(task) else ()))

    def may_spawn(self, task: Task) -> bool:
        """Return whether the worker of a task may spawn an agent."""
        agent = self.agents.get(task.worker_role)
        is_loop = agent is not None and agent.program is None
        return is_loop and SPAWN_TOOL in task.tools and self.depth < self.max_depth


class ModelSource(Protocol):
    """Source of models; one may wrap another."""

    def for_lane(self, role: str, lane: str, model: str = "") -> ChatModel:
        """Return the model of a role, bound to a transcript; `model` is its name in the plan."""
        ...


@value_class
class WorkerWorkspace:
    """Workspace of a worker's tools, with their permissions."""

    run: str
    task: Task
    where: Path
    """The directory; `stand` creates it."""
    stand: Stand
    base_commit: str
    """Commit that git shows in the workspace."""
    tree: str
    """Tree of the workspace before the first call."""
    lane: Transcript
    """Records the tool calls."""
    snapshot: Callable[[], Awaitable[str]]
    artifacts: Sequence[str]
    """Ids that `read_artifact` grants."""
    protected: Sequence[str]
    """Protected files of the task's checks."""
    agent: str
    """Address of its definition. Empty: it is one of the roles of the plan."""
    depth: int
    """1 below the caller of mimir."""
    may_spawn: bool
    skills: Sequence[PinnedSkill]
    """Skills that `read_skill` grants."""
    refuse_write: Callable[[str, Container[str]], WriteRefusal | None]
    """Returns the rule that refuses a path; the second argument has the absent paths."""


class RoleTools(Protocol):
    """Factory of tools; its implementation alone has access to the concrete ones."""

    def worker(self, bench: WorkerWorkspace, /) -> Toolset:
        """Return the worker's tools over its workspace."""
        ...

    def program(self, bench: WorkerWorkspace, /) -> JournaledProgram:
        """Return the program of a worker over its workspace."""
        ...

    def judge(
        self,
        run: str,
        where: Path,
        lane: Transcript,
        artifacts: Sequence[str],
        stand: Stand,
        base_commit: str,
        /,
    ) -> Toolset:
        """Return QC's tools over a temporary checkout; the first call creates it.

        Git shows the checkout as changes of `base_commit`, the base of the attempt.
        """
        ...


@value_class
class ModelChoice:
    """Model settings of a role, pinned for the run."""

    model: str = ""
    """Empty: the endpoint's default."""
    temperature: float | None = 0.0
    max_tokens: int | None = None
    """None: the limit of the role."""
    context_tokens: int | None = None
    """Most tokens of prompt and answer of the model; None: not set."""


@value_class
class AttemptStart:
    """Start of an attempt; stored, and used again when it resumes."""

    base_commit: str
    base_tree: str
    tree: str
    """First tree of the workspace: the base, or a merge with the attempt before."""
    first_base_tree: str
    """Base of the task's first attempt: its checks run on it "before"."""
    brief: tuple[Message, ...]
    """Without the text of its first message if `system` names that text."""
    model: str
    """Empty: the endpoint's default."""
    temperature: float | None
    max_tokens: int | None
    """None: the limit of the role."""
    preamble_hash: str
    required_fixes: tuple[str, ...] = ()
    """Required fixes of the attempt before; QC answers for each."""
    integration_retries: int = 0
    """They add to both numbers of "Attempt 2 of 3"."""
    conflicts: tuple[str, ...] = ()
    """Paths of `tree` on which the engine left a conflict; the attempt must settle each."""
    earlier_tree: str = ""
    """Tree of the attempt before, which was merged. Empty: none was."""
    system: str = ""
    """SHA-256 of the first message's text, which the run keeps. Empty: the brief is whole."""
    products: tuple[str, ...] = field(default=(), metadata=OMIT_EMPTY)
    """New files that the run's checks write before the work."""


@value_class
class AttemptServices:
    """Services and facts of one attempt."""

    facts: PinnedRun
    task: Task
    number: int
    fence: int
    start: AttemptStart
    directory: Path
    """Workspace of this attempt and fence; created for its first effect."""
    checkouts: SharedCheckouts
    """Read-only workspaces until then."""
    context: CallContext
    history: GitHistory
    checks: CheckRunner
    models: ModelSource
    tools: RoleTools
    clock: Clock
    journal: AttemptJournal
    records: Sequence[EvidenceRecord]
    """The attempt's evidence chain so far."""
    artifacts: Sequence[str]
    """Ids that `read_artifact` grants."""
    redact: Callable[[str], str]
    qc_choice: ModelChoice
    related: tuple[RelatedTask, ...] = ()
    """Tasks within two edges of the task graph, for QC."""
    is_new: bool = True
    """False: an earlier holder of the lease began this attempt."""
    recorded_trip: Trip | None = None
    """Trip that an earlier holder recorded."""

    @property
    def agent(self) -> PinnedDefinition | None:
        """The invoked agent; None: the worker is one of the plan's roles."""
        return self.facts.agents.get(self.task.worker_role)

    @property
    def chain(self) -> str:
        """Name of the evidence chain."""
        return f"{self.facts.id}/{self.task.id}/{self.number}"

    @property
    def total(self) -> int:
        """Attempts of the plan, without integration retries."""
        return self.task.max_retries + 1


Bodies = Sequence[tuple[RecordKind, Body]]


def seal_records(services: AttemptServices, bodies: Bodies) -> tuple[EvidenceRecord, ...]:
    """Seal the next records of the chain; they count when their transition is committed."""
    # Records of a deferred transition are in the chain before they are committed.
    last = services.records[-1] if services.records else None
    return seal.extend(services.chain, last, bodies)
