"""`mimir config` and `mimir completion`."""

import stat
import sys
from io import StringIO
from pathlib import Path

import pytest
from typer.main import get_command

from mimir.cli.commands.completion import find_candidates, list_names
from mimir.cli.main import app
from tests.support.fake_app import Mimir


@pytest.fixture
def own(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    path = tmp_path / "home" / "mimir" / "mimir.toml"
    monkeypatch.setenv("MIMIR_CONFIG", str(path))
    return path


def test_setting_is_written_to_a_private_file_and_shown_with_its_origin(mimir: Mimir, own: Path):
    assert mimir("config", "set", "run.workers", "7").code == 0
    own.write_text(f"# mine\n{own.read_text()}", encoding="utf-8")
    assert mimir("config", "set", "run.workers", "8").code == 0
    assert mimir("config", "set", "llm.model", "gpt-5").code == 0
    text = '# mine\n[run]\nworkers = 8\n\n[llm]\nmodel = "gpt-5"\n'
    assert own.read_text(encoding="utf-8") == text
    assert stat.S_IMODE(own.stat().st_mode) == 0o600

    shown = mimir("config", "show")
    assert "run.workers   your own settings file" in shown.out
    assert "llm.base_url  the variable OPENAI_BASE_URL" in shown.out
    got = mimir("config", "get", "llm.model")
    assert (got.out, got.err) == ("gpt-5\n", "origin: your own settings file\n")
    assert mimir("config", "path", "--json").shape["own"] == str(own)
    every = mimir("config", "show", "--all", "--json").shape["settings"]
    assert {"name": "run.apply", "value": "auto", "origin": "default"} in list(every)  # type: ignore[call-overload]


def test_secret_is_read_from_standard_input_and_never_shown(
    mimir: Mimir, own: Path, monkeypatch: pytest.MonkeyPatch
):
    refused = mimir("config", "set", "llm.api_key", "sk-secret-value")
    assert refused.code == 2
    assert "sk-secret" not in refused.err
    monkeypatch.setattr(sys, "stdin", StringIO("sk-secret-value\n"))
    assert mimir("config", "set", "llm.api_key", "-").code == 0
    assert 'api_key = "sk-secret-value"' in own.read_text(encoding="utf-8")
    for words in (("show",), ("show", "--all", "--json"), ("get", "llm.api_key")):
        assert "sk-secret" not in mimir("config", *words).out
    monkeypatch.setattr(sys, "stdin", StringIO("sk-first\nsk-second\n"))
    two_lines = mimir("config", "set", "llm.api_key", "-")
    assert two_lines.code == 2
    assert "line break" in two_lines.err
    assert 'api_key = "sk-secret-value"' in own.read_text(encoding="utf-8")


@pytest.mark.parametrize(
    ("words", "problem"),
    [
        (("llm.base_url", "http://x", "--project"), "A project may not choose 'llm.base_url'"),
        (("llm.model", "play:own.yaml", "--project"), "A project may not choose 'llm.model'"),
        (("run.workrs", "3"), "Did you mean 'run.workers'?"),
        (("run.workers", "many"), "Setting 'run.workers' is invalid"),
    ],
)
def test_invalid_setting_is_refused_before_its_write(
    words: tuple[str, ...], problem: str, mimir: Mimir, own: Path, project: Path
):
    said = mimir("config", "set", *words)
    assert said.code == 78
    assert problem in said.err
    assert not own.exists()
    assert not (project / "mimir.toml").exists()


def test_value_over_several_lines_is_not_changed(mimir: Mimir, own: Path):
    own.parent.mkdir(parents=True)
    text = '[sandbox]\nread_only = [\n  "/opt",\n]\n'
    own.write_text(text, encoding="utf-8")
    assert mimir("config", "set", "sandbox.read_only", '["/srv"]').code == 78
    assert own.read_text(encoding="utf-8") == text


def test_words_are_completed_without_hidden_names(project: Path, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setenv("MIMIR_MODEL", "ollama/qwen3")

    def complete(*words: str) -> list[str]:
        found = find_candidates(words[:-1], words[-1], get_command(app), project)
        return [word for word, _ in found]

    assert {"runs", "execute", "config"} <= set(complete(""))
    assert not {"ls", "run", "lint", "plan"} & set(complete(""))
    assert complete("config", "") == ["show", "get", "set", "path"]
    assert "--follow" in complete("log", "--")
    assert complete("execute", "") == ["limiter"]
    assert complete("execute", "--model", "") == ["ollama/qwen3"]
    assert complete("show", "") == []


@pytest.mark.parametrize("shell", ["bash", "zsh", "fish"])
def test_completion_script_calls_mimir(shell: str, mimir: Mimir):
    said = mimir("completion", shell)
    assert said.code == 0
    assert "mimir __complete" in said.out


def test_every_command_has_an_example_and_both_help_options(mimir: Mimir):
    for name in list_names(get_command(app)):
        said = mimir(name, "-h")
        assert said.code == 0
        assert f"Example: mimir {name}" in said.out or name == "config"
        assert "--store" not in said.out
    assert mimir("-V").out.startswith("mimir ")
    assert mimir("ls").code == mimir("runs").code
