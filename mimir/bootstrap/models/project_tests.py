"""Test command of a project: found by its files, and run once in the sandbox."""

import asyncio
import os
import shutil
import tempfile
from pathlib import Path

from mimir.domain.broken_pipes import forgive_broken_pipes
from mimir.orchestrator.sandbox_facts import TEST_SECONDS, find_test_command
from mimir.workspace.sandbox.sandbox import CommandResult, Sandbox

_NOT_COPIED = (".git", ".mimir", ".venv", "venv", "node_modules", "target", "__pycache__")


def find_tests(project: Path) -> str:
    """Return the usual test command of a project; empty: none is known."""
    try:
        names = sorted(os.listdir(project))[:10_000]  # noqa: PTH208  names alone
        tests = project / "tests"
        inner = sorted(path.name for path in tests.iterdir()) if tests.is_dir() else []
    except OSError:
        return ""

    def read(path: str) -> str:
        try:
            return (project / path).read_text(encoding="utf-8", errors="replace")[:1_000_000]
        except OSError:
            return ""

    return find_test_command([*names, *(f"tests/{name}" for name in inner)], read)


async def run_tests(project: Path, command: str, sandbox: Sandbox) -> CommandResult:
    """Run a test command once, on a copy of the project.

    Raises:
        OSError: The project cannot be copied.
        SandboxError: The sandbox is missing or broken.
    """
    with tempfile.TemporaryDirectory(prefix="mimir-init-") as place:
        copy = Path(place) / "work"
        ignore = shutil.ignore_patterns(*_NOT_COPIED)
        await asyncio.to_thread(shutil.copytree, project, copy, symlinks=True, ignore=ignore)
        return await sandbox.run(
            forgive_broken_pipes(("bash", "-o", "pipefail", "-c", command)),
            workspace=copy,
            seconds=TEST_SECONDS,
            project=project,
        )
