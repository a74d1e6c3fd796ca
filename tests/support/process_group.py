"""Several real processes of `mimir` on one run, and the content of their store afterwards."""

import asyncio
import contextlib
import json
import os
import signal
import subprocess
import threading
from collections import Counter
from collections.abc import Generator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from mimir.domain.event import Event, EventKind
from tests.support.crash.process_forge import PythonProcess, run_python
from tests.support.killed_processes import MIMIR, PATIENCE_SECONDS, environment


class Gate:
    """A `sleep` for a play server: delayed requests wait until the test lets all of them go on."""

    def __init__(self) -> None:
        self._waiting = threading.Semaphore(0)
        self._open = threading.Event()

    def wait_for(self, requests: int) -> None:
        """Wait, in the test's own thread, until so many more requests are there."""
        for _ in range(requests):
            assert self._waiting.acquire(timeout=PATIENCE_SECONDS), "a model was not asked"

    def open(self) -> None:
        """Let everybody go on, from here on."""
        self._open.set()

    async def sleep(self, _seconds: float) -> None:
        """Wait until the gate is open."""
        self._waiting.release()
        while not self._open.is_set():  # noqa: ASYNC110  set by another thread
            await asyncio.sleep(0.01)


@dataclass(kw_only=True)
class Fleet:
    """Processes that are started in a test; those that are left are killed with it."""

    env: Mapping[str, str]
    logs: Path
    started: list["subprocess.Popen[str]"] = field(default_factory=list["subprocess.Popen[str]"])

    def start(self, where: Path, *words: str, **env: str) -> "subprocess.Popen[str]":
        """Start a command in a project."""
        with (self.logs / f"{len(self.started)}.log").open("w") as log:
            process = PythonProcess(
                [*MIMIR, *words],
                cwd=where,
                env={**self.env, **env},
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=subprocess.STDOUT,
                text=True,
                start_new_session=True,
            )
        self.started.append(process)
        return process

    def output_of(self, process: "subprocess.Popen[str]") -> str:
        """Return the output of a process so far."""
        return (self.logs / f"{self.started.index(process)}.log").read_text(encoding="utf-8")

    def end(self) -> None:
        """Kill the remaining processes."""
        for process in self.started:
            if process.poll() is None:
                with contextlib.suppress(ProcessLookupError):
                    os.killpg(process.pid, signal.SIGKILL)
            process.wait(PATIENCE_SECONDS)


@contextlib.contextmanager
def fleet(tmp_path: Path, url: str, **env: str) -> Generator[Fleet]:
    """Start processes whose model is at `url`."""
    logs = tmp_path / "logs"
    logs.mkdir()
    given = environment(url, tmp_path) | {"PYTHONPATH": str(Path.cwd()), **env}
    made = Fleet(env=given, logs=logs)
    try:
        yield made
    finally:
        made.end()


def holders(events: Sequence[Event]) -> Counter[str]:
    """Count the attempts that each process has begun or taken over."""
    kinds = (EventKind.ATTEMPT_STARTED, EventKind.LEASE_TAKEN)
    return Counter(str(e.data["owner"]) for e in events if e.kind in kinds)


def doubled(events: Sequence[Event]) -> list[str]:
    """Name the tasks that ended more than once."""
    ends = Counter(e.task for e in events if e.data.get("to") in ("completed", "failed", "blocked"))
    return [task for task, times in ends.items() if times > 1]


def newest_run(project: Path, env: Mapping[str, str], *words: str) -> Mapping[str, object]:
    """Return `mimir status --json` of a project."""
    done = run_python([*MIMIR, "status", *words, "--json"], cwd=project, env=env)
    assert done.returncode == 0, done.stderr
    return json.loads(done.stdout)
