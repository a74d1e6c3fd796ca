"""How `make` finds a Python and knows that there is nothing to install: scripts/bootstrap.sh in a directory of its own."""

import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from scripts import bootstrap

SCRIPTS = Path(bootstrap.__file__).parent

INSTALLER = """\
import sys
from pathlib import Path

level, stamp = sys.argv[1:]
with Path("installed.txt").open("a") as log:
    print(level, file=log)
Path(".venv/bin").mkdir(parents=True, exist_ok=True)
if not Path(".venv/bin/python").exists():
    Path(".venv/bin/python").symlink_to(sys.executable)
Path(f".venv/.installed-{level}").write_text(stamp + "\\n")
"""
"""Stands for bootstrap.py: notes that it was called, and leaves the stamp."""


class Checkout:
    """A directory with a lock and the real bootstrap.sh, and a PATH with only the test's programs."""

    def __init__(self, directory: Path) -> None:
        self.directory = directory / "a checkout\twith 'odd' name"
        self.path = directory / "bin"
        (self.directory / "scripts").mkdir(parents=True)
        self.path.mkdir()
        shutil.copy(SCRIPTS / "bootstrap.sh", self.directory / "scripts")
        (self.directory / "scripts" / "bootstrap.py").write_text(INSTALLER)
        self.lock("one")
        for program in ("cat", "cksum", "dirname", "sh"):
            found = shutil.which(program)
            assert found
            (self.path / program).symlink_to(found)

    def lock(self, text: str) -> None:
        (self.directory / "uv.lock").write_text(text)

    def interpreter(self, name: str, body: str) -> None:
        program = self.path / name
        program.write_text(f"#!/bin/sh\n{body}\n")
        program.chmod(0o755)

    def bootstrap(self, *arguments: str) -> subprocess.CompletedProcess[str]:
        return subprocess.run(
            ["sh", self.directory / "scripts" / "bootstrap.sh", *arguments],
            cwd=self.path,
            env={"PATH": str(self.path)},
            stdin=subprocess.DEVNULL,
            capture_output=True,
            text=True,
            check=False,
        )

    def installed(self) -> list[str]:
        log = self.directory / "installed.txt"
        return log.read_text().split() if log.exists() else []


GOOD = f'exec "{sys.executable}" "$@"'
OLD = 'case "$*" in *version_info*) echo "3.9 0" ;; *) exit 1 ;; esac'
SHIM = 'echo "command not found" >&2; exit 127'
BARE = 'case "$*" in *ensurepip*) exit 1 ;; *) echo "3.12 1" ;; esac'


@pytest.fixture
def checkout(tmp_path: Path) -> Checkout:
    return Checkout(tmp_path)


def test_second_start_needs_no_python(checkout: Checkout):
    checkout.interpreter("python3.11", GOOD)
    assert checkout.bootstrap("dev").returncode == 0
    (checkout.path / "python3.11").unlink()
    again = checkout.bootstrap("dev")
    assert (again.returncode, again.stdout, again.stderr) == (0, "", "")
    assert checkout.installed() == ["dev"]


def test_a_changed_lock_is_installed_anew(checkout: Checkout):
    checkout.interpreter("python3", GOOD)
    checkout.bootstrap("dev")
    checkout.lock("two")
    checkout.bootstrap("dev")
    assert checkout.installed() == ["dev", "dev"]


def test_a_moved_directory_is_installed_anew(checkout: Checkout):
    checkout.interpreter("python3", GOOD)
    checkout.bootstrap("dev")
    checkout.directory = checkout.directory.rename(checkout.directory.with_name("elsewhere"))
    checkout.bootstrap("dev")
    assert checkout.installed() == ["dev", "dev"]


def test_dev_level_includes_runtime_but_not_the_reverse(checkout: Checkout):
    checkout.interpreter("python3", GOOD)
    for level in ("runtime", "dev", "runtime"):
        assert checkout.bootstrap(level).returncode == 0
    assert checkout.installed() == ["runtime", "dev"]


def test_old_or_broken_python_is_skipped(checkout: Checkout):
    checkout.interpreter("python3.11", SHIM)
    checkout.interpreter("python3.12", BARE)
    checkout.interpreter("python3", OLD)
    checkout.interpreter("python", GOOD)
    assert checkout.bootstrap("dev").returncode == 0
    assert checkout.installed() == ["dev"]


def test_old_python_is_refused_with_its_version(checkout: Checkout):
    checkout.interpreter("python3", OLD)
    done = checkout.bootstrap("dev")
    assert done.returncode == 69
    assert "Python 3.11 or newer is needed; found: python3 (3.9)." in done.stderr


def test_missing_python_is_refused(checkout: Checkout):
    done = checkout.bootstrap("dev")
    assert done.returncode == 69
    assert "found: none." in done.stderr


def test_python_without_ensurepip_is_refused_with_the_package_name(checkout: Checkout):
    checkout.interpreter("python3", BARE)
    done = checkout.bootstrap("dev")
    assert done.returncode == 69
    assert "apt install python3.12-venv" in done.stderr
    assert len(done.stderr.splitlines()) <= 3


def test_variables_of_another_install_target_are_removed(monkeypatch: pytest.MonkeyPatch):
    for name in bootstrap.MEDDLERS:
        monkeypatch.setenv(name, "x")
    environment = bootstrap.environment()
    assert not set(bootstrap.MEDDLERS) & set(environment)
    assert environment["UV_PROJECT_ENVIRONMENT"] == str(bootstrap.VENV)
    assert environment["PATH"] == os.environ["PATH"]


def test_an_unknown_level_is_wrong_usage(
    monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]
):
    monkeypatch.setattr(sys, "argv", ["bootstrap.py", "everything", "stamp"])
    assert bootstrap.main() == 2
    assert "'everything'" in capfd.readouterr().err
