"""Generated documents agree with the code."""

from pathlib import Path

import pytest

from mimir.domain.task_states import TaskStatus, TransitionActor
from scripts import draw_moves, run_picture

DOCUMENT = Path(__file__).resolve().parents[2] / "docs" / "architecture.md"


def test_the_committed_diagrams_are_the_table():
    document = DOCUMENT.read_text(encoding="utf-8")
    assert draw_moves.draw(document) == document, "Run: python -m scripts.draw_moves"


def test_diagram_shows_the_actors_that_may_fail_a_judged_task():
    assert draw_moves.movers(TaskStatus.QC_EXECUTING, TaskStatus.FAILED) == (
        TransitionActor.MACHINE,
        TransitionActor.SCHEDULING,
    )
    assert "    qc_executing --> failed: machine or scheduling\n" in draw_moves.moves()


def test_the_diagram_shows_no_move_out_of_a_terminal_status():
    assert [line for line in draw_moves.moves().splitlines() if "completed -->" in line] == [
        "    worker_completed --> qc_executing: machine",
        "    worker_completed --> failed: scheduling",
        "    worker_completed --> cancelled: scheduling",
        "    completed --> [*]",
    ]


def test_the_machine_can_be_entered_at_each_of_its_nodes():
    entered = [line for line in draw_moves.machine().splitlines() if "[*] -->" in line]
    assert entered == [
        "    [*] --> worker_executing",
        "    [*] --> worker_completed",
        "    [*] --> qc_executing",
    ]


def test_a_changed_diagram_is_put_between_its_marks_and_nothing_else_changes():
    begin, end = "<!-- moves: drawn by scripts/draw_moves.py -->", "<!-- moves: end -->"
    drawn = draw_moves.put(f"before {begin}old{end} after", "moves", "new")
    assert drawn == f"before {begin}\n```mermaid\nnew\n```\n{end} after"


@pytest.mark.parametrize("text", ["", "<!-- moves: drawn by scripts/draw_moves.py -->"])
def test_a_document_without_marks_is_refused(text: str):
    with pytest.raises(ValueError, match="lacks the marks"):
        draw_moves.put(text, "moves", "new")


def test_picture_of_a_run_is_drawn_from_a_recording_without_a_server():
    drawn = run_picture.picture()
    assert "rejected:" in drawn.replace("&#160;", " ")
    committed = run_picture.PICTURE.read_text(encoding="utf-8")
    assert committed.startswith("<svg")
    for picture in (drawn, committed):
        assert "url(" not in picture.replace("url(#", "")
        assert "@font-face" not in picture
