"""The ledger as text: a written ledger is read back, and each edit has its effect."""

from dataclasses import replace
from pathlib import Path

from hypothesis import given
from hypothesis import strategies as st

from mimir.orchestrator.patterns.ledger import (
    ArchivedRun,
    Ledger,
    LedgerLearning,
    LedgerTask,
    find_edits,
    learning_id,
    one_line,
    parse,
    render,
)
from mimir.orchestrator.patterns.ledger_file import LEDGER, forget_edits, read_edits, write_ledger

TEXT = st.text(min_size=1, max_size=60).map(one_line).filter(bool)
WORD = st.from_regex(r"[a-z][a-z0-9.-]{0,12}", fullmatch=True)
DETAIL = st.from_regex(r"[a-z0-9][a-z0-9 ,_]{0,20}", fullmatch=True).map(str.strip)
SHOWN = st.builds(
    LedgerTask,
    id=WORD,
    title=TEXT,
    role=WORD,
    state=st.sampled_from(["completed", "running", "pending"]),
    detail=st.just("") | DETAIL,
)
WAITING = st.builds(
    LedgerTask, id=WORD, title=TEXT, role=WORD, state=st.just("needs_input"), detail=WORD
)
STUCK = st.builds(
    LedgerTask,
    id=WORD,
    title=TEXT,
    role=WORD,
    state=st.just("stuck"),
    detail=st.just("since 10:02"),
)
ENDED = st.builds(
    LedgerTask, id=WORD, state=st.sampled_from(["failed", "blocked", "cancelled"]), detail=TEXT
)
LEARNING = st.builds(
    LedgerLearning,
    id=WORD.map(learning_id),
    kind=st.sampled_from(["Pattern", "Decision", "Correction"]),
    text=TEXT,
    run=st.just("") | WORD,
)
ARCHIVED = st.builds(
    ArchivedRun, title=TEXT, outcome=st.just("completed"), date=st.just("2026-01-31"), run=WORD
)
TEXTS = st.lists(TEXT, max_size=3).map(tuple)
LEDGERS = st.builds(
    Ledger,
    run=WORD,
    session=WORD,
    status=WORD,
    phase=st.sampled_from(["1", "4", "6", "running"]),
    progress=st.just("7/12"),
    updated=st.just("2026-01-31T10:00:00.000000Z"),
    title=TEXT,
    tasks=st.lists(SHOWN | WAITING | STUCK | ENDED, max_size=5).map(tuple),
    direction=TEXTS,
    assumptions=TEXTS,
    decisions=TEXTS,
    learnings=st.lists(LEARNING, max_size=3, unique_by=lambda one: one.id).map(tuple),
    handoff=TEXTS,
    archive=st.lists(ARCHIVED, max_size=3).map(tuple),
)
ONE = Ledger(
    run="run-1",
    status="running",
    phase="running",
    progress="0/1",
    updated="2026-01-31T10:00:00.000000Z",
    title="Limiter",
    tasks=(LedgerTask(id="task-1", title="Bucket", role="executor", state="pending"),),
    learnings=(LedgerLearning(id="m-1", kind="Pattern", text="Write tests first", run="run-0"),),
    handoff=("next: task-1",),
)


@given(LEDGERS)
def test_rendered_ledger_is_read_back_without_an_edit(ledger: Ledger):
    text = render(ledger)
    assert parse(text) == ledger
    edits = find_edits(text, text)
    assert (edits.has_effect, edits.others) == (False, ())


def test_an_edit_of_each_section_has_the_documented_effect_only():
    text = render(ONE)
    edited = (
        text.replace("status: running", "status: completed")
        .replace("## Epic: Limiter", "## Epic: Other")
        .replace("[ ] task-1", "[x] task-1")
        .replace(
            "- Pattern: Write tests first (m-1, from run-0)\n", "- Decision: Use SQLite\n- x\n"
        )
        .replace("- next: task-1\n", "- next: task-1\nAsk Ann.\n")
    ) + "\n## Mine\n\nfree\n"
    edits = find_edits(text, edited)
    assert edits.added == (("Decision", "Use SQLite"), ("Pattern", "x"))
    assert edits.removed == ONE.learnings
    assert edits.handoff == ("Ask Ann.",)
    assert edits.others == (
        "## Epic: Other",
        "- status: completed",
        "- [x] task-1: Bucket: executor → pending",
        "free",
    )
    changed = text.replace("Write tests first", "Write none")
    assert find_edits(text, changed).others == ("- Pattern: Write none (m-1, from run-0)",)
    assert not find_edits(text, changed).has_effect


def test_edits_wait_in_the_file_until_they_are_stored_and_others_are_undone(tmp_path: Path):
    said: list[str] = []
    write_ledger(tmp_path, ONE, said.append)
    file = tmp_path / LEDGER
    file.write_text(
        file.read_text()
        .replace("## Handoff", "- keep it small\n\n## Handoff")
        .replace("0/1", "1/1"),
    )
    later = replace(ONE, updated="2026-01-31T10:00:01.000000Z", status="paused")
    write_ledger(tmp_path, later, said.append)
    assert said == [f"{LEDGER}: an edit here has no effect and was undone: - progress: 1/1"]
    assert "- Pattern: keep it small" in file.read_text()
    assert "progress: 0/1" in file.read_text()
    edits = read_edits(tmp_path)
    assert (edits.added, edits.others) == ((("Pattern", "keep it small"),), ())
    forget_edits(tmp_path, later, edits)
    assert file.read_text() == render(later)


def test_a_crash_between_the_two_files_is_no_edit(tmp_path: Path):
    write_ledger(tmp_path, ONE, print)
    older = (tmp_path / LEDGER).read_text()
    more = LedgerLearning(id="m-2", kind="Pattern", text="Second", run="run-1")
    newer = replace(
        ONE, updated="2026-01-31T10:00:01.000000Z", learnings=(*ONE.learnings, more), progress="1/1"
    )
    write_ledger(tmp_path, newer, print)
    (tmp_path / LEDGER).write_text(older)
    assert read_edits(tmp_path) == find_edits("", "")
