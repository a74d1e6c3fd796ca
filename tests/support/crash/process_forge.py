"""Processes of `mimir` that start in a moment: forked from one that has imported everything already.

`Forge` is the driver's side; the module run as a program is the process that forks. It has one thread, so forking is safe.
"""

# Counting refusals replaces a private function of the store.
# pyright: reportPrivateUsage=false

import contextlib
import gc
import json
import os
import signal
import subprocess
import sys
import threading
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Self

from tests.support.crash.crash_points import Fuse, Point, light

ROOT = Path(__file__).resolve().parents[3]
PATIENCE_SECONDS = 120


class Child:
    """One process of mimir."""

    def __init__(self, forge: "Forge", pid: int, out: Path, err: Path) -> None:
        self._forge = forge
        self.pid = pid
        self.out = out
        self.err = err
        self._code: int | None = None

    def signal(self, number: signal.Signals, *, whole: bool = False) -> None:
        """Send a signal, to one that has ended already none; `whole`: also to the git commands that it has running."""
        with contextlib.suppress(ProcessLookupError):
            (os.killpg if whole else os.kill)(self.pid, number)

    def wait(self, seconds: float = PATIENCE_SECONDS) -> int:
        """Return its exit code, negative for a signal; one that takes too long is killed."""
        if self._code is None:
            timer = threading.Timer(seconds, self.signal, (signal.SIGKILL,))
            timer.start()
            try:
                self._code = int(str(self._forge.ask({"wait": self.pid})["code"]))
            finally:
                timer.cancel()
        return self._code

    @property
    def has_ended(self) -> bool:
        """True: it has ended and waits to be asked for."""
        with contextlib.suppress(OSError):
            return Path(f"/proc/{self.pid}/stat").read_text().rpartition(")")[2].split()[0] == "Z"
        return True

    @property
    def said(self) -> str:
        """The end of what it said on its standard error."""
        return self.err.read_text(encoding="utf-8", errors="replace")[-2000:]


@dataclass(frozen=True, kw_only=True)
class Order:
    """What a child is to do."""

    words: Sequence[str]
    cwd: Path
    env: Mapping[str, str]
    out: Path
    err: Path
    die_at: Point | None = None
    trace: Path | None = None
    effects: Path | None = None
    refused: Path | None = None
    """Gets one line for each write that was refused for its old fence."""


class Forge:
    """Starts children, one or several at a time; used by one thread."""

    def __init__(self) -> None:
        self._process = subprocess.Popen(
            [sys.executable, "-m", "tests.support.crash.process_forge"],
            cwd=ROOT,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
        )

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        assert self._process.stdin
        assert self._process.stdout
        self._process.stdin.close()
        self._process.wait()
        self._process.stdout.close()

    def start(self, order: Order) -> Child:
        """Fork a process that runs a command line."""
        said = {
            "words": list(order.words),
            "cwd": str(order.cwd),
            "env": dict(order.env),
            "out": str(order.out),
            "err": str(order.err),
            "die_at": str(order.die_at or ""),
            "trace": str(order.trace or ""),
            "effects": str(order.effects or ""),
            "refused": str(order.refused or ""),
        }
        return Child(self, int(str(self.ask(said)["pid"])), order.out, order.err)

    def ask(self, what: Mapping[str, object]) -> Mapping[str, object]:
        """Say one line, read one."""
        assert self._process.stdin
        assert self._process.stdout
        self._process.stdin.write(json.dumps(what) + "\n")
        self._process.stdin.flush()
        return json.loads(self._process.stdout.readline())


def main() -> None:
    """Import everything, then fork on demand until the standard input ends."""
    _import_all()
    gc.freeze()  # what is here is never collected: its pages stay shared
    for line in sys.stdin:
        order = json.loads(line)
        if "wait" in order:
            _, status = os.waitpid(order["wait"], 0)
            said = {"code": os.waitstatus_to_exitcode(status)}
        else:
            said = {"pid": os.fork()}
            if said["pid"] == 0:
                _be(order)
        print(json.dumps(said), flush=True)


def _import_all() -> None:
    import pkgutil
    from importlib import import_module

    import mimir

    for found in pkgutil.walk_packages(mimir.__path__, "mimir."):
        # Reporters run inside a project's test runner, and import nothing of mimir.
        others = ("mimir.demo", "mimir.qc.results.reporters.", "mimir.__main__")
        if not found.name.startswith(others):
            import_module(found.name)


def _be(order: Mapping[str, str]) -> None:
    """Become a process of mimir; never comes back."""
    os.setsid()
    os.dup2(os.open(os.devnull, os.O_RDONLY), 0)
    flags = os.O_WRONLY | os.O_CREAT | os.O_APPEND
    os.dup2(os.open(order["out"], flags, 0o600), 1)
    os.dup2(os.open(order["err"], flags, 0o600), 2)
    os.chdir(order["cwd"])
    os.environ.clear()
    os.environ.update(order["env"])  # type: ignore[arg-type]
    code = 70
    try:
        at = Point.read(order["die_at"]) if order["die_at"] else None
        effects = Path(order["effects"]) if order["effects"] else None
        light(Fuse(at, Path(order["trace"]) if order["trace"] else None), effects)
        if order["refused"]:
            _note_refusals(Path(order["refused"]))
        from mimir.cli.main import run

        code = run(list(order["words"]))
    finally:
        sys.stdout.flush()
        sys.stderr.flush()
        os._exit(code)


def _note_refusals(path: Path) -> None:
    """Write down each write that finds its fence old."""
    from mimir.store.operations import claims

    lost = claims._lease_lost

    def noted(task: str, fence: int) -> object:
        with path.open("a", encoding="utf-8") as out:
            out.write(f"{os.getpid()} {task} {fence}\n")
        return lost(task, fence)

    claims._lease_lost = noted  # type: ignore[assignment]


if __name__ == "__main__":
    main()
