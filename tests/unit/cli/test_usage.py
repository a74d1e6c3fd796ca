"""Behaviour of every command: wrong usage, errors, the common options."""

import os
from pathlib import Path

import pytest

from mimir.errors import BusyError, ConfigurationError, Paused, UsageError
from tests.support.fake_app import FakeMimir, Mimir


@pytest.mark.parametrize(
    ("arguments", "next_step"),
    [
        (["exekute"], "Did you mean mimir execute?"),
        (["zzzzzz"], "See: mimir --help"),
        (["execute", "--wrkers", "2"], "Did you mean --workers?"),
        (["status", "--jsn"], "Did you mean --json?"),
        (["execute", "--workers", "none"], "See: mimir execute --help"),
        (["execute", "--workers", "0"], "See: mimir execute --help"),
        (["execute", "--apply", "maybe"], "See: mimir execute --help"),
        (["cancel"], "See: mimir cancel --help"),
        (["status", "a", "b"], "See: mimir status --help"),
        (["execute", "--time-limit", "soon", "--yes"], "Write minutes: 30, 30m, 2h or 1h30m."),
        (["execute", "limitr", "--yes"], "Did you mean limiter?"),
        (["execute", "limiter", "--only", "task-11", "--yes"], "Did you mean task-1?"),
        (["execute", "limiter"], "Start without confirmation: add --yes"),
        (["execute", "Add a limiter"], "Start without confirmation: add --yes"),
        (["check", "limitr"], "Did you mean limiter?"),
        (["chain"], 'Write it: mimir chain "REQUEST"'),
        (
            ["chain", "Add", "--output", "chains/limiter"],
            "Name another file, or remove the existing one.",
        ),
    ],
)
def test_wrong_usage_exits_with_2_and_a_next_step(
    arguments: list[str], next_step: str, mimir: Mimir, fake: FakeMimir
):
    said = mimir(*arguments)
    assert said.code == 2
    assert said.out == ""
    assert said.err.splitlines()[-1] == f"next: {next_step}"
    assert len(said.err.splitlines()) <= 3
    assert fake.opened == []


def test_an_argument_with_control_bytes_does_not_reach_the_terminal(mimir: Mimir):
    said = mimir("\x1b[2Jexecute")
    assert said.code == 2
    assert "\x1b" not in said.err


def test_a_traceback_is_shown_on_demand_only(mimir: Mimir, fake: FakeMimir):
    fake.raises = {"status": ZeroDivisionError("oops")}
    quiet, loud = mimir("status"), mimir("status", "--debug")
    assert (quiet.code, loud.code) == (70, 70)
    assert "Traceback" not in quiet.err
    assert "Traceback" in loud.err
    assert "ZeroDivisionError: oops" in quiet.err


@pytest.mark.parametrize(
    ("error", "code"),
    [
        (UsageError("x"), 2),
        (BusyError("x"), 75),
        (ConfigurationError("x"), 78),
        (Paused("x", reason="configuration", exit_code=78), 78),
    ],
)
def test_errors_of_the_facade_become_exit_codes(
    error: Exception, code: int, mimir: Mimir, fake: FakeMimir
):
    fake.raises = {"drive": error}
    said = mimir("execute", "limiter", "--yes")
    assert said.code == code
    assert said.err.splitlines()[-1] == "error: x"


def test_store_json_and_debug_go_before_the_command_too(mimir: Mimir, fake: FakeMimir):
    before = mimir("--store", "a.db", "--json", "verify")
    behind = mimir("verify", "--json", "--store", "a.db")
    assert before.shape == behind.shape
    assert [loaded.settings.store for _, loaded, _ in fake.opened] == ["a.db", "a.db"]


def test_a_line_of_the_project_that_opens_the_sandbox_is_warned_of(mimir: Mimir, project: Path):
    (project / "mimir.toml").write_text('sandbox = "none"\n')
    said = mimir("verify")
    assert said.code == 0
    assert said.err.startswith("warning: The project's settings name 'sandbox'")


def test_invalid_setting_exits_with_78(mimir: Mimir, project: Path):
    (project / "mimir.toml").write_text("wrkers = 3\n")
    assert mimir("verify").code == 78


@pytest.mark.parametrize(
    "arguments", [["chain", "Add a limiter"], ["execute", "--yes"], ["execute", "Add it", "--yes"]]
)
def test_missing_key_is_refused_at_once_with_the_demo_as_next_step(
    arguments: list[str], mimir: Mimir, fake: FakeMimir, monkeypatch: pytest.MonkeyPatch
):
    monkeypatch.delenv("OPENAI_BASE_URL")
    said = mimir(*arguments)
    assert said.code == 78
    assert len(said.err.splitlines()) <= 3
    assert "OPENAI_API_KEY" in said.err
    assert "mimir demo" in said.err
    assert fake.opened == []


@pytest.mark.parametrize("model", ["play:walk.yaml", "anthropic:claude"])
def test_a_model_that_needs_no_key_of_openai_is_not_refused(
    model: str, mimir: Mimir, monkeypatch: pytest.MonkeyPatch
):
    monkeypatch.delenv("OPENAI_BASE_URL")
    assert mimir("chain", "Add a limiter", "--model", model).code == 0


@pytest.mark.parametrize("name", ["status", "report", "verify", "resume", "apply"])
def test_command_in_an_unused_project_creates_nothing(
    name: str, mimir: Mimir, fake: FakeMimir, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
):
    (tmp_path / "empty").mkdir()
    monkeypatch.chdir(tmp_path / "empty")
    said, with_store = mimir(name), mimir(name, "--store", "bolt://elsewhere")
    assert (said.code, with_store.code) == (2, 2)
    assert "mimir chain" in said.err
    assert "mimir worker" in with_store.err
    assert fake.opened == []
    assert list((tmp_path / "empty").iterdir()) == []


@pytest.mark.parametrize("arguments", [[], ["status"]])
def test_a_directory_that_was_removed_is_named(arguments: list[str], mimir: Mimir, project: Path):
    (project / "gone").mkdir()
    os.chdir(project / "gone")
    (project / "gone").rmdir()
    said = mimir(*arguments)
    os.chdir(project)
    assert said.code == 69
    assert said.err.splitlines()[0] == "error: The current directory was removed."
