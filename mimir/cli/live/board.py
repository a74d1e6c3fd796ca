"""The board of a run: what its events add up to, as a person who watches wants to know it. Pure.

`fold` takes events in order, in any portions; the same events give the same board. An event that is new to this version changes
nothing but what it says of a status.
"""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace
from typing import cast

from mimir.domain.clock import moment
from mimir.domain.event import Event, EventKind
from mimir.domain.task_states import EXECUTING, TERMINAL, TaskStatus

WORDS: Mapping[TaskStatus, str] = {
    TaskStatus.PENDING: "waiting",
    TaskStatus.WORKER_EXECUTING: "working",
    TaskStatus.WORKER_COMPLETED: "checking",
    TaskStatus.QC_EXECUTING: "judging",
    TaskStatus.QC_PASSED: "merging",
    TaskStatus.QC_FAILED: "rejected",
    TaskStatus.PREPARING_RETRY: "retrying",
    TaskStatus.COMPLETED: "completed",
    TaskStatus.FAILED: "failed",
    TaskStatus.BLOCKED: "blocked",
    TaskStatus.CANCELLED: "cancelled",
}
"""What a person is told of a status; no word is longer than nine letters."""


@dataclass(frozen=True, slots=True, kw_only=True)
class TaskBoardRow:
    """One task."""

    task: str
    title: str = ""
    status: TaskStatus = TaskStatus.PENDING
    is_ready: bool = False
    """True: it may begin, and waits for a worker only."""
    attempt: int = 0
    """Number of the latest attempt; 0: none began."""
    activity: str = ""
    """What the agent did last: a tool's title."""
    calls: int = 0
    """Tool calls of the latest attempt's worker."""
    limit: int | None = None
    """Most tool calls of an attempt; None: not known."""
    since: float | None = None
    """When the latest attempt began, in seconds of the events' clock."""
    until: float | None = None
    """When the task ended."""
    score: float | None = None
    """0–100, of the latest verdict."""
    note: str = ""
    """Why it failed, is tried again or is blocked."""

    @property
    def phase(self) -> str:
        """The word for where it stands."""
        return (
            "ready" if self.is_ready and self.status is TaskStatus.PENDING else WORDS[self.status]
        )

    @property
    def is_running(self) -> bool:
        """True while an attempt is under way."""
        return self.status in EXECUTING

    @property
    def has_ended(self) -> bool:
        """True if nothing follows."""
        return self.status in TERMINAL


@dataclass(frozen=True, slots=True, kw_only=True)
class RunBoard:
    """A run."""

    run: str = ""
    title: str = ""
    rows: Mapping[str, TaskBoardRow] = field(default_factory=dict[str, TaskBoardRow])
    """By task id, in the plan's order."""
    seq: int = 0
    """Number of the last event."""
    began: float | None = None
    """Time of the first event, in seconds."""
    now: float = 0.0
    """Time of the last event, in seconds."""
    calls: int = 0
    """Model calls of the run."""
    tokens: int = 0
    note: str = ""
    """What the run itself does or did last."""
    outcome: str = ""
    """Of the run's last end or pause; empty: it goes on."""

    def count(self, *statuses: TaskStatus) -> int:
        """Count the tasks that stand at one of these."""
        return sum(1 for row in self.rows.values() if row.status in statuses)


def begin(status: Mapping[str, object]) -> RunBoard:
    """Make the board of a run before its events: names and limits, from the JSON of `mimir status`."""
    rows: dict[str, TaskBoardRow] = {}
    for item in items(status.get("tasks")):
        task, limit = text(item.get("id")), item.get("limit")
        rows[task] = TaskBoardRow(
            task=task,
            title=text(item.get("title")),
            limit=limit if isinstance(limit, int) else None,
        )
    return RunBoard(run=text(status.get("run")), title=text(status.get("title")), rows=rows)


def fold(board: RunBoard, events: Iterable[Event]) -> RunBoard:
    """Return the board after these events too."""
    rows = dict(board.rows)
    for event in events:
        board = _run(board, event)
        if event.kind is EventKind.RUN_CREATED:
            for task in texts(event.data.get("tasks")):
                rows.setdefault(task, TaskBoardRow(task=task))
        if event.task:
            row = rows.get(event.task, TaskBoardRow(task=event.task))
            rows[event.task] = _task(row, event, board.now)
    return replace(board, rows=rows)


def text(value: object) -> str:
    """Return a text, or nothing where none is."""
    return value if isinstance(value, str) else ""


def number(value: object) -> float | None:
    """Return a number that may be written as a fraction (`"200/3"`), or None where none is."""
    if value is None or isinstance(value, bool):
        return None
    if isinstance(value, int | float):
        return float(value)
    parts = text(value).split("/")
    try:
        above, below = float(parts[0]), float(parts[1]) if len(parts) == 2 else 1.0
        return above / below
    except (ValueError, ZeroDivisionError):
        return None


def _run(board: RunBoard, event: Event) -> RunBoard:
    """Take in what an event says of the run."""
    at = _seconds(event, board.now)
    data = event.data
    board = replace(
        board,
        run=board.run or event.run,
        seq=event.seq,
        now=at,
        began=at if board.began is None else board.began,
    )
    match event.kind:
        case EventKind.RUN_CREATED:
            return replace(board, title=board.title or text(data.get("name")))
        case EventKind.MODEL_CALLED:
            calls, tokens = number(data.get("calls")) or 0, number(data.get("tokens")) or 0
            return replace(
                board, calls=max(board.calls, int(calls)), tokens=board.tokens + int(tokens)
            )
        case EventKind.RUN_RESUMED:
            return replace(board, outcome="", note="resumed")
        case EventKind.RUN_PAUSED | EventKind.RUN_FINISHED:
            return replace(
                board,
                outcome=text(data.get("outcome")),
                note=text(data.get("message")) or board.note,
            )
        case EventKind.PREAMBLE_MADE:
            return replace(board, note=f"preamble: {text(data.get('role'))}")
        case EventKind.GATE_PASSED | EventKind.GATE_FAILED:
            word = "passed" if event.kind is EventKind.GATE_PASSED else "failed"
            return replace(board, note=f"final gate {word}")
        case EventKind.WARNING:
            return replace(board, note=f"warning: {text(data.get('message'))}")
        case _:
            return board


def _task(row: TaskBoardRow, event: Event, at: float) -> TaskBoardRow:
    """Take in what an event says of its task."""
    row = _moved(row, event, at)
    data = event.data
    match event.kind:
        case EventKind.TASK_READY:
            return replace(row, is_ready=True)
        case EventKind.ATTEMPT_STARTED:
            return replace(
                row, attempt=event.attempt, since=at, calls=0, activity="", score=None, note=""
            )
        case EventKind.LEASE_TAKEN:
            return replace(row, attempt=event.attempt, since=at)
        case EventKind.TOOL_CALLED | EventKind.TOOL_DENIED:
            return _called(row, event)
        case EventKind.BREAKER_TRIPPED:
            return replace(row, activity=f"stopped: {text(data.get('detail'))}")
        case EventKind.WORK_ANSWERED:
            limit = data.get("limit")
            return replace(row, activity="", limit=limit if isinstance(limit, int) else row.limit)
        case EventKind.CHECK_RUN:
            return replace(row, activity=f"check {text(data.get('check'))}")
        case EventKind.VERDICT_GIVEN | EventKind.TASK_COMPLETED:
            score = number(data.get("score"))
            return replace(row, score=row.score if score is None else score, activity="")
        case EventKind.TASK_RETRIED | EventKind.TASK_FAILED | EventKind.TASK_BLOCKED:
            return replace(row, activity="", note=_why(data))
        case _:
            return row


def _moved(row: TaskBoardRow, event: Event, at: float) -> TaskBoardRow:
    """Take in a change of status; whatever the event is called, `to` says where the task stands now."""
    to = event.data.get("to")
    if not event.task or to not in WORDS:
        return row
    status = TaskStatus(cast("str", to))
    return replace(row, status=status, until=at if status in TERMINAL else None)


def _called(row: TaskBoardRow, event: Event) -> TaskBoardRow:
    data = event.data
    tool = text(data.get("title")) or text(data.get("tool"))
    if event.kind is EventKind.TOOL_DENIED:
        tool = f"denied: {tool}"
    calls = number(data.get("calls"))
    if data.get("role") != "worker" or calls is None:
        return replace(row, activity=tool)
    return replace(row, activity=tool, calls=max(row.calls, int(calls)))


def _why(data: Mapping[str, object]) -> str:
    """Return a few words: the cause, and the first issue where there is one."""
    cause = text(data.get("cause")) or text(data.get("reason")) or text(data.get("because"))
    issues = texts(data.get("issues"))
    return f"{cause}: {issues[0]}" if issues and cause else cause


def _seconds(event: Event, before: float) -> float:
    try:
        return moment(event.at).timestamp()
    except ValueError:
        return before


def entries(value: object) -> list[object]:
    """Return what a JSON list holds, or nothing where there is no list."""
    return list(cast("list[object]", value)) if isinstance(value, list | tuple) else []


def texts(value: object) -> list[str]:
    """Return the texts of a JSON list."""
    return [item for item in entries(value) if isinstance(item, str)]


def items(value: object) -> list[Mapping[str, object]]:
    """Return the objects of a JSON list that hold anything."""
    return [found for item in entries(value) if (found := members(item))]


def members(value: object) -> Mapping[str, object]:
    """Return a JSON object, or an empty one where there is none."""
    return cast("Mapping[str, object]", value) if isinstance(value, dict) else {}
