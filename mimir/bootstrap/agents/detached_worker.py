"""Worker process of an invocation that its caller does not wait for."""

import os
import subprocess
import sys
from pathlib import Path

from mimir.settings.model import Settings
from mimir.workspace.state_dir import ROOM


def start_process(project: Path, settings: Settings, run: str, model: str) -> Path:
    """Start a worker of a run that may leave the queue; return its log."""
    # Credentials of an address must not get into the environment of a process.
    store = "" if "@" in settings.store else settings.store
    return start_worker(project, run, model=model, store=store)


def start_worker(project: Path, run: str, *, model: str, store: str) -> Path:
    """Start a worker of a run in its own process group; return its log.

    Args:
        project: Directory of the run.
        run: Its id.
        model: Model of the caller; empty: that of the settings.
        store: Address of the caller's store; empty: that of the settings.
    """
    log = project / ROOM / "log" / f"{run}.log"
    log.parent.mkdir(mode=0o700, exist_ok=True)
    given = {"MIMIR_MODEL": model, "MIMIR_STORE": store}
    # Options of the caller become variables: the worker reads the settings itself.
    environment = {**os.environ, **{name: value for name, value in given.items() if value}}
    words = ("worker", "--run", run)
    descriptor = os.open(log, os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o600)
    try:
        subprocess.run(
            # The shell ends at once, so the worker is no child of this process.
            ["/bin/sh", "-c", '"$@" &', "sh", sys.executable, "-P", "-m", "mimir", *words],
            check=True,
            cwd=project,
            env=environment,
            stdin=subprocess.DEVNULL,
            stdout=descriptor,
            stderr=descriptor,
            # A signal to the caller's terminal must not end it.
            start_new_session=True,
        )
    finally:
        os.close(descriptor)
    return log
