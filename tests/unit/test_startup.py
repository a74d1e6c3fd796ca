"""A command line that answers at once: what `mimir --help` may not import."""

import re
import subprocess
import sys

import pytest

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

COERCION = {"pydantic", "pydantic_core"}
"""What Typer itself imports to convert the first value of any parameter."""

MIMIR = "import sys; sys.argv[0] = 'mimir'; from mimir.cli.main import main; main()"


def start(*arguments: str) -> tuple[subprocess.CompletedProcess[str], set[str]]:
    """Run `mimir` and return what it did and the top-level packages that it imported."""
    done = subprocess.run(
        [sys.executable, "-X", "importtime", "-c", MIMIR, *arguments],
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        check=False,
    )
    modules = re.findall(r"^import time: +\d+ \| +\d+ \| +([\w.]+)$", done.stderr, re.MULTILINE)
    return done, {module.partition(".")[0] for module in modules}


@pytest.mark.parametrize("argument", ["--help", "--version"])
def test_no_heavy_library_is_imported_to_say_what_mimir_is(argument: str):
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
    assert imported & (HEAVY - COERCION) == set()


def test_what_only_looks_at_a_run_waits_for_no_library_of_agents_or_models():
    opened = [sys.executable, "-c", "import sys, mimir.bootstrap.app; print(*sys.modules)"]
    modules = subprocess.run(opened, capture_output=True, text=True, check=True).stdout.split()
    imported = {module.partition(".")[0] for module in modules}
    assert "mimir" in imported
    assert imported & (HEAVY - COERCION - {"yaml"}) == set()


def test_a_glance_at_a_run_opens_the_store_and_nothing_else_of_a_project():
    glanced = [
        sys.executable,
        "-c",
        "import sys, mimir.bootstrap.quick_status; print(*sys.modules)",
    ]
    modules = set(
        subprocess.run(glanced, capture_output=True, text=True, check=True).stdout.split()
    )
    assert {"mimir.bootstrap.stores", "mimir.reporting.status"} <= modules
    rooms = (
        "mimir.llm",
        "mimir.qc",
        "mimir.planning",
        "mimir.tools",
        "mimir.workspace.git.history",
        "mimir.bootstrap.app",
    )
    assert not {m for m in modules if m.startswith(rooms)}


@pytest.mark.parametrize("command", ["runs", "show", "log"])
def test_a_look_at_stored_runs_imports_no_library_of_agents_models_or_screens(command: str):
    done, imported = start(command)
    assert done.returncode == 2, done.stderr[-2000:]
    assert "is not a project of mimir yet" in done.stderr
    assert imported & (HEAVY - COERCION) == set()
