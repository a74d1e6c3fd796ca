"""Every command on a terminal of three widths: no line is too wide, no word is cut."""

import asyncio
from pathlib import Path

import pytest

from mimir.cli.command_table import COMMANDS as COMMAND_TABLE
from mimir.cli.console import Console
from mimir.cli.layout import columns_of
from mimir.cli.main import run
from mimir.cli.symbols import ASCII, UNICODE, Symbols
from mimir.store.sqlite.sqlite_store import SqliteStore
from tests.support.clock import FrozenClock
from tests.support.fake_app import PLAN
from tests.support.small_runs import whole
from tests.support.stores import opened

LONG = "A_criterion_that_is_one_word_and_longer_than_sixty_columns_of_a_terminal_can_hold"
COMMANDS = (
    (), ("runs",), ("show",), ("show", "/task-1"), ("show", "/task-1/1"), ("show", "--calls"),
    ("show", "/task-1", "--output", "c1"), ("log",), ("status",), ("report",), ("report", "--full"),
    ("verify",), ("verify", "--explain", "task-1"), ("check", "limiter"), ("check", "broken"),
    ("config", "show", "--all"), ("config", "path"), ("preambles",), ("clean",),
    ("status", "run-9"), ("exekute",), ("execute", "broken", "--yes"),
)  # fmt: skip


@pytest.fixture
def project(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    async def job() -> None:
        clock = FrozenClock()
        async with opened(SqliteStore(tmp_path / ".mimir/mimir.db", clock)) as store:
            await whole(store, clock)
        (tmp_path / ".mimir/project").write_text("p\n", encoding="utf-8")

    asyncio.run(job())
    for name, text in (("limiter", PLAN), ("broken", PLAN.replace("kind: hold", f"kind: {LONG}"))):
        (tmp_path / "chains" / name).mkdir(parents=True)
        (tmp_path / "chains" / name / "chain-output.md").write_text(text, encoding="utf-8")
    monkeypatch.setenv("OPENAI_BASE_URL", "http://127.0.0.1:9/v1")
    monkeypatch.chdir(tmp_path)
    return tmp_path


def draw(
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
    width: int,
    glyphs: Symbols,
    command: tuple[str, ...],
) -> list[str]:
    monkeypatch.setenv("COLUMNS", str(width))
    monkeypatch.setattr(Console, "is_terminal", True)
    monkeypatch.setattr(Console, "is_error_terminal", True)
    monkeypatch.setattr(Console, "width", width)
    monkeypatch.setattr(Console, "glyphs", glyphs)
    monkeypatch.setattr(Console, "_show_in_pager", lambda console, text: False)
    run(command)
    said = capsys.readouterr()
    return [*said.out.splitlines(), *said.err.splitlines()]


@pytest.mark.usefixtures("project")
@pytest.mark.parametrize("command", COMMANDS, ids=" ".join)
def test_no_command_prints_a_line_over_the_width_or_cuts_a_word(
    command: tuple[str, ...], monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
):
    wide = draw(monkeypatch, capsys, 10_000, UNICODE, command)
    assert wide
    for width in (60, 80, 120):
        for glyphs in (UNICODE, ASCII):
            lines = draw(monkeypatch, capsys, width, glyphs, command)
            assert [line for line in lines if columns_of(line) > width] == []
            if glyphs is UNICODE and command not in VARIABLE:
                short = {w for line in wide for w in line.split() if columns_of(w) <= width - 12}
                assert short <= {word for line in lines for word in line.split()}


def test_no_help_prints_a_line_over_the_width_or_cuts_a_sentence(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
):
    named = [(), *((entry.names[0],) for entry in COMMAND_TABLE)]
    named += [(entry.names[0], part.names[0]) for entry in COMMAND_TABLE for part in entry.parts]
    for width in (60, 80, 120):
        for command in named:
            lines = draw(monkeypatch, capsys, width, UNICODE, (*command, "--help"))
            assert [line for line in lines if columns_of(line) > width] == [], command
            assert [line for line in lines[1:] if line.endswith(("...", "…"))] == [], command
            assert lines[-1].strip(), command


VARIABLE = ((), ("runs",), ("report", "--full"))
"""Commands whose words differ from one call to the next: ages, tables of markdown."""
