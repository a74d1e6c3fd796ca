"""The promises of tests/conftest.py, each tried."""

import os
import socket
import subprocess
from pathlib import Path

import pytest
from pytest_socket import SocketConnectBlockedError

from tests.support.clock import START, CountingIds, FrozenClock
from tests.support.environment import isolate
from tests.support.projects import git


def test_network_is_unreachable():
    with socket.socket() as outside, pytest.raises(SocketConnectBlockedError):
        outside.connect(("192.0.2.1", 443))


def test_loopback_is_in_reach():
    with (
        socket.create_server(("127.0.0.1", 0)) as server,
        socket.create_connection(server.getsockname()) as client,
    ):
        client.sendall(b"x")
        accepted, _ = server.accept()
        with accepted:
            assert accepted.recv(1) == b"x"


def test_unix_sockets_are_in_reach():
    left, right = socket.socketpair()
    with left, right:
        left.sendall(b"x")
        assert right.recv(1) == b"x"


@pytest.mark.parametrize(
    "name", ["OPENAI_API_KEY", "MIMIR_MODEL", "LANGSMITH_TRACING", "GIT_DIR", "XDG_CONFIG_HOME"]
)
def test_settings_of_the_user_are_removed(name: str, tmp_path: Path):
    environ = {name: "x", "PATH": "/bin"}
    isolate(environ, tmp_path)
    assert name not in environ
    assert environ["PATH"] == "/bin"


def test_home_is_empty_but_for_gits_identity():
    home = Path.home()
    assert home.name.startswith("mimir-tests-home-")
    assert (home / ".gitconfig").is_file()


def test_nothing_of_the_machines_environment_reaches_a_test():
    assert not [name for name in os.environ if name.startswith(("OPENAI_", "MIMIR_", "LANGSMITH_"))]


def test_a_project_is_committed_and_its_test_is_there(tmp_project: Path):
    assert git(tmp_project, "status", "--porcelain") == ""
    assert git(tmp_project, "branch", "--show-current") == "main"
    assert git(tmp_project, "log", "--format=%ae") == "tests@mimir.invalid"
    assert (tmp_project / "tests" / "test_calc.py").is_file()


def test_git_helper_fails_with_the_message_of_git(tmp_path: Path):
    with pytest.raises(AssertionError, match="not a git repository"):
        git(tmp_path, "log")


def test_frozen_clock_moves_only_by_advance(frozen_clock: FrozenClock):
    before = frozen_clock.monotonic()
    assert frozen_clock.now() == frozen_clock.now() == START
    frozen_clock.advance(90)
    assert (frozen_clock.now() - START).total_seconds() == 90
    assert frozen_clock.monotonic() - before == 90


def test_a_corrected_clock_does_not_turn_back_durations(frozen_clock: FrozenClock):
    before = frozen_clock.monotonic()
    frozen_clock.set_back(3600)
    assert frozen_clock.now() < START
    assert frozen_clock.monotonic() == before


def test_ids_are_counted_per_kind():
    ids = CountingIds()
    assert [ids.new("run"), ids.new("run"), ids.new("task")] == ["run-1", "run-2", "task-1"]


def test_children_inherit_the_isolation():
    child = subprocess.run(
        ["git", "config", "--get", "user.name"], capture_output=True, text=True, check=True
    )
    assert child.stdout == "mimir tests\n"
