"""What one attempt may use: handed in by the worker that claimed it. An attempt never sees the store."""

from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Literal, Protocol

from mimir.agents.circuit_breaker import Trip
from mimir.agents.context.inputs import RelatedTask
from mimir.agents.context.task_context import PlannerKnowledge
from mimir.attempts.results import Deliverable
from mimir.domain.agent import ROLES
from mimir.domain.call_outcome import CallOutcome
from mimir.domain.clock import Clock
from mimir.domain.event import EventKind
from mimir.domain.evidence import EvidenceRecord
from mimir.domain.graph import TaskGraph
from mimir.domain.message import CallContext, Message
from mimir.domain.plan import Plan, Task
from mimir.domain.task_states import Cause, TaskStatus
from mimir.domain.usage import TokenUsage
from mimir.domain.verdict import Verdict
from mimir.llm.protocol import ChatModel
from mimir.qc.checks.check_runner import CheckRunner
from mimir.qc.evidence import seal
from mimir.qc.evidence.payloads import Body
from mimir.store.protocol import Value
from mimir.tools.protocol import Toolset
from mimir.workspace.git.history import GitHistory
from mimir.workspace.shared_checkouts import SharedCheckouts

Props = Mapping[str, Value]
Stand = Callable[[bool], Awaitable[Path]]
"""Returns the directory in which a call works, made if need be; True: the call may change something there."""


@dataclass(frozen=True, slots=True, kw_only=True)
class PinnedPreamble:
    """A role's preamble, pinned for the run."""

    text: str
    hash: str
    """SHA-256 of the file as it was used."""


@dataclass(frozen=True, slots=True, kw_only=True)
class PinnedRun:
    """What is fixed for a run: pinned when it was created."""

    id: str
    project: str
    """Id of the project in the store."""
    plan: Plan
    base_commit: str
    base_tree: str
    preambles: Mapping[tuple[str, str], PinnedPreamble]
    """By (kind, role): `worker` and `qc`."""
    background: PlannerKnowledge
    """What the PM had and no attempt may see; for the receipts."""
    tasks: Mapping[str, Task]
    """The plan's tasks by id: made once, a plan may have thousands."""
    graph: TaskGraph
    """Of the plan."""
    learned: Mapping[str, float]
    """Worker role → minutes that its tasks took in finished runs, as known when the run was made."""
    attempt_tokens: int = 1_000_000
    """Most tokens that one worker may use in an attempt."""

    def granted_tools(self, task: Task) -> tuple[str, ...]:
        """Return the tools that a task's worker may use: plan ∩ role."""
        tools = ROLES["worker"].tools
        return tuple(t for t in tools if t in task.tools) if task.tools else tools


class OpenLane(Protocol):
    """An open lane, as the journal gives it."""

    on_live: Callable[[str], Awaitable[None]] | None

    tree: str
    """Workspace tree after the last effect that was passed by; empty: none yet."""
    tool_calls: int
    """So far."""
    usage: TokenUsage
    """Of its model calls so far."""

    async def call(
        self,
        kind: Literal["model", "tool"],
        request: Mapping[str, object],
        delta: Mapping[str, object],
        work: Callable[[], Awaitable[CallOutcome]],
        /,
        *,
        effectful: bool,
        reserve: int = 0,
        of_answer: int = 0,
        title: str = "",
    ) -> CallOutcome:
        """Answer from the record, or do it and record it."""
        ...

    async def flush(self) -> None:
        """Commit what is buffered."""
        ...


class LaneOpener(Protocol):
    """Opens a lane of this attempt by the role that speaks in it."""

    async def __call__(self, role: str) -> OpenLane:
        """Open it; under the attempt's fence."""
        ...


class Mover(Protocol):
    """Moves the task's status: one fenced transaction."""

    async def __call__(
        self,
        to: TaskStatus,
        kind: EventKind,
        *,
        task: Props | None = None,
        attempt: Props | None = None,
        data: Mapping[str, object] | None = None,
        records: Sequence[EvidenceRecord] = (),
        artifacts: Mapping[str, str] | None = None,
        judgement: Verdict | None = None,
        waits: bool = False,
    ) -> bool:
        """Write status, phase values, sealed records, artifacts (id suffix → text), a verdict and their event, or nothing.

        With `waits` it is committed with the attempt's next write: for a move after which nothing but thinking comes before that.

        Returns:
            True: nothing but an exception keeps a phase of an attempt from being written.

        Raises:
            LeaseLost: Another holder has the task.
        """
        ...


class LastWords(Protocol):
    """Computes what is written of a task that the machine itself ends."""

    async def __call__(self, work: Deliverable, cause: Cause, why: str, /) -> tuple[Props, Props]:
        """Return the values of phase 9, of the task and of its attempt."""
        ...


class Noter(Protocol):
    """Writes values on the attempt's node under the fence, without moving the status."""

    async def __call__(
        self, kind: EventKind | None, *, attempt: Props, data: Mapping[str, object] | None = None
    ) -> None:
        """Write them, with an event where one is named."""
        ...


class ModelSource(Protocol):
    """Where models come from."""

    def for_lane(self, role: str, lane: str, model: str = "") -> ChatModel:
        """Return the model of a role, bound to a lane; `model` is the plan's recommendation."""
        ...


@dataclass(frozen=True, slots=True, kw_only=True)
class WorkerWorkspace:
    """Where a worker's tools work, and what they may touch."""

    run: str
    task: Task
    where: Path
    """The workspace; made by `stand`."""
    stand: Stand
    base_commit: str
    """What git shows inside."""
    tree: str
    """Of the workspace before the first call."""
    lane: OpenLane
    snapshot: Callable[[], Awaitable[str]]
    artifacts: Sequence[str]
    """Ids that `read_artifact` grants."""
    protected: Sequence[str]
    """Paths that the task's checks stand on."""


class RoleTools(Protocol):
    """Where tools come from; the only one who knows the concrete ones."""

    def worker(self, bench: WorkerWorkspace) -> Toolset:
        """Return the worker's tools over its workspace."""
        ...

    def judge(
        self,
        run: str,
        where: Path,
        lane: OpenLane,
        artifacts: Sequence[str],
        stand: Stand,
    ) -> Toolset:
        """Return QC's tools over a throw-away checkout, which is made with the first call that needs it."""
        ...


@dataclass(frozen=True, slots=True, kw_only=True)
class ModelChoice:
    """How a role asks its model, from the settings pinned for the run."""

    model: str = ""
    """Empty: the endpoint's default."""
    temperature: float | None = 0.0
    max_tokens: int | None = None
    """None: the role's own bound."""


@dataclass(frozen=True, slots=True, kw_only=True)
class AttemptStart:
    """How an attempt starts; stored, and used again when it is resumed."""

    base_commit: str
    base_tree: str
    tree: str
    """What the workspace is filled with: the base, or a merge with the attempt before."""
    first_base_tree: str
    """Base of the task's first attempt: the "before" of its checks."""
    brief: tuple[Message, ...]
    """Without the text of its first message, where `system` names that."""
    model: str
    """Name for the endpoint; empty: its default."""
    temperature: float | None
    max_tokens: int | None
    """None: the role's own bound."""
    preamble_hash: str
    required_fixes: tuple[str, ...] = ()
    """Of the attempt before; QC answers for each."""
    integration_retries: int = 0
    """So far; they add to both numbers of "Attempt 2 of 3"."""
    system: str = ""
    """Only as it is stored: SHA-256 of the text that the first message had; the run keeps it. Empty: the brief is whole."""


@dataclass(frozen=True, slots=True, kw_only=True)
class AttemptServices:
    """One attempt's services and facts."""

    facts: PinnedRun
    task: Task
    number: int
    fence: int
    start: AttemptStart
    where: Path
    """Workspace of this attempt and fence; made for its first effect."""
    lending: SharedCheckouts
    context: CallContext
    history: GitHistory
    checks: CheckRunner
    models: ModelSource
    tools: RoleTools
    clock: Clock
    open_lane: LaneOpener
    move: Mover
    note: Noter
    last_words: LastWords
    records: Sequence[EvidenceRecord]
    """The attempt's chain so far."""
    artifacts: Sequence[str]
    """Ids that `read_artifact` grants."""
    redact: Callable[[str], str]
    qc_choice: ModelChoice
    related: tuple[RelatedTask, ...] = ()
    """Tasks within two edges in the task graph; QC sees them."""
    is_new: bool = True
    """False: an earlier holder has begun this attempt."""
    recorded_trip: Trip | None = None
    """What an earlier holder of this attempt recorded."""

    @property
    def chain(self) -> str:
        """Name of the attempt's evidence chain."""
        return f"{self.facts.id}/{self.task.id}/{self.number}"

    @property
    def total(self) -> int:
        """Attempts that the plan grants; the brief shows it with integration retries added."""
        return self.task.max_retries + 1


Bodies = Sequence[tuple[seal.RecordKind, Body]]


def seal_records(desk: AttemptServices, bodies: Bodies) -> tuple[EvidenceRecord, ...]:
    """Seal bodies behind the chain so far; they count once the move that carries them is committed."""
    last = desk.records[-1] if desk.records else None
    return seal.extend(desk.chain, last, bodies)
