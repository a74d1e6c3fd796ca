"""The board of a run: the state that its events add up to.

`fold` takes events in order, in portions of any size; the same events give the same board.
"""

from collections.abc import Iterable, Mapping
from dataclasses import field, replace
from decimal import Decimal, InvalidOperation

from mimir.cli.live.cells import ASKING, WORDS, number
from mimir.domain import money
from mimir.domain.clock import moment
from mimir.domain.event import Event, EventKind
from mimir.domain.json_value import as_objects, as_text, as_texts, as_whole_number
from mimir.domain.task_states import ANSWERED, EXECUTING, TERMINAL, TaskStatus
from mimir.domain.value_class import value_class


@value_class
class TaskBoardRow:
    """The state of one task."""

    task: str
    title: str = ""
    status: TaskStatus = TaskStatus.PENDING
    is_ready: bool = False
    """True: it may start, and waits for a free agent only."""
    attempt: int = 0
    """Number of the latest attempt; 0: none."""
    activity: str = ""
    """The agent's last action: the title of a tool call."""
    calls: int = 0
    """Tool calls of the latest attempt's worker."""
    limit: int | None = None
    """Limit of tool calls of an attempt; None: unknown."""
    since: float | None = None
    """Start of the latest attempt, in seconds of the events' clock."""
    until: float | None = None
    """End of the task, in the same seconds."""
    began: float | None = None
    """Start of its first attempt, in the same seconds."""
    dependencies: tuple[str, ...] = ()
    score: float | None = None
    """Of the latest verdict, 0 to 100."""
    is_read_only: bool = False
    """True: nothing decides the task."""
    note: str = ""
    """Reason of the failure, the retry or the blocking."""
    question: str = ""
    """Question that it waits for; empty: none."""

    @property
    def phase(self) -> str:
        """The displayed word of the status."""
        is_waiting = self.is_ready and self.status is TaskStatus.PENDING
        if self.is_read_only and self.status is TaskStatus.COMPLETED:
            return ANSWERED
        if self.is_asking:
            return ASKING
        return "ready" if is_waiting else WORDS[self.status]

    @property
    def is_asking(self) -> bool:
        """True while it waits for the user's answer."""
        return bool(self.question) and self.status in EXECUTING

    @property
    def is_running(self) -> bool:
        """True during an attempt."""
        # A task that waits for the user uses no agent.
        return self.status in EXECUTING and not self.question


@value_class
class RunBoard:
    """The state of a run and of its tasks."""

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
    cost: int | None = None
    """Of the model calls, in units of money. None: no call had a price."""
    note: str = ""
    """The last action of the run itself."""
    is_read_only: bool = False
    """True: an invocation that nothing decides."""
    outcome: str = ""
    """Outcome of the run; empty while it is running."""

    def count(self, *statuses: TaskStatus) -> int:
        """Count the tasks with one of these statuses."""
        return sum(1 for row in self.rows.values() if row.status in statuses)


def begin(status: Mapping[str, object]) -> RunBoard:
    """Make the board of a run without events: ids, titles and limits of `status --json`."""
    rows: dict[str, TaskBoardRow] = {}
    is_read_only = status.get("read_only") is True
    for item in as_objects(status.get("tasks")):
        task, title = as_text(item.get("id")), as_text(item.get("title"))
        limit = as_whole_number(item.get("limit"))
        needs = tuple(as_texts(item.get("dependencies")))
        rows[task] = TaskBoardRow(
            task=task, title=title, limit=limit, dependencies=needs, is_read_only=is_read_only
        )
    return RunBoard(
        run=as_text(status.get("run")),
        title=as_text(status.get("title")),
        rows=rows,
        is_read_only=is_read_only,
    )


def fold(board: RunBoard, events: Iterable[Event]) -> RunBoard:
    """Return the board after these events."""
    rows = dict(board.rows)
    for event in events:
        # The run first: its clock is the time of the task's change.
        board = _apply_to_run(board, event)
        if event.kind is EventKind.RUN_CREATED:
            # A task of the status keeps its title and limit.
            for task in as_texts(event.data.get("tasks")):
                rows.setdefault(task, TaskBoardRow(task=task))
        if event.task:
            row = rows.get(event.task, TaskBoardRow(task=event.task))
            is_question = event.kind in _QUESTIONS
            rows[event.task] = (
                _apply_question(row, event)
                if is_question
                else _apply_to_task(row, event, board.now)
            )
    return replace(board, rows=rows)


def event_seconds(event: Event, default: float = 0.0) -> float:
    """Return the time of an event in seconds; `default` if it is not a time."""
    try:
        return moment(event.at).timestamp()
    except ValueError:
        return default


_PREAMBLE = "preamble: "
_QUESTIONS = (EventKind.QUESTION_ASKED, EventKind.QUESTION_CLOSED)


def _apply_to_run(board: RunBoard, event: Event) -> RunBoard:
    at = event_seconds(event, board.now)
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
            return replace(board, title=board.title or as_text(data.get("name")))
        case EventKind.MODEL_CALLED:
            # `calls` counts for the run, `tokens` for this call only.
            calls, tokens = number(data.get("calls")) or 0, number(data.get("tokens")) or 0
            return replace(
                board,
                calls=max(board.calls, int(calls)),
                tokens=board.tokens + int(tokens),
                cost=_add_cost(board.cost, as_text(data.get("cost"))),
            )
        case EventKind.RUN_RESUMED:
            return replace(board, outcome="", note="resumed")
        case EventKind.RUN_PAUSED | EventKind.RUN_FINISHED:
            return replace(
                board,
                outcome=as_text(data.get("outcome")),
                note=as_text(data.get("message")) or board.note,
            )
        case EventKind.PREAMBLE_MADE if not any(row.began for row in board.rows.values()):
            return replace(board, note=f"{_PREAMBLE}{as_text(data.get('role'))}")
        case EventKind.ATTEMPT_STARTED if board.note.startswith(_PREAMBLE):
            return replace(board, note="")
        case EventKind.TASK_RETRIED:
            # The next attempt clears the note of the task.
            return replace(board, note=f"rejected: {event.task} #{event.attempt}: {_cause(data)}")
        case EventKind.GATE_PASSED | EventKind.GATE_FAILED:
            word = "passed" if event.kind is EventKind.GATE_PASSED else "failed"
            return replace(board, note=f"final gate {word}")
        case EventKind.WARNING:
            return replace(board, note=f"warning: {as_text(data.get('message'))}")
        case _:
            return board


def _add_cost(known: int | None, cost: str) -> int | None:
    try:
        return (known or 0) + money.units(Decimal(cost)) if cost else known
    except (InvalidOperation, ValueError):
        return known


def _apply_to_task(row: TaskBoardRow, event: Event, at: float) -> TaskBoardRow:
    row = _apply_status_change(row, event, at)
    data = event.data
    match event.kind:
        case EventKind.TASK_READY:
            return replace(row, is_ready=True)
        case EventKind.ATTEMPT_STARTED:
            return replace(
                row,
                attempt=event.attempt,
                since=at,
                began=at if row.began is None else row.began,
                calls=0,
                activity="",
                score=None,
                note="",
            )
        case EventKind.LEASE_TAKEN:
            # Another process continues the attempt, so its counts stay.
            return replace(row, attempt=event.attempt, since=at)
        case EventKind.TOOL_CALLED | EventKind.TOOL_DENIED:
            return _apply_call(row, event)
        case EventKind.BREAKER_TRIPPED:
            return replace(row, activity=f"stopped: {as_text(data.get('detail'))}")
        case EventKind.WORK_ANSWERED:
            limit = as_whole_number(data.get("limit"))
            return replace(row, activity="", limit=row.limit if limit is None else limit)
        case EventKind.CHECK_RUN:
            return replace(row, activity=f"check {as_text(data.get('check'))}")
        case EventKind.VERDICT_GIVEN | EventKind.TASK_COMPLETED:
            score = number(data.get("score"))
            known = None if row.is_read_only else score
            return replace(row, score=row.score if known is None else known, activity="")
        case EventKind.TASK_RETRIED | EventKind.TASK_FAILED | EventKind.TASK_BLOCKED:
            return replace(row, activity="", note=_cause(data))
        case _:
            return row


def _apply_status_change(row: TaskBoardRow, event: Event, at: float) -> TaskBoardRow:
    # Every event that changes a status has `to`. An event of a newer version changes only that.
    to = as_text(event.data.get("to"))
    if not event.task or to not in WORDS:
        return row
    status = TaskStatus(to)
    return replace(row, status=status, until=at if status in TERMINAL else None)


def _apply_question(row: TaskBoardRow, event: Event) -> TaskBoardRow:
    # A question that does not wait changes nothing that is shown.
    if event.data.get("blocking") is not True:
        return row
    if event.kind is EventKind.QUESTION_CLOSED:
        return replace(row, question="", activity="")
    id, title = as_text(event.data.get("question")), as_text(event.data.get("title"))
    return replace(row, question=id, activity=f"{id} {title}")


def _apply_call(row: TaskBoardRow, event: Event) -> TaskBoardRow:
    data = event.data
    tool = as_text(data.get("title")) or as_text(data.get("tool"))
    if event.kind is EventKind.TOOL_DENIED:
        tool = f"denied: {tool}"
    calls = number(data.get("calls"))
    # The limit applies to the worker alone, so calls of QC are not counted.
    if data.get("role") != "worker" or calls is None:
        return replace(row, activity=tool)
    # Reads of one message run concurrently, so their events may be out of order.
    return replace(row, activity=tool, calls=max(row.calls, int(calls)))


def _cause(data: Mapping[str, object]) -> str:
    named = as_text(data.get("cause")) or as_text(data.get("reason"))
    cause = named.replace("_", " ") or as_text(data.get("because"))
    issues = as_texts(data.get("issues"))
    return f"{cause}: {issues[0]}" if issues and cause else cause
