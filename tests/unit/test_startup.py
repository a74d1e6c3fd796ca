"""A command line that answers at once: forbidden imports of `mimir --help`."""

import json
import re
import subprocess
import sys
from pathlib import Path

import pytest

from mimir.bootstrap import local_store
from mimir.settings.layers import load
from tests.support.small_runs import stored_project

HEAVY = {
    "aiohttp",
    "anyio",
    "httpx",
    "httpx2",
    "langchain",
    "langchain_core",
    "langchain_openai",
    "langgraph",
    "langsmith",
    "neo4j",
    "openai",
    "pydantic",
    "pydantic_core",
    "pytest",
    "rich",
    "yaml",
}

MIMIR = "import sys; sys.argv[0] = 'mimir'; from mimir.cli.main import main; main()"
START = (sys.executable, "-X", "importtime", "-c", MIMIR)


def start_modules(*arguments: str) -> tuple[subprocess.CompletedProcess[str], set[str]]:
    """Run `mimir` and return its result and the imported modules."""
    done = subprocess.run(
        [*START, *arguments],
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        check=False,
    )
    return done, list_imported(done.stderr)


def list_imported(printed: str) -> set[str]:
    """Return the modules of the times that the interpreter has printed."""
    return set(re.findall(r"^import time: +\d+ \| +\d+ \| +([\w.]+)$", printed, re.MULTILINE))


def start(*arguments: str) -> tuple[subprocess.CompletedProcess[str], set[str]]:
    """Run `mimir` and return its result and the imported top-level packages."""
    done, modules = start_modules(*arguments)
    return done, {module.partition(".")[0] for module in modules}


@pytest.mark.parametrize("argument", ["--help", "--version"])
def test_version_and_help_import_no_heavy_library(argument: str):
    done, imported = start(argument)
    assert done.returncode == 0, done.stderr[-2000:]
    assert "mimir" in done.stdout
    assert {"mimir", "typer"} <= imported
    assert imported & (HEAVY | {"asyncio"}) == set()


def test_a_misspelt_command_is_wrong_usage_and_imports_nothing_heavy():
    done, imported = start("exekute")
    assert done.returncode == 2
    assert done.stdout == ""
    assert "Traceback" not in done.stderr
    assert imported & HEAVY == set()


def test_commands_that_only_read_import_no_agent_or_model_library():
    opened = [sys.executable, "-c", "import sys, mimir.bootstrap.app; print(*sys.modules)"]
    modules = subprocess.run(opened, capture_output=True, text=True, check=True).stdout.split()
    imported = {module.partition(".")[0] for module in modules}
    assert "mimir" in imported
    assert imported & (HEAVY - {"pydantic", "pydantic_core", "yaml"}) == set()


QUICK = ("runs", "show", "log", "status")
NOT_TO_LOOK = HEAVY | {
    "asyncio",
    "importlib.metadata",
    "importlib.resources",
    "mimir.store.operations.claims",
    "mimir.reporting.summary.run_data",
    "mimir.store.operations.record_loading",
    "mimir.store.records.task_changes",
    "tempfile",
}
ROOMS = (
    "mimir.settings",
    "mimir.bootstrap.app",
    "mimir.llm",
    "mimir.qc",
    "mimir.planning",
    "mimir.tools",
)


@pytest.mark.parametrize("command", QUICK)
def test_reading_stored_runs_imports_a_bounded_set_of_modules(
    command: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
):
    stored_project(tmp_path)
    monkeypatch.chdir(tmp_path)
    done, imported = start_modules(command)
    assert done.returncode == 0, done.stderr[-2000:]
    assert "run-1" in done.stdout or command == "log"
    assert {m for m in imported if m in NOT_TO_LOOK or m.startswith(ROOMS)} == set()
    # The interpreter does not list modules of `import_module`: the module of the command.
    ours = {m for m in imported if m.startswith("mimir.cli.commands.")}
    assert ours == {"mimir.cli.commands.options"}


def test_a_report_imports_no_library_of_agents_or_models(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
):
    stored_project(tmp_path)
    monkeypatch.chdir(tmp_path)
    done, imported = start_modules("report")
    written = tmp_path / "chains/rate-limiter/execution-report.md"
    assert done.stdout.rstrip() == written.read_text(encoding="utf-8").rstrip()
    rooms = ("mimir.bootstrap.app", "mimir.orchestrator.services", "mimir.tools", "mimir.planning")
    heavy = HEAVY - {"pydantic", "pydantic_core"}
    assert {m for m in imported if m in heavy or m.startswith(rooms)} == set()


PROTOCOL = {
    "protocolVersion": "2025-06-18",
    "capabilities": {},
    "clientInfo": {"name": "client", "version": "1"},
}
REQUESTS: tuple[dict[str, object], ...] = (
    {"id": 1, "method": "initialize", "params": PROTOCOL},
    {"method": "notifications/initialized"},
    {"id": 2, "method": "tools/list", "params": {}},
)


def test_tool_list_of_the_mcp_server_imports_no_library_of_its_calls(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
):
    monkeypatch.chdir(tmp_path)
    pipes = {"stdin": subprocess.PIPE, "stdout": subprocess.PIPE, "text": True}
    with (tmp_path / "times").open("w+") as times:
        with subprocess.Popen([*START, "mcp"], stderr=times, **pipes) as server:  # type: ignore[call-overload]
            for one in REQUESTS:
                server.stdin.write(json.dumps({"jsonrpc": "2.0", **one}) + "\n")
            server.stdin.flush()
            # A server whose input ends drops the requests that it has not answered.
            _, listed = server.stdout.readline(), server.stdout.readline()
            server.stdin.close()
            server.stdout.read()
        times.seek(0)
        imported = list_imported(times.read())
    assert '"spawn_agent"' in listed
    used_by_protocol = {"anyio", "asyncio", "httpx2", "pydantic", "pydantic_core"}
    rooms = (
        *("mimir.agents.preambles", "mimir.attempts.machine", "mimir.bootstrap.app", "mimir.llm"),
        *("mimir.orchestrator.todos", "mimir.planning.reader", "mimir.qc", "mimir.recordings"),
        *("mimir.registry", "mimir.reporting", "mimir.scheduling", "mimir.workspace.sandbox"),
    )
    heavy = HEAVY - used_by_protocol
    assert {m for m in imported if m in heavy or m.startswith(rooms)} == set()


@pytest.mark.parametrize("words", [("show", "run"), ("",), ("status", "--")])
def test_completion_imports_no_settings_and_no_event_loop(
    words: tuple[str, ...], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
):
    stored_project(tmp_path)
    monkeypatch.chdir(tmp_path)
    done, imported = start_modules("__complete", *words)
    assert done.stdout
    assert {m for m in imported if m in NOT_TO_LOOK or m.startswith(ROOMS)} == set()


@pytest.mark.parametrize(
    "environment",
    [
        {},
        {"MIMIR_STORE": "own.db"},
        {"MIMIR_STORE": ""},
        {"HOME": "{home}"},
        {"HOME": "{home}", "MIMIR_STORE": ""},
        {"XDG_CONFIG_HOME": "{home}/.config", "MIMIR__STORE": "sqlite:///tmp/two.db"},
        {"MIMIR_CONFIG": "{home}/.config/mimir/mimir.toml"},
        {"MIMIR_CONFIG": "{home}/absent.toml"},
    ],
)
def test_reading_stored_runs_uses_the_store_of_the_settings(
    environment: dict[str, str], tmp_path: Path
):
    own = tmp_path / ".config/mimir/mimir.toml"
    own.parent.mkdir(parents=True)
    own.write_text('store = "from-own.db"\n', encoding="utf-8")
    env = {name: value.format(home=tmp_path) for name, value in environment.items()}
    for flag in ("", "flag.db"):
        flags = {"store": flag} if flag else {}
        assert local_store.find_uri(flag, env) == load(tmp_path, flags, env).settings.store


@pytest.mark.parametrize("text", ['store = "neo4j://host"', "store = 3", "store = ["])
def test_reading_stored_runs_leaves_servers_and_unreadable_files(text: str, tmp_path: Path):
    (tmp_path / "own.toml").write_text(text, encoding="utf-8")
    assert local_store.find_uri("", {"MIMIR_CONFIG": str(tmp_path / "own.toml")}) is None
    assert local_store.find_uri("", {"MIMIR_STORE": "bolt://host"}) is None


def test_a_broken_settings_file_of_the_project_does_not_hide_its_runs(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
):
    stored_project(tmp_path)
    (tmp_path / "mimir.toml").write_text("run = [", encoding="utf-8")
    monkeypatch.chdir(tmp_path)
    assert "run-1" in start("runs")[0].stdout
