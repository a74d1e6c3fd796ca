"""Fixtures of every test: an isolated environment, no network but loopback, no hidden clock.

The network is blocked by pytest-socket; its two options stand in `pyproject.toml`.
"""

import gc
import os
import shutil
import sys
import tempfile
from pathlib import Path
from typing import TYPE_CHECKING

import pytest
from hypothesis import HealthCheck, settings
from hypothesis.internal.conjecture import providers

from tests.support.clock import FrozenClock
from tests.support.environment import isolate_this_process, remember_environment
from tests.support.projects import make_project

if TYPE_CHECKING:
    from tests.support.cli_runner import Desk

# Where the shell forbids Python to write bytecode, each worker and each call would rewrite the asserts of all tests again.
sys.dont_write_bytecode = False

NAMED_ONLY = ("live",)
"""Marks of tests that need a key: they run when `-m` names them, else they are not collected."""

HOME = pytest.StashKey[Path]()

settings.register_profile("here", deadline=None)
settings.register_profile(
    "ci",
    deadline=None,
    derandomize=True,
    database=None,
    print_blob=True,
    suppress_health_check=[HealthCheck.too_slow],
)
settings.load_profile("ci" if os.environ.get("CI") else "here")

# Hypothesis would parse each imported module in each worker, for constants to try: ten seconds of a processor, and other
# examples for each order of imports. The strategies of these tests name their own edges.
providers._get_local_constants = lambda: providers._local_constants

# A worker holds ten thousand tests for its whole life: a full look at them, at each quarter of growth, finds nothing.
gc.set_threshold(50_000, 20, 100)


def pytest_configure(config: pytest.Config) -> None:
    """Isolate the environment before the first module of mimir is imported."""
    home = Path(tempfile.mkdtemp(prefix="mimir-tests-home-"))
    config.stash[HOME] = home
    remember_environment()
    isolate_this_process(home)


def pytest_unconfigure(config: pytest.Config) -> None:
    """Remove the home that `pytest_configure` made."""
    shutil.rmtree(config.stash[HOME], ignore_errors=True)


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """Leave out tests that need a key, unless `-m` names them."""
    wanted = str(config.getoption("-m"))
    left_out = [mark for mark in NAMED_ONLY if mark not in wanted]
    kept = [item for item in items if not any(item.get_closest_marker(mark) for mark in left_out)]
    if len(kept) < len(items):
        config.hook.pytest_deselected(items=[item for item in items if item not in kept])
        items[:] = kept


def pytest_collection_finish(session: pytest.Session) -> None:
    """Start the Neo4j server beside the first tests, if any test needs it: it takes a minute of a busy machine."""
    if session.config.option.collectonly:
        return
    if any(item.get_closest_marker("neo4j") for item in session.items):
        from tests.support.neo4j_servers import begin

        begin()


@pytest.fixture
def frozen_clock() -> FrozenClock:
    """A clock that only the test moves."""
    return FrozenClock()


@pytest.fixture
def desk(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> "Desk":
    """An empty project in which `mimir` is typed; a file of tests may fill it."""
    # Imported here: few tests type commands.
    from tests.support.cli_runner import Desk

    return Desk(tmp_path / "project", monkeypatch, capsys)


@pytest.fixture
def tmp_project(tmp_path: Path) -> Path:
    """A small calculator with one green test, committed in a git repository of its own."""
    return make_project(tmp_path / "project")
