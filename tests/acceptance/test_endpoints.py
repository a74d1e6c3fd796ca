"""Several providers in one run, through the command line: called endpoints, their keys, and stored properties."""

import sqlite3
from pathlib import Path

import pytest

from mimir.planning.renderer import render
from tests.support.cli_runner import Desk
from tests.support.script_server import PlayServer
from tests.support.whole_run import REST, plan, step, wrote

TEAM_KEY = "team-key-0123456789"
GEMINI_KEY = "gemini-key-0123456789"
OPENAI_KEY = "sk-openai-0123456789"
PLAY = {"parts": [wrote("a"), *REST]}


@pytest.fixture
def desk(desk: Desk, tmp_path: Path) -> Desk:
    desk.write("one.md", render(plan(step("a"), title="One small file")))
    desk.environ(MIMIR_CONFIG=tmp_path / "own.toml", MIMIR_LLM__LANE_HEADER="true")
    desk.environ(OPENAI_API_KEY=OPENAI_KEY, GEMINI_API_KEY=GEMINI_KEY)
    return desk


def own_file(desk: Desk, text: str) -> Path:
    path = desk.project.parent / "own.toml"
    path.write_text(text, encoding="utf-8")
    return path


def test_roles_use_different_providers_and_each_gets_its_own_key(desk: Desk):
    with PlayServer(PLAY) as local, PlayServer(PLAY) as team, PlayServer(PLAY) as google:
        own_file(
            desk,
            f"""[llm.endpoints.ollama]
base_url = "{local.url}"
[llm.endpoints.team]
base_url = "{team.url}"
api_key = "{TEAM_KEY}"
headers = {{ x-team = "blue" }}
[llm.endpoints.gemini]
base_url = "{google.url}"
[roles.qc]
endpoint = "team"
model = "judge"
[roles.pm_reporter]
endpoint = "gemini"
model = "writer"
""",
        )
        desk.environ(MIMIR_MODEL="ollama/qwen3")
        done = desk.type("execute", "one.md", "--yes")
        assert done.code == 0, done.out + done.err

        asked = {
            name: {(one.body["model"], one.headers.get("authorization")) for one in server.requests}
            for name, server in (("local", local), ("team", team), ("google", google))
        }
        assert asked == {
            "local": {("qwen3", None)},
            "team": {("judge", f"Bearer {TEAM_KEY}")},
            "google": {("writer", f"Bearer {GEMINI_KEY}")},
        }
        assert {one.headers.get("x-team") for one in team.requests} == {"blue"}
        assert {one.caller.name.role for one in team.requests} == {"qc"}
        calls = desk.type("show", "/a", "--calls", "--json").out
        shown = desk.type("config", "show", "--json").json
        replayed = desk.type("replay", desk.status()["run"])
    assert replayed.code == 0, replayed.out + replayed.err
    assert "ollama/qwen3" in calls
    assert "team/judge" in calls
    assert {(one["model"], one["provider"], one["key"]) for one in shown["models"]} == {
        ("ollama/qwen3", "Ollama", ""),
        ("team/judge", "team", "your own settings file"),
        ("gemini/writer", "Google Gemini", "the variable GEMINI_API_KEY"),
    }
    stored = b"".join(one.read_bytes() for one in (desk.project / ".mimir").glob("mimir.db*"))
    with sqlite3.connect(desk.project / ".mimir" / "mimir.db") as database:
        stored += "\n".join(database.iterdump()).encode()
    assert b"team/judge" in stored
    for key in (TEAM_KEY, GEMINI_KEY, OPENAI_KEY):
        assert key.encode() not in stored
        assert key not in str(shown)


def test_an_error_names_the_endpoint_and_the_missing_key_its_variable(desk: Desk):
    desk.environ(MIMIR_MODEL="anthropic/claude-x")
    missing = desk.type("chain", "Do it")
    assert missing.code == 78
    assert "endpoint anthropic (https://api.anthropic.com/v1)" in missing.err
    assert "ANTHROPIC_API_KEY" in missing.err
    own_file(desk, '[llm.endpoints.ollama]\nbase_url = "http://127.0.0.1:9/v1"\n')
    desk.environ(MIMIR_MODEL="ollama/qwen3", MIMIR_LLM__TRIES=1)
    dead = desk.type("doctor", "--ask")
    assert "qwen3 at Ollama (http://127.0.0.1:9/v1)" in " ".join(dead.out.split())
    assert "refused" in dead.out


def test_a_project_cannot_move_a_key_to_another_host(desk: Desk):
    with PlayServer(PLAY) as evil, PlayServer(PLAY) as good:
        own_file(desk, f'[llm.endpoints.team]\nbase_url = "{good.url}"\napi_key = "{TEAM_KEY}"\n')
        desk.write(
            "mimir.toml",
            f"""[llm]
model = "team/m"
[llm.endpoints.team]
base_url = "{evil.url}"
[llm.endpoints.evil]
base_url = "{evil.url}"
api_key_env = "OPENAI_API_KEY"
""",
        )
        done = desk.type("execute", "one.md", "--yes")
        assert done.code == 0, done.out + done.err
        assert evil.requests == []
        assert good.requests
        assert "'llm.endpoints.team.base_url'; ignored" in done.err
    desk.write("mimir.toml", '[roles.qc]\nendpoint = "evil"\nmodel = "m"\n')
    refused = desk.type("config", "show")
    assert refused.code == 78
    assert "'evil', which is no endpoint" in refused.err


@pytest.mark.parametrize("key", ["sk-first\nsk-second", "sk-0123456789\n"])
def test_a_key_with_a_line_break_is_refused_by_its_source_and_not_shown(desk: Desk, key: str):
    desk.environ(MIMIR_MODEL="anthropic/claude-x", ANTHROPIC_API_KEY=key)
    said = desk.type("chain", "Do it")
    assert said.code == 78
    assert "The key of the variable ANTHROPIC_API_KEY holds a line break." in said.err
    assert "sk-" not in said.err


def test_a_prefix_is_a_preset_only_without_an_address_of_its_own(desk: Desk):
    with PlayServer(PLAY) as gateway:
        desk.ask(gateway, MODEL="anthropic/claude-x")
        done = desk.type("execute", "one.md", "--yes")
        assert done.code == 0, done.out + done.err
        assert {one.body["model"] for one in gateway.requests} == {"anthropic/claude-x"}
