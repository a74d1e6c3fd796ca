"""Every screen at three widths: no word is cut, no line is too wide."""

import re
from collections.abc import Callable, Mapping, Sequence
from datetime import timedelta
from pathlib import Path

import pytest

from mimir.bootstrap.doctor import DoctorFinding
from mimir.cli.layout import columns_of, wrap
from mimir.cli.output import forecasts, report_pages, run_pages, tables
from mimir.cli.symbols import ASCII, UNICODE, Symbols
from mimir.domain.forecast import TaskEffort, forecast_run
from mimir.domain.run import RunBudget
from mimir.orchestrator.runs import browsing, listing
from mimir.orchestrator.runs.subjects import Subject
from mimir.reporting.render.narrative import NO_PROSE
from mimir.reporting.render.report import as_json, markdown
from mimir.reporting.status import read_status
from mimir.reporting.summary.run_loader import load_summary
from mimir.store.protocol import GraphStore, ReadOps
from mimir.store.sqlite.sqlite_store import SqliteStore
from tests.support.clock import FrozenClock
from tests.support.small_runs import whole
from tests.support.stores import opened

Shape = Mapping[str, object]
Screens = Callable[[int, Symbols], Mapping[str, Sequence[str]]]


LOOK = (
    DoctorFinding(subject="store", ok=True, detail="sqlite:.mimir/mimir.db, 3 runs", fix=""),
    DoctorFinding(
        subject="sandbox",
        ok=False,
        detail="bubblewrap cannot make a user namespace: kernel.apparmor_restrict_unprivileged_userns is 1",
        fix="Allow it on this machine: sudo sysctl kernel.apparmor_restrict_unprivileged_userns=0",
    ),
)


def many(status: Shape) -> Shape:
    """Return a status of a thousand tasks: one under way, one failed, the others done or waiting."""
    states = ["worker_executing", "failed", *["completed"] * 600, *["pending"] * 398]
    rows = [{"id": f"task-{n}", "title": "A task", "status": s} for n, s in enumerate(states)]
    return {**status, "tasks": rows}


@pytest.fixture
async def screens(tmp_path: Path, frozen_clock: FrozenClock) -> Screens:
    async with opened(SqliteStore(tmp_path / "mimir.db", frozen_clock)) as store:
        return await draw_screens(store, frozen_clock)


async def draw_screens(store: GraphStore, frozen_clock: FrozenClock) -> Screens:
    run = (await whole(store, frozen_clock)).run
    now = frozen_clock.now() + timedelta(hours=3)

    def look(reads: ReadOps) -> Screens:
        status = read_status(reads, run, (), now)
        runs = listing.list_runs(reads, "", (), now) or [{**status, "age_seconds": 5, "tasks": 4}]
        summary = load_summary(reads, run)
        shape, text = as_json(summary, NO_PROSE), markdown(summary, NO_PROSE)
        task = Subject(run=run, task="task-1")
        attempt = Subject(run=run, task="task-1", attempt=1)
        page, one = browsing.show_task(reads, task), browsing.show_task(reads, attempt)
        calls = browsing.list_calls(reads, Subject(run=run))
        effort = {"engineer": [TaskEffort(calls=n, tokens=900 * n, seconds=n) for n in (3, 5, 9)]}
        probable = forecast_run(["engineer"] * 4, effort)
        limits = RunBudget(max_calls=100, seconds=3600)

        def draw(width: int, glyphs: Symbols) -> Mapping[str, Sequence[str]]:
            asked = forecasts.describe_run("chains/limiter", probable, (4, 236, 1_200_000), limits)
            return {
                "runs": run_pages.run_list(runs, width, every=False),
                "status": tables.status(status, glyphs, width),
                "status of 1,000 tasks": tables.status(many(status), glyphs, width),
                "task": run_pages.task_page(page, glyphs, width),
                "attempt": run_pages.attempt_page(one, glyphs, width),
                "calls": run_pages.call_table(calls, width),
                "report": report_pages.short(shape, glyphs, width, "chains/x/execution-report.md"),
                "whole report": report_pages.lay_out(text, width),
                "doctor": tables.doctor_table(LOOK, glyphs, width),
                "question": [line for one in asked for line in wrap(one, width)],
            }

        return draw

    return await store.read(look)


@pytest.mark.parametrize("width", [60, 80, 120])
async def test_no_screen_cuts_a_word_or_exceeds_the_width(width: int, screens: Screens):
    drawn, wide = screens(width, UNICODE), screens(10_000, UNICODE)
    for name, lines in drawn.items():
        assert lines, name
        assert [line for line in lines if columns_of(line) > width] == [], name
        kept, words = "".join("".join(lines).split()), "".join("".join(wide[name]).split())
        if name != "whole report":  # its tables are laid out differently
            assert kept == words, name
        short = {w for line in wide[name] for w in line.split() if columns_of(w) <= width - 8}
        whole_words = {word for line in lines for word in line.split()}
        if name != "whole report":
            assert short <= whole_words, name


async def test_screens_of_an_ascii_terminal_add_no_other_character(screens: Screens):
    for name in ("runs", "status", "status of 1,000 tasks", "task", "calls", "report"):
        assert all(line.isascii() for line in screens(80, ASCII)[name]), name


async def test_status_of_many_tasks_shows_those_under_way_or_in_trouble(screens: Screens):
    lines = screens(80, UNICODE)["status of 1,000 tasks"]
    assert len(lines) < 20
    assert sum(bool(re.match(r"\S task-", line)) for line in lines) == 2
    assert any("not shown: 600 completed, 398 waiting" in line for line in lines)


@pytest.mark.parametrize("samples", [0, 1, 20])
def test_question_names_its_source_and_rounds(samples: int):
    known = {"r": [TaskEffort(calls=4, tokens=1234, seconds=60)] * samples} if samples else {}
    lines = forecasts.describe_run("p", forecast_run(["r"], known), (1, 9, 99), RunBudget())
    assert ("a guess" in lines[1]) is (samples == 0)
    assert lines[2] == "at most 9 tool calls and 99 tokens"
    assert lines == forecasts.describe_run("p", forecast_run(["r"], known), (1, 9, 99), RunBudget())
