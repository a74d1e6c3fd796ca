"""The first settings: by flags in a pipe, by answers on a terminal, and with an endpoint that is dead or hangs."""

import socket
import stat
import sys
import tomllib
from pathlib import Path

import pytest

from mimir.llm.config import EndpointConfig
from mimir.llm.openai.model_list import list_models
from mimir.planning.renderer import render
from tests.support.cli_runner import KEY, Desk
from tests.support.script_server import PlayServer
from tests.support.terminal import Terminal, environment
from tests.support.whole_run import REST, plan, step, wrote

ONE = plan(step("a"), title="One small file")
PM = {"role": "pm", "turns": [{"text": render(ONE), "repeat": "forever"}]}
PLAY = {"parts": [PM, wrote("a"), *REST]}


@pytest.fixture
def desk(desk: Desk, tmp_path: Path) -> Desk:
    desk.environ(MIMIR_CONFIG=tmp_path / "own" / "mimir.toml")
    return desk


def own(desk: Desk) -> Path:
    return desk.project.parent / "own" / "mimir.toml"


def flags(url: str, *more: str) -> tuple[str, ...]:
    return ("init", "--yes", "--provider", "ollama", "--base-url", url, "--model", "small", *more)


def test_flags_answer_everything_and_a_plan_can_be_made(desk: Desk):
    with PlayServer(PLAY) as server:
        said = desk.type(*flags(server.url, "--max-calls", "500"))
        assert said.code == 0, said.err
        assert f"written: {own(desk)}" in said.out
        assert stat.S_IMODE(own(desk).stat().st_mode) == 0o600
        written = own(desk).read_text(encoding="utf-8")
        again = desk.type(*flags(server.url, "--max-calls", "500"))
        assert f"unchanged: {own(desk)}" in again.out
        assert own(desk).read_text(encoding="utf-8") == written
        assert tomllib.loads(written) == {
            "llm": {"model": "ollama/small", "endpoints": {"ollama": {"base_url": server.url}}},
            "run": {"max_calls": 500},
        }
        made = desk.type("chain", "Write one small file")
        assert made.code == 0, made.out + made.err
        assert {one.body["model"] for one in server.requests if one.body} == {"small"}


def test_init_without_a_terminal_chooses_no_value_for_the_user(desk: Desk):
    said = desk.type("init", "--yes", "--provider", "anthropic")
    assert said.code == 2
    assert "--model NAME, --key variable|file|keyring, --max-calls N" in said.err
    assert not own(desk).exists()
    assert desk.type("init").code == 2


def test_a_dead_endpoint_is_named_at_once_and_nothing_is_written(desk: Desk):
    said = desk.type(*flags("http://127.0.0.1:9/v1", "--no-limit"))
    assert said.code == 69
    assert "ollama (http://127.0.0.1:9/v1): no connection" in said.err
    assert not own(desk).exists()


async def test_an_endpoint_whose_list_hangs_is_used_without_it(desk: Desk):
    with socket.create_server(("127.0.0.1", 0)) as silent:
        url = f"http://127.0.0.1:{silent.getsockname()[1]}/v1"
        listed = await list_models(EndpointConfig(base_url=url), seconds=0.1)
    assert listed.problem == "no list of models within 0.1 s"
    assert listed.is_reached


def answers(
    desk: Desk, columns: int, *lines: tuple[str, str], is_address_given: bool = True
) -> str:
    variables = environment(MIMIR_CONFIG=str(own(desk)), ANTHROPIC_API_KEY=KEY, OPENAI_BASE_URL="")
    words = [sys.executable, "-m", "mimir", "init"]
    with PlayServer(PLAY) as server:
        if is_address_given:
            words += ["--provider", "anthropic", "--base-url", server.url]
        lines = tuple((question, answer.format(url=server.url)) for question, answer in lines)
        terminal = Terminal(words, desk.project, columns=columns, env=variables)
        for question, answer in lines:
            terminal.until(question)
            terminal.type(f"{answer}\n")
        terminal.until("next:")
        assert terminal.process.wait() == 0
    return terminal.written


def test_init_on_a_narrow_terminal_does_not_show_the_key(desk: Desk):
    # The keyring does not work here: only the place of the key is asked again.
    asked = [("(1-3):", "3"), ("name):", "claude-x"), ("none", ""), ("(1-2):", "2")]
    written = answers(desk, 20, *asked)
    assert KEY not in written
    settings = tomllib.loads(own(desk).read_text(encoding="utf-8"))
    assert settings["llm"]["model"] == "anthropic/claude-x"
    assert settings["llm"]["endpoints"]["anthropic"]["api_key"] == KEY
    assert "run" not in settings


def test_an_own_address_is_a_provider_and_invalid_answers_are_named(desk: Desk):
    # Given four questions, each answered wrongly first
    written = answers(
        desk,
        80,
        ("or an address):", "99"),
        ("'99' is no answer. Type a number from 1 to 9", "ftp://host"),
        ("'ftp://host' is no answer", "{url}"),
        ("Enter: none", ""),
        ("or a name", ""),
        ("An empty line is no answer", "small"),
        ("Limit of a run", "0"),
        ("a whole number of model calls above 0", "-3"),
        ("'-3' is no answer", "25"),
        is_address_given=False,
    )
    # Then the settings hold the address under a name of their own
    settings = tomllib.loads(own(desk).read_text(encoding="utf-8"))
    [(name, endpoint)] = settings["llm"]["endpoints"].items()
    assert name == endpoint["base_url"].split("//")[1].split("/")[0].replace(".", "-").replace(
        ":", "-"
    )
    assert settings["llm"]["model"] == f"{name}/small"
    assert settings["run"]["max_calls"] == 25
    assert "key: none is needed" in written


def test_the_test_command_is_found_run_once_and_written_to_the_project(desk: Desk):
    desk.write("Makefile", "test:\n\techo tested\n")
    with PlayServer(PLAY) as server:
        said = desk.type(*flags(server.url, "--no-limit", "--project"))
    assert said.code == 0, said.err
    assert "test command: make test (exit code 0" in said.out
    written = (desk.project / "mimir.toml").read_text(encoding="utf-8")
    assert tomllib.loads(written) == {"checks": {"test_command": "make test"}}
    checks = {one["what"]: one for one in desk.type("doctor", "--json").json["checks"]}
    assert checks["test command"]["detail"] == "make test"


def test_a_file_that_cannot_be_written_or_read_is_named_and_stays(desk: Desk):
    with PlayServer(PLAY) as server:
        own(desk).parent.mkdir()
        own(desk).write_text("[llm\n", encoding="utf-8")
        broken = desk.type(*flags(server.url, "--no-limit"))
        assert broken.code == 78
        assert own(desk).read_text(encoding="utf-8") == "[llm\n"
        assert "cannot be read" in broken.err
        desk.unset("MIMIR_CONFIG", "HOME", "XDG_CONFIG_HOME")
        homeless = desk.type(*flags(server.url, "--no-limit"))
        assert homeless.code == 78
        assert "HOME is not set" in homeless.err
        assert "MIMIR_CONFIG=FILE" in homeless.err
        desk.write("flat", "")
        desk.environ(MIMIR_CONFIG=desk.project / "flat" / "mimir.toml")
        closed = desk.type(*flags(server.url, "--no-limit"))
        assert closed.code == 78
        assert "mimir.toml" in closed.err
