"""Records of runs and of the project that they belong to."""

from collections.abc import Collection
from typing import Annotated, Literal

from mimir.domain.json_value import as_member, as_object
from mimir.domain.run import CONTROL_MODES, ControlMode, is_todo_list
from mimir.domain.task_states import RunStatus
from mimir.domain.value_class import value_class
from mimir.store.records.record_codec import ABSENT, PackedJson, Property, StoredRecord
from mimir.store.schema import NodeLabel


@value_class
class RunOverviewRecord(StoredRecord, label=NodeLabel.RUN, is_partial=True):
    """Projection of a run for lists: no plan, no settings."""

    id: str
    status: RunStatus
    kind: Literal["plan", "execute", "agent"]
    name: str = ""
    project_id: str = ""
    number: Annotated[int, Property(name="seq")] = 0
    """Place among the project's runs, 1-based."""
    created_at: str = ""
    """ISO-8601 UTC."""
    finished_at: str = ""
    """ISO-8601 UTC. Empty: the run has not ended."""
    title: str = ""
    """Title of the plan. Empty: the plan has none, or the run makes one."""
    plan_path: str = ""
    """Path in the project. Empty: the plan has no file."""
    task_count: int = 0
    calls_used: int = 0
    """Model calls."""
    tokens_used: int = 0
    cost_used: int = 0
    """Units of money."""
    prices: PackedJson = ABSENT
    """Model → prices of input and output tokens. Absent: no price is known."""
    coordinator: str = ""
    """Process that holds the coordinator lease. Empty: no process."""
    coordinator_until: str = ""
    """End of that lease, ISO-8601 UTC."""

    refines: str = ""
    """Invocation whose result this one improves. Empty: none."""
    agent: str = ""
    """Address of the invoked definition. Empty: the run is no invocation."""
    assurance: str = ""
    """Level of an invocation that has ended."""
    parent_run: str = ""
    spawned_by: str = ""
    """Address of the agent of `parent_run` that spawned it. Empty: it has no parent."""
    spawn_key: str = ""
    """Of the call that spawned it."""
    principal: str = ""
    """Client of the server that asked for the run. Empty: the user typed it."""
    session_id: str = ""
    depth: int = 0
    """Number of ancestor runs."""
    queued_at: str = ""
    """Time since which it waits for its session, ISO-8601 UTC. Empty: its work has begun."""
    dequeued_at: str = ""
    """Time at which a process was started for it. Empty: it waits."""
    is_read_only: bool = False
    """True: an invocation that nothing decides; it is answered, never completed."""

    @property
    def is_queued(self) -> bool:
        """Whether it waits for its session, or for the process that was started for it."""
        return self.status is RunStatus.RUNNING and bool(self.queued_at) and not self.coordinator

    @property
    def is_todo_list(self) -> bool:
        """Whether clients work on it, and agents never do."""
        return is_todo_list(self.kind, self.plan_path, is_read_only=self.is_read_only)

    @property
    def display_title(self) -> str:
        """Title for users: the plan's, otherwise the run's name."""
        return self.title or self.name

    def shown_status(self, now: str, dead: Collection[str]) -> RunStatus:
        """Return the status that users see: a running run without a coordinator is paused."""
        # No process serves a todo list.
        if self.is_todo_list:
            return self.status
        holds = self.coordinator and self.coordinator not in dead and self.coordinator_until > now
        # A process that died could not write that the run is paused.
        return RunStatus.PAUSED if self.status is RunStatus.RUNNING and not holds else self.status


@value_class
class RunRecord(RunOverviewRecord, is_partial=False):
    """Stored state of one run."""

    request: str = ""
    goal: str = ""
    plan: PackedJson = ABSENT
    """Pinned plan. Absent: the run has none, or it was loaded without its plan."""
    only: tuple[str, ...] = ()
    """Tasks that the user named. Empty: all."""
    settings: PackedJson = ABSENT
    """Pinned settings, a JSON object without secrets."""
    models: PackedJson = ABSENT
    """Role → model that replaces the pinned one after a pause, a JSON object."""
    learned: PackedJson = ABSENT
    """Role → expected minutes, a JSON object."""
    engine_version: str = ""
    sandbox: str = ""
    """Name of the sandbox back-end."""
    base_commit: str = ""
    base_tree: str = ""
    head: str = ""
    """Commit at the end of the run branch."""
    head_tree: str = ""
    user_head: str = ""
    """Commit of the user's branch at the start. Empty: the branch has none."""
    is_exchanged: bool = False
    """True: processes exchange commits through a git remote."""
    ignore_rules: str = ""
    """Ignore rules of the project at the start."""
    from_run: str = ""
    """Run whose completed tasks are reused. Empty: none."""
    plan_run: str = ""
    """Planning run that made the plan. Empty: the user wrote it."""

    max_calls: int | None = None
    """None: no limit."""
    max_tokens: int | None = None
    """None: no limit."""
    max_cost: int | None = None
    """Units of money. None: no limit."""
    unpriced: tuple[str, ...] = ()
    """Models that were called without a price."""
    time_limit_seconds: float | None = None
    """None: no limit."""
    seconds_used: float = 0.0
    """Time of processes that paused the run."""
    claims_empty: int = 0
    """Claims that found no free task."""
    last_event: Annotated[int, Property(name="eventSeq")] = 0
    """Number of the newest event. 0: none."""

    integrator: str = ""
    """Holder `process/task` of the integration lease. Empty: no process."""
    integrator_until: str = ""
    """End of that lease, ISO-8601 UTC."""

    pause_reason: str = ""
    """Empty: the run is not paused."""
    pause_message: str = ""
    outcome: str = ""
    """Outcome that the final gate decided. Empty: it was not passed."""
    seal: str = ""
    """Hash over the gate and all evidence chains. Empty: not sealed."""
    final_commit: str = ""
    """Empty: no task changed a file."""
    result_branch: str = ""
    """Branch of the result. Empty: it has the usual name."""
    gate_red: PackedJson = ABSENT
    """Red checks of the final gate in words, a JSON array."""
    broken_checks: tuple[str, ...] = ()
    """Broken checks of completed tasks in words."""
    gate_length: int | None = None
    """Evidence records of the final gate. None: it was not passed."""
    gate_hash: str = ""
    """Hash of the last of them."""
    applied_at: str = ""
    """ISO-8601. Empty: the result was not applied."""
    apply: PackedJson = ABSENT
    """Steps of an application, a JSON array. Absent: none was begun."""

    @property
    def controls(self) -> ControlMode | Literal[""]:
        """In which attempts it controls passed checks. Empty: a run of an older version."""
        own = as_object(self.settings.mapping().get("checks"))
        return as_member(own.get("controls"), CONTROL_MODES) or ""

    @property
    def green_runs(self) -> int:
        """Green runs that a check needs after the work."""
        own = as_object(self.settings.mapping().get("checks"))
        wanted = own.get("repeat")
        return wanted if isinstance(wanted, int) else 1

    @property
    def has_merged(self) -> bool:
        """Whether a task changed the run branch."""
        return self.head != self.base_commit


@value_class
class ProjectRecord(StoredRecord, label=NodeLabel.PROJECT):
    """Stored state of one project."""

    id: str
    name: str = ""
    run_count: int = 0
    """Runs that were created in the project."""


@value_class
class NoteRecord(StoredRecord, label=NodeLabel.MEMORY, is_partial=True):
    """Note in the memory of a project."""

    id: str
    name: str = ""
    kind: str = ""
    """note, learning, lesson, run or handoff."""
    text: str = ""
    run_id: str = ""
    """Run that taught it. Empty: a user wrote it."""
    created_at: str = ""
    """ISO-8601 UTC."""
