"""Several real processes of `mimir` on one run, and what their store says of it afterwards."""

import asyncio
import contextlib
import json
import os
import signal
import subprocess
import threading
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from mimir.domain.event import Event, EventKind
from mimir.store import runs
from tests.support.kills import MIMIR, PATIENCE_SECONDS, environment


class Barrier:
    """A `sleep` for a play server: the first `parties` requests that are delayed go on together, when all of them are there."""

    def __init__(self, parties: int) -> None:
        self._missing = parties
        self._open = asyncio.Event()
        self._first = threading.Event()

    def wait_for_first(self) -> None:
        """Wait, in the test's own thread, until the first request is there."""
        assert self._first.wait(PATIENCE_SECONDS), "the model was never asked"

    async def sleep(self, _seconds: float) -> None:
        """Wait for the others."""
        self._missing -= 1
        self._first.set()
        if self._missing <= 0:
            self._open.set()
        await self._open.wait()


@dataclass(kw_only=True)
class Fleet:
    """Processes that are started in a test; those that are left are killed with it."""

    env: Mapping[str, str]
    logs: Path
    started: list["subprocess.Popen[str]"] = field(default_factory=list)

    def start(self, where: Path, *words: str, **env: str) -> "subprocess.Popen[str]":
        """Start a command in a project."""
        with (self.logs / f"{len(self.started)}.log").open("w") as log:
            process = subprocess.Popen(
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

    def said(self, process: "subprocess.Popen[str]") -> str:
        """Return what a process has said so far."""
        return (self.logs / f"{self.started.index(process)}.log").read_text(encoding="utf-8")

    def end(self) -> None:
        """Kill what is left."""
        for process in self.started:
            if process.poll() is None:
                with contextlib.suppress(ProcessLookupError):
                    os.killpg(process.pid, signal.SIGKILL)
            process.wait(PATIENCE_SECONDS)


@contextlib.contextmanager
def fleet(tmp_path: Path, url: str, **env: str) -> Iterator[Fleet]:
    """Start processes whose model is at `url`."""
    logs = tmp_path / "logs"
    logs.mkdir()
    given = environment(url, tmp_path) | {"PYTHONPATH": str(Path.cwd()), **env}
    made = Fleet(env=given, logs=logs)
    try:
        yield made
    finally:
        made.end()


async def told(store: object, run: str) -> Sequence[Event]:
    """Return a run's events."""
    return await store.read(lambda reads: runs.events(reads, run))  # type: ignore[attr-defined]


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
    done = subprocess.run(
        [*MIMIR, "status", *words, "--json"],
        cwd=project,
        env=dict(env),
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        timeout=PATIENCE_SECONDS,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    return json.loads(done.stdout)
