import io
from contextlib import nullcontext
from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st
from rich.cells import cell_len

from mimir.cli.console import Console, clean
from mimir.cli.layout import shorten
from mimir.cli.live import views
from mimir.cli.live.board import RunBoard, TaskBoardRow
from mimir.cli.live.board_drawing import DrawnLine, draw
from mimir.cli.symbols import ASCII, UNICODE, Symbols, for_encoding
from mimir.domain.task_states import TaskStatus

ROWS = st.lists(
    st.builds(
        TaskBoardRow,
        task=st.text(min_size=1, max_size=30),
        title=st.text(max_size=80),
        status=st.sampled_from(TaskStatus),
        is_ready=st.booleans(),
        attempt=st.integers(0, 12),
        activity=st.text(max_size=80),
        note=st.text(max_size=80),
        calls=st.integers(0, 400),
        limit=st.one_of(st.none(), st.integers(1, 400)),
        since=st.one_of(st.none(), st.floats(0, 1e6)),
        until=st.one_of(st.none(), st.floats(0, 1e6)),
        score=st.one_of(st.none(), st.floats(0, 100)),
    ),
    max_size=30,
)


def board(rows: list[TaskBoardRow], **more: str) -> RunBoard:
    return RunBoard(run="run-1", title="Limiter", rows={row.task: row for row in rows}, **more)  # pyright: ignore[reportArgumentType]


def drawn(
    rows: list[TaskBoardRow],
    *,
    width: int = 100,
    height: int = 40,
    glyphs: Symbols = UNICODE,
    note: str = "",
) -> list[DrawnLine]:
    picture = board(rows, note=note)
    return draw(picture, width=width, height=height, glyphs=glyphs, now=100.0, elapsed=42.0)


WORKING = TaskBoardRow(
    task="task-1.1",
    title="Token bucket",
    status=TaskStatus.WORKER_EXECUTING,
    attempt=2,
    activity="run pytest -q",
    calls=5,
    limit=12,
    since=69.0,
)
DONE = TaskBoardRow(
    task="task-0",
    title="Look",
    status=TaskStatus.COMPLETED,
    attempt=1,
    score=100,
    since=60,
    until=64,
)


@given(ROWS, st.integers(20, 130), st.integers(4, 60), st.sampled_from([ASCII, UNICODE]), st.text())
def test_no_line_is_wider_and_no_picture_higher_than_the_terminal(
    rows: list[TaskBoardRow], width: int, height: int, glyphs: Symbols, note: str
):
    lines = drawn(rows, width=width, height=height, glyphs=glyphs, note=note)
    assert max(cell_len(line.text) for line in lines) <= width
    assert len(lines) <= max(height, 4)
    assert all(clean(line.text) == line.text for line in lines)
    assert all(len(line.text.splitlines()) == 1 for line in lines)


def test_a_wide_terminal_shows_everything():
    lines = drawn([DONE, WORKING], note="final gate passed")
    assert [line.text.rstrip() for line in lines] == [
        "0:42 · 1/2 done · 1 running · 0 calls · 0 tokens · Limiter",
        "├─✔ task-0   completed #1       0   0:04 100 Look",
        "└─● task-1.1 working   #2    5/12   0:31     run pytest -q",
        "final gate passed",
    ]


def test_board_fits_in_forty_columns():
    lines = drawn([DONE, WORKING], width=40)
    assert [line.text.rstrip() for line in lines] == [
        "0:42 · 1/2 done · 1 running · 0 calls…",
        "├─✔ task-0   completed      0   0:04",
        "└─● task-1.1 working     5/12   0:31",
    ]


def test_a_terminal_without_the_signs_gets_others():
    lines = drawn([DONE, WORKING], glyphs=ASCII)
    assert all(line.text.isascii() for line in lines)
    assert for_encoding("ISO-8859-1") is ASCII
    assert for_encoding("UTF-8") is for_encoding("utf8") is UNICODE
    assert for_encoding(None) is ASCII


def test_long_names_are_cut_with_a_mark():
    (line,) = drawn([TaskBoardRow(task="setup-the-database-and-everything")], width=40)[1:]
    assert "…" in line.text
    assert "waiting" in line.text


def test_more_tasks_than_lines_keep_those_that_something_happens_to():
    rows = [
        TaskBoardRow(task=f"task-{n}", status=TaskStatus.COMPLETED, until=float(n))
        for n in range(50)
    ]
    rows += [TaskBoardRow(task="busy", status=TaskStatus.QC_EXECUTING), TaskBoardRow(task="idle")]
    lines = drawn(rows, height=9)
    assert len(lines) <= 9
    text = "\n".join(line.text for line in lines)
    assert "busy" in text
    assert "task-49" in text
    assert lines[-1].text.startswith("└─… 47 more: 47 completed")


def test_the_clock_of_a_running_task_ticks():
    early = draw(board([WORKING]), width=80, height=9, glyphs=UNICODE, now=100, elapsed=1)
    late = draw(board([WORKING]), width=80, height=9, glyphs=UNICODE, now=101, elapsed=2)
    assert [a.text == b.text for a, b in zip(early, late, strict=True)] == [False, False]


def paced(width: int, glyphs: Symbols = UNICODE) -> list[str]:
    """Return the board of a run with a chain of three tasks and one beside it."""
    first = replace(DONE, began=40.0, until=64.0)
    rows = [
        first,
        replace(WORKING, began=64.0, dependencies=("task-0",)),
        TaskBoardRow(task="write-the-documentation", dependencies=("task-1.1",)),
        TaskBoardRow(task="beside"),
    ]
    picture = replace(board(rows), began=40.0, cost=1_230_000_000_000)
    drawn = draw(picture, width=width, height=20, glyphs=glyphs, now=70.0, elapsed=30.0, workers=2)
    return [line.text for line in drawn]


def test_the_view_shows_cost_probable_end_lower_bound_and_critical_path():
    head, pace, *_ = paced(120)
    # One task took 24 s, so one of 6 s and two others are taken to need 18 s and twice 24 s.
    assert "cost 1.23" in head
    assert pace == (
        "about 0:42 left · lower bound 1:12 · "
        "critical path task-0 → task-1.1 → write-the-documentation"
    )


def test_a_narrow_view_leaves_out_the_beginning_of_the_path_and_cuts_no_id():
    assert paced(90)[1].endswith("critical path … → task-1.1 → write-the-documentation")
    assert paced(80, ASCII)[1].endswith("critical path ~ > write-the-documentation")
    assert paced(60)[1] == "about 0:42 left · lower bound 1:12"


def test_before_a_task_has_ended_and_after_the_end_there_is_no_pace():
    rows = [replace(WORKING, began=64.0), TaskBoardRow(task="task-2")]
    assert len(draw(board(rows), width=80, height=20, glyphs=UNICODE, now=70, elapsed=1)) == 3
    ended = replace(board([replace(DONE, began=1.0)]), began=0.0, outcome="completed")
    assert "lower bound" not in str(
        draw(ended, width=80, height=20, glyphs=UNICODE, now=70, elapsed=1)
    )


@given(st.text(max_size=60), st.integers(1, 40))
def test_a_shortened_text_fits_and_ends_between_words(text: str, width: int):
    short = shorten(text, width, "…", measure=cell_len)
    assert cell_len(short) <= width
    if short != text:
        assert short.endswith("…")
        assert text.startswith(short[:-1])


def test_the_clock_of_a_wait_names_the_current_step(monkeypatch: pytest.MonkeyPatch):
    frames: list[views.Frame] = []
    monkeypatch.setattr(views, "can_draw", lambda console: True)
    monkeypatch.setattr(views, "PATIENCE_SECONDS", -1.0)
    monkeypatch.setattr(
        views, "redraw_while", lambda console, frame, **_: nullcontext(frames.append(frame))
    )
    console = Console(io.StringIO(), io.StringIO())

    with views.show_wait_clock(console, "Planning", lambda: "running make\x1b[2J", color=False):
        (line,) = frames[0](80, 24)

    assert line.text.startswith(f"Planning 0:00 {console.glyphs.dot} running make")
    assert "\x1b" not in line.text
