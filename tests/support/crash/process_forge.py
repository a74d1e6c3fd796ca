"""Processes of `mimir` that start in a moment: forked from one that has imported everything already.

`Forge` is the driver's side; the module run as a program is the process that forks. It has one thread, so forking is safe.
`PythonProcess` is a `subprocess.Popen` whose process is forked so.
"""

# Counting refusals replaces a private function of the store; `Popen` has no public method that starts a process.
# pyright: reportPrivateUsage=false

import atexit
import contextlib
import functools
import gc
import json
import os
import runpy
import select
import signal
import socket
import subprocess
import sys
import threading
import traceback
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Self, cast

from tests.support.crash.crash_points import Fuse, Point, light
from tests.support.crash.durable_state import DurableState

ROOT = Path(__file__).resolve().parents[3]
PYTHON = sys.executable
PATIENCE_SECONDS = 300
MESSAGE_BYTES = 1 << 17


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
                self._code = os.waitstatus_to_exitcode(self._forge.wait_for(self.pid))
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
    def error_tail(self) -> str:
        """The end of its standard error."""
        return self.err.read_text(encoding="utf-8", errors="replace")[-2000:]


@dataclass(frozen=True, kw_only=True)
class Order:
    """The order to a child process."""

    words: Sequence[str]
    cwd: Path
    env: Mapping[str, str]
    out: Path
    err: Path
    die_at: Point | None = None
    trace: Path | None = None
    watched: Path | None = None
    """Directory whose state the trace notes at each point."""
    effects: Path | None = None
    refused: Path | None = None
    """Gets one line for each write that was refused for its old fence."""


class Forge:
    """Starts children, one or several at a time."""

    def __init__(self) -> None:
        self._socket, other = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
        self._guard = threading.Lock()
        with other:
            self._process = subprocess.Popen(
                [PYTHON, "-m", "tests.support.crash.process_forge", str(other.fileno())],
                cwd=ROOT,
                stdin=subprocess.DEVNULL,
                pass_fds=[other.fileno()],
                start_new_session=True,
            )

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self._socket.close()
        self._process.wait()

    def start(self, order: Order) -> Child:
        """Fork a process that runs a command line."""
        extra = {
            "die_at": str(order.die_at or ""),
            "trace": str(order.trace or ""),
            "watched": str(order.watched or ""),
            "effects": str(order.effects or ""),
            "refused": str(order.refused or ""),
        }
        append = os.O_WRONLY | os.O_CREAT | os.O_APPEND
        opened = [os.open(os.devnull, os.O_RDONLY)]
        opened += [os.open(path, append, 0o600) for path in (order.out, order.err)]
        try:
            pid = self.fork(("-m", "mimir", *order.words), order.cwd, order.env, opened, extra)
        finally:
            for one in opened:
                os.close(one)
        return Child(self, pid, order.out, order.err)

    def fork(
        self,
        words: Sequence[str],
        cwd: Path,
        env: Mapping[str, str],
        files: Sequence[int],
        extra: Mapping[str, str] | None = None,
    ) -> int:
        """Fork a Python process; return its pid.

        Args:
            words: The arguments of the interpreter: `-m MODULE …` or `-c TEXT …`.
            cwd: Its directory.
            env: Its environment.
            files: Its three standard files.
            extra: Its way to die and its notes, as in `Order`.
        """
        order = {"words": list(words), "cwd": str(cwd), "env": dict(env), "extra": extra}
        return self._ask(order, files)["pid"]

    def wait_for(self, pid: int) -> int:
        """Wait for the end of a child; return how it ended, as `os.waitpid` does."""
        with os.fdopen(os.pidfd_open(pid), "rb", buffering=0) as file:
            select.select([file], [], [])
        return self._ask({"ended": pid})["status"]

    def status(self, pid: int) -> int | None:
        """Return how a child ended. None: it runs."""
        return self._ask({"ended": pid}).get("status")

    def _ask(self, order: Mapping[str, object], files: Sequence[int] = ()) -> dict[str, int]:
        with self._guard:
            socket.send_fds(self._socket, [json.dumps(order).encode()], files)
            return json.loads(self._socket.recv(MESSAGE_BYTES))


@functools.cache
def shared_forge() -> Forge:
    """Return the forge of this process, which ends with it."""
    forge = Forge()
    atexit.register(forge.__exit__)
    return forge


class PythonProcess(subprocess.Popen[str]):
    """A process of this Python, forked with all modules of mimir in it; else as any other `Popen`."""

    def _execute_child(self, args: Any, *rest: Any) -> None:
        """Start the process; `rest` is passed by `Popen`, by position."""
        program, *words = map(str, args)
        assert program == PYTHON, program
        cwd, env, *_ = rest[4:]
        files = [
            number if file == -1 else file
            for number, file in enumerate((rest[9], rest[12], rest[14]))
        ]
        self.pid = shared_forge().fork(words, Path(cwd or ".").resolve(), env or os.environ, files)
        self._child_created = True
        cast("Any", self)._close_pipe_fds(*rest[9:15])

    def _try_wait(self, wait_flags: int) -> tuple[int, int]:
        """Wait for the process through its parent."""
        forge = shared_forge()
        look = forge.status if wait_flags & os.WNOHANG else forge.wait_for
        status = look(self.pid)
        return (0, 0) if status is None else (self.pid, status)

    def _internal_poll(self, *_: object, **__: object) -> int | None:
        """Look whether it has ended."""
        if self.returncode is None:
            with cast("Any", self)._waitpid_lock:
                pid, status = self._try_wait(os.WNOHANG)
                if pid:
                    cast("Any", self)._handle_exitstatus(status)
        return self.returncode


def run_python(
    words: Sequence[str | Path], *, cwd: Path, env: Mapping[str, str]
) -> "subprocess.CompletedProcess[str]":
    """Run a process of this Python to its end, as `subprocess.run` does."""
    with PythonProcess(
        words,
        cwd=cwd,
        env=dict(env),
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    ) as process:
        try:
            out, err = process.communicate()
        except BaseException:  # the test's own time is over
            process.kill()
            raise
    return subprocess.CompletedProcess(words, process.returncode, out, err)


def main() -> None:
    """Import everything, then fork on demand until the other side has closed the socket."""
    orders = socket.socket(fileno=int(sys.argv[1]))
    _import_all()
    gc.freeze()  # existing objects are never collected: their pages stay shared
    while True:
        text, files, _, _ = socket.recv_fds(orders, MESSAGE_BYTES, 3)
        if not text:
            return
        order = json.loads(text)
        if "ended" in order:
            pid, status = os.waitpid(order["ended"], os.WNOHANG)
            answer = {"status": status} if pid else {}
        else:
            answer = {"pid": os.fork()}
            if answer["pid"] == 0:
                orders.close()
                _be(order, files)
            for file in files:
                os.close(file)
        orders.send(json.dumps(answer).encode())


def _import_all() -> None:
    import pkgutil
    from importlib import import_module

    import mimir

    import_module("langgraph.graph")  # mimir imports it with the first attempt

    for found in pkgutil.walk_packages(mimir.__path__, "mimir."):
        # Reporters run inside a project's test runner, and import nothing of mimir.
        others = ("mimir.demo", "mimir.qc.results.reporters.", "mimir.__main__")
        if not found.name.startswith(others):
            import_module(found.name)


def _be(order: Mapping[str, Any], files: Sequence[int]) -> None:
    """Become a Python process; never comes back."""
    os.setsid()
    for number, file in enumerate(files):
        os.dup2(file, number)
        os.close(file)
    how: dict[str, Any] = {"mode": "w", "encoding": "utf-8", "closefd": False}
    sys.stdout = open(1, errors="surrogateescape", **how)  # noqa: SIM115  as long as the process
    sys.stderr = open(2, errors="backslashreplace", buffering=1, **how)  # noqa: SIM115
    os.chdir(order["cwd"])
    os.environ.clear()
    os.environ.update(order["env"])
    code = 70
    try:
        if order["extra"]:
            _prepare(order["extra"])
        code = _run(order["words"])
    except Exception:  # noqa: BLE001  as the interpreter does
        traceback.print_exc()
    finally:
        with contextlib.suppress(OSError):
            sys.stdout.flush()
            sys.stderr.flush()
        os._exit(code)


def _prepare(extra: Mapping[str, str]) -> None:
    """Let this process die at a point, and record its actions."""
    at = Point.read(extra["die_at"]) if extra["die_at"] else None
    effects = Path(extra["effects"]) if extra["effects"] else None
    trace = Path(extra["trace"]) if extra["trace"] else None
    state = DurableState(Path(extra["watched"])) if extra["watched"] else None
    light(Fuse(at, trace, state), effects)
    if extra["refused"]:
        _note_refusals(Path(extra["refused"]))


def _run(words: Sequence[str]) -> int:
    """Run the module or file of the interpreter's arguments; return the exit code."""
    how, what, *rest = words
    sys.argv = [what if how == "-m" else how, *rest]
    try:
        if how == "-m":
            runpy.run_module(what, run_name="__main__", alter_sys=True)
        else:
            exec(what, {"__name__": "__main__"})
    except SystemExit as end:
        return end.code if isinstance(end.code, int) else int(end.code is not None)
    return 0


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
