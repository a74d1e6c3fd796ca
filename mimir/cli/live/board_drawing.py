"""The board as lines for a terminal: one for the run and one for each task.

No line is longer than the terminal is wide. If there are more tasks than lines, the most urgent tasks are shown, and a last line
counts the others.
"""

from collections import Counter
from collections.abc import Sequence

from rich.cells import cell_len, set_cell_size

from mimir.cli.console import clean_line
from mimir.cli.layout import shorten
from mimir.cli.live.board import RunBoard, TaskBoardRow
from mimir.cli.live.cells import clock, score_of
from mimir.cli.symbols import Symbols
from mimir.domain import money
from mimir.domain.pace import TaskTime, measure_pace
from mimir.domain.task_states import TaskStatus
from mimir.domain.value_class import value_class

NARROWEST = 20
# Titles are dropped first, then scores, then attempt numbers.
_WITH_ATTEMPT, _WITH_SCORE, _WITH_DETAIL = 46, 52, 64
"""Least columns of a line that shows these."""
_OUTSIDE = 3
"""Lines without a task: the run, its note, the count of other tasks."""
_WITH_PACE = 8
"""Least lines of a board that shows the pace of the run."""

_STYLES = {
    TaskStatus.COMPLETED: "green",
    TaskStatus.FAILED: "red",
    TaskStatus.BLOCKED: "magenta",
    TaskStatus.CANCELLED: "magenta",
    TaskStatus.PREPARING_RETRY: "yellow",
    TaskStatus.PENDING: "dim",
}
_URGENCY = (
    TaskStatus.WORKER_EXECUTING,
    TaskStatus.WORKER_COMPLETED,
    TaskStatus.QC_EXECUTING,
    TaskStatus.QC_PASSED,
    TaskStatus.QC_FAILED,
    TaskStatus.PREPARING_RETRY,
    TaskStatus.FAILED,
    TaskStatus.PENDING,
    TaskStatus.COMPLETED,
    TaskStatus.BLOCKED,
    TaskStatus.CANCELLED,
)
"""The order in which tasks are shown if there is room for few."""


@value_class
class DrawnLine:
    """One line of the board."""

    text: str
    style: str = ""
    """A style of rich; empty: plain."""


def draw(
    board: RunBoard,
    *,
    width: int,
    height: int,
    glyphs: Symbols,
    now: float,
    elapsed: float,
    workers: int = 1,
) -> list[DrawnLine]:
    """Draw the board within the width and the height of the terminal.

    `now` is a time on the clock of the board; `elapsed` counts seconds since the view was opened;
    `workers` are the tasks that this process works on at once.
    """
    # A terminal may report fewer columns than a task needs, even zero.
    width = max(NARROWEST, width)
    pace = "" if height < _WITH_PACE else _pace(board, now, workers, width, glyphs)
    room = height - _OUTSIDE - 1 - bool(pace)
    rows, left_out = _select_rows(list(board.rows.values()), max(1, room))
    column = _task_column([row.task for row in rows], width)
    lines = [DrawnLine(text=_fit(_head(board, elapsed, glyphs), width, glyphs), style="bold")]
    lines += [DrawnLine(text=pace, style="dim")] if pace else []
    for index, row in enumerate(rows):
        is_last = index == len(rows) - 1 and not left_out
        branch = glyphs.last if is_last else glyphs.branch
        body = _row(row, width - cell_len(branch), column, glyphs, now)
        lines.append(DrawnLine(text=_fit(branch + body, width, glyphs), style=_style(row)))
    if left_out:
        lines.append(
            DrawnLine(
                text=_fit(glyphs.last + _count_line(left_out, glyphs), width, glyphs),
                style="dim",
            )
        )
    if note := clean_line(board.note):
        lines.append(DrawnLine(text=_fit(note, width, glyphs), style="dim"))
    return lines


def _head(board: RunBoard, elapsed: float, glyphs: Symbols) -> str:
    done = board.count(TaskStatus.COMPLETED)
    running = sum(1 for row in board.rows.values() if row.is_running)
    parts = [
        clock(elapsed),
        f"{done}/{len(board.rows)} done",
        f"{running} running",
        f"{board.calls} calls",
        f"{_short(board.tokens)} tokens",
        *([] if board.cost is None else [f"cost {_short_money(board.cost)}"]),
        clean_line(board.title) or board.run,
    ]
    return f" {glyphs.dot} ".join(parts)


def _pace(board: RunBoard, now: float, workers: int, width: int, glyphs: Symbols) -> str:
    """Return the probable end, the lower bound and the critical path; empty: not yet known."""
    if board.outcome or board.began is None:
        return ""
    running = sum(1 for row in board.rows.values() if row.is_running)
    pace = measure_pace(
        {id: _time_of(row, now) for id, row in board.rows.items()}, max(workers, running)
    )
    if pace is None:
        return ""
    known = f"about {clock(pace.left_seconds)} left {glyphs.dot} lower bound {clock(pace.bound_seconds)}"
    before = f"{known} {glyphs.dot} critical path "
    path = _fit_path(pace.path, width - cell_len(before), glyphs)
    return before + path if path else _fit(known, width, glyphs)


def _fit_path(path: Sequence[str], room: int, glyphs: Symbols) -> str:
    """Return the end of a path that fits, as it decides the end of the run; empty: none does."""
    # No id and its arrow take fewer than four columns.
    ids = [clean_line(id) for id in path[-(max(0, room) // 4 + 1) :]]
    for left_out in range(len(ids)):
        is_whole = not left_out and len(ids) == len(path)
        parts = ids if is_whole else [glyphs.cut, *ids[left_out:]]
        if cell_len(text := f" {glyphs.arrow} ".join(parts)) <= room:
            return text
    return ""


def _time_of(row: TaskBoardRow, now: float) -> TaskTime:
    ends = now if row.until is None else row.until
    return TaskTime(
        dependencies=row.dependencies,
        seconds=0.0 if row.began is None else max(0.0, ends - row.began),
        has_ended=row.until is not None,
    )


def _row(row: TaskBoardRow, width: int, column: int, glyphs: Symbols, now: float) -> str:
    limit = "" if row.limit is None else f"/{row.limit}"
    calls = f"{row.calls}{limit}" if row.attempt else ""
    parts = [_glyph(row, glyphs), _cell(row.task, column, glyphs), f"{row.phase:<9}"]
    if width >= _WITH_ATTEMPT:
        parts.append(f"{f'#{row.attempt}' if row.attempt else '':<3}")
    parts += [f"{calls:>6}", f"{_format_elapsed(row, now):>6}"]
    if width >= _WITH_SCORE:
        parts.append(f"{score_of(row.score):>3}")
    if width >= _WITH_DETAIL:
        parts.append(
            clean_line(row.activity if row.is_running or row.is_asking else row.note)
            or clean_line(row.title)
        )
    return " ".join(parts)


def _format_elapsed(row: TaskBoardRow, now: float) -> str:
    # A task between two attempts has no running time.
    if row.since is None or (row.until is None and not row.is_running):
        return ""
    return clock((now if row.until is None else row.until) - row.since)


def _glyph(row: TaskBoardRow, glyphs: Symbols) -> str:
    if row.is_running:
        return glyphs.running
    match row.status:
        case TaskStatus.COMPLETED:
            return glyphs.passed
        case TaskStatus.FAILED:
            return glyphs.failed
        case TaskStatus.BLOCKED | TaskStatus.CANCELLED:
            return glyphs.blocked
        case _:
            # A task that waits for a retry has an attempt, and may start too.
            return glyphs.ready if row.is_ready or row.attempt else glyphs.waiting


def _style(row: TaskBoardRow) -> str:
    if row.is_asking:
        return "bold"
    return "" if _is_ready(row) else _STYLES.get(row.status, "")


def _is_ready(row: TaskBoardRow) -> bool:
    return row.is_ready and row.status is TaskStatus.PENDING


def _select_rows(
    rows: Sequence[TaskBoardRow], room: int
) -> tuple[list[TaskBoardRow], list[TaskBoardRow]]:
    """Split the rows into those shown, in the order of the plan, and the others."""
    if len(rows) <= room:
        return list(rows), []
    # Among equals the newest end comes first, then the order of the plan.
    ranked = sorted(range(len(rows)), key=lambda i: (_urgency(rows[i]), -(rows[i].until or 0.0), i))
    shown = set(ranked[:room])
    return (
        [row for i, row in enumerate(rows) if i in shown],
        [row for i, row in enumerate(rows) if i not in shown],
    )


def _urgency(row: TaskBoardRow) -> float:
    rank = _URGENCY.index(row.status)
    return rank - 0.5 if _is_ready(row) else rank


def _count_line(rows: Sequence[TaskBoardRow], glyphs: Symbols) -> str:
    counts = Counter(row.phase for row in rows)
    phases = ", ".join(f"{count} {phase}" for phase, count in counts.most_common())
    return f"{glyphs.cut} {len(rows)} more: {phases}"


def _task_column(tasks: Sequence[str], width: int) -> int:
    """Return the width of the column of ids: at most a third of the line."""
    longest = max((cell_len(clean_line(task)) for task in tasks), default=0)
    return min(longest, max(8, width // 3 - 1))


def _cell(text: str, width: int, glyphs: Symbols) -> str:
    # Columns, not characters: some characters are two columns wide.
    clean = clean_line(text)
    if cell_len(clean) <= width:
        return set_cell_size(clean, width)
    return set_cell_size(_fit(clean, width, glyphs), width)


def _fit(text: str, width: int, glyphs: Symbols) -> str:
    # A longer line would be wrapped, and the redrawn board would move up.
    return shorten(text, width, glyphs.cut, measure=cell_len)


def _short(count: int) -> str:
    """Write a number in at most five characters."""
    for size, unit in ((1_000_000, "M"), (1_000, "k")):
        if count >= size:
            return f"{count / size:.1f}{unit}" if count < 100 * size else f"{count // size}{unit}"
    return str(count)


def _short_money(amount: int) -> str:
    """Write a cost with two decimals, or with four below one cent."""
    value = amount / money.UNITS
    return f"{value:.2f}" if value >= 0.01 or not amount else f"{value:.4f}"
