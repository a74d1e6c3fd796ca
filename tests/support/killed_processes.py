"""Real processes of `mimir` that die: killed by SIGKILL at an event, or by themselves at a named place; then resumed.

The truth is counted outside the engine: the HTTP model's log of requests, and git's own look at the result.
"""

import json
import os
import signal
import subprocess
import sys
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, cast

from tests.support.crash.process_forge import PythonProcess, run_python

MIMIR = (sys.executable, "-m", "mimir")
PATIENCE_SECONDS = 100


def environment(url: str, home: Path) -> dict[str, str]:
    """Return the environment of a user whose model is at `url`."""
    kept = {k: v for k, v in os.environ.items() if not k.startswith(("OPENAI_", "MIMIR_"))}
    return {
        **kept,
        "HOME": str(home),
        "OPENAI_BASE_URL": url,
        "OPENAI_API_KEY": "sk-test-0123456789",
        "MIMIR_LLM__LANE_HEADER": "true",
    }


@dataclass(frozen=True, kw_only=True)
class Place:
    """A project in which mimir runs."""

    project: Path
    env: Mapping[str, str]

    def run(
        self, *words: str, program: Sequence[str] = MIMIR
    ) -> "subprocess.CompletedProcess[str]":
        """Run a command to its end."""
        return run_python([*program, *words], cwd=self.project, env=self.env)

    def killed_after(self, lines: int, *words: str) -> bool:
        """Run a command with `--json` and kill it after so many events; False: it ended before."""
        process = PythonProcess(
            [*MIMIR, *words, "--json"],
            cwd=self.project,
            env=dict(self.env),
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
            text=True,
        )
        assert process.stdout is not None
        with process, process.stdout as out:
            for number, _ in enumerate(out, start=1):
                if number >= lines:
                    process.send_signal(signal.SIGKILL)
                    break
            process.wait(PATIENCE_SECONDS)
        return process.returncode == -signal.SIGKILL

    def status(self) -> dict[str, object]:
        """Return `mimir status --json`."""
        ended = self.run("status", "--json")
        assert ended.returncode == 0, ended.stderr
        return json.loads(ended.stdout)

    def result(self, run: str) -> dict[str, str]:
        """Return the files of a run's branch, by git itself."""
        git = ["git", "--git-dir", str(self.project / ".mimir/work/history.git")]
        tip = f"refs/heads/mimir/{run}"
        names = subprocess.run(
            [*git, "ls-tree", "-r", "--name-only", tip], capture_output=True, text=True, check=True
        ).stdout.split()
        return {
            name: subprocess.run(
                [*git, "show", f"{tip}:{name}"], capture_output=True, text=True, check=True
            ).stdout
            for name in names
        }


def durable_status(status: Mapping[str, object]) -> dict[str, tuple[object, ...]]:
    """Return values that must not depend on kills: each task's status, attempts, score and criteria."""
    tasks = cast("list[dict[str, Any]]", status["tasks"])
    assert isinstance(tasks, list)
    return {t["id"]: (t["status"], t["attempts"], t["score"], str(t["criteria"])) for t in tasks}


def repeated(log: Path) -> int:
    """Count requests that the model was asked more than once."""
    seen = Counter(
        (call["lane"], call["turn"], call["hash"])
        for call in map(json.loads, log.read_text(encoding="utf-8").splitlines())
    )
    return sum(times - 1 for times in seen.values())
