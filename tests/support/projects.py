"""Small real projects for tests: files on disk in a real git repository with one commit."""

import subprocess
from collections.abc import Mapping
from pathlib import Path

CALCULATOR: Mapping[str, str] = {
    "calc.py": "def add(a, b):\n    return a + b\n",
    "tests/test_calc.py": (
        "from calc import add\n\n\ndef test_adds_two_numbers():\n    assert add(2, 3) == 5\n"
    ),
    "pyproject.toml": '[tool.pytest.ini_options]\npythonpath = ["."]\n',
    "README.md": "# A calculator\n",
    ".gitignore": "__pycache__/\n.mimir/\n",
}
"""A project whose one test is green."""


def git(directory: Path, *arguments: str) -> str:
    """Run git in a directory and return its output, without the last line's end.

    Raises:
        AssertionError: Git refused; its message is in the error.
    """
    done = subprocess.run(
        ["git", "-C", str(directory), *arguments],
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, f"git {' '.join(arguments)}: {done.stderr.strip()}"
    return done.stdout.rstrip("\n")


def write_files(directory: Path, files: Mapping[str, str]) -> None:
    """Write text files below a directory, byte for byte; missing folders are made."""
    for name, text in files.items():
        path = directory / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(text.encode("utf-8"))


def make_project(directory: Path, files: Mapping[str, str] = CALCULATOR) -> Path:
    """Make a git repository that holds `files` in one commit on `main`, and return its directory."""
    directory.mkdir(parents=True, exist_ok=True)
    write_files(directory, files)
    git(directory, "init", "--quiet", "--initial-branch=main")
    git(directory, "add", "--all")
    git(directory, "commit", "--quiet", "--message", "Start")
    return directory
