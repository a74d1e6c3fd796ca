"""What the verbs work with; put together by `app`, which alone knows the concrete things."""

from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Protocol

from mimir.agents.preambles.agentinator import Agentinator
from mimir.attempts.services import ModelChoice, ModelSource, RoleTools
from mimir.domain.call_outcome import Transcript
from mimir.domain.clock import Clock, IdFactory
from mimir.domain.money import ModelPrice
from mimir.qc.checks.check_runner import CheckRunner
from mimir.reporting.render.sections import Link
from mimir.scheduling.attempt_order import AttemptOrder
from mimir.scheduling.run_services import WorkSignals
from mimir.store.operations.worker_processes import WorkerProcess
from mimir.store.protocol import GraphStore
from mimir.tools.protocol import Toolset
from mimir.workspace.git.history import GitHistory
from mimir.workspace.process_locks import ProcessLocks
from mimir.workspace.sandbox.sandbox import Sandbox


class PlannerToolFactory(Protocol):
    """Where the PM's tools come from: read-only files of a checkout, and the memory."""

    def __call__(self, where: Path, lane: Transcript) -> Toolset:
        """Return them, journaled in `lane`."""
        ...


@dataclass(frozen=True, slots=True, kw_only=True)
class ProjectServices:
    """One process's services for one project."""

    project: Path
    project_id: str
    room: Path
    """`.mimir` of the project."""
    store: GraphStore
    leases: GraphStore
    """The same store, for writes that name no commit."""
    history: GitHistory
    sandbox: Sandbox
    checks: CheckRunner
    models: ModelSource
    tools: RoleTools
    planner_tools: PlannerToolFactory
    agentinator: Callable[[Callable[[str, int], Awaitable[Transcript]], str], Agentinator]
    """Makes one for a run, given how a lane is opened by role and number, and the run's id."""
    clock: Clock
    ids: IdFactory
    owner: str
    owners: ProcessLocks
    process: WorkerProcess
    """How this process is registered where it serves a run; `owner` is its name."""
    wake: WorkSignals
    choices: Mapping[str, ModelChoice]
    """By role."""
    lease_seconds: float
    attempt_tokens: int
    pinned: Mapping[str, object]
    """Settings that a run pins; no secrets."""
    prices: Mapping[str, ModelPrice]
    """Of models, by name; a run pins them."""
    redact: Callable[[str], str]
    warnings: Sequence[str]
    """Of the settings."""
    check_models: Callable[[], None]
    """Raises `ConfigurationError` if the models cannot be asked as things are."""
    notices: Callable[[], list[str]]
    """What was learned of the models' endpoints since the last call."""
    engine_version: str
    sandbox_name: str
    link: Link | None
    """Makes links to the store's nodes; None: it has no page that shows them."""
    pace: AttemptOrder
    """In which attempts begin and land."""
    recording: str
    """File that is recorded into or replayed from, as the person calls it; empty: none. It grows, and is no part of what is planned on."""
    show_base: Callable[[str, str], None]
    """Names the commit that git shows inside checks, and the project whose memory agents see."""

    @property
    def work_room(self) -> Path:
        """Attempts' workspaces."""
        return self.room / "work"
