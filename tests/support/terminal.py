"""A process behind a terminal, or behind pipes, as a user or a script starts it."""

import fcntl
import os
import pty
import struct
import subprocess
import sys
import termios
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import IO

ROOT = Path(__file__).resolve().parents[2]
FAKE = "from tests.support import fake_app as f; from mimir.cli.main import main; f.install(f.{mimir}); main()"


def command(mimir: str, *arguments: str) -> list[str]:
    """Return the command that starts `mimir` with a stand-in behind it, written as an expression of `fake_app`."""
    return [sys.executable, "-c", FAKE.format(mimir=mimir), *arguments]


def environment(**more: str) -> dict[str, str]:
    """Return this process's environment with the tests' modules in reach, and a model that can be asked."""
    own = {"PYTHONPATH": str(ROOT), "TERM": "xterm-256color"}
    return {**os.environ, **own, "OPENAI_BASE_URL": "http://127.0.0.1:9/v1", **more}


def piped(
    argv: Sequence[str], cwd: Path, env: Mapping[str, str] | None = None
) -> subprocess.Popen[str]:
    """Start a process whose streams are pipes."""
    return subprocess.Popen(
        argv,
        cwd=cwd,
        env=env or environment(),
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )


class Terminal:
    """A process that owns a terminal of some size; its output is kept."""

    def __init__(
        self, argv: Sequence[str], cwd: Path, *, columns: int = 80, env: Mapping[str, str]
    ) -> None:
        self._screen, inner = pty.openpty()
        fcntl.ioctl(inner, termios.TIOCSWINSZ, struct.pack("HHHH", 24, columns, 0, 0))
        self.process = subprocess.Popen(
            argv, cwd=cwd, env=env, stdin=inner, stdout=inner, stderr=inner, start_new_session=True
        )
        os.close(inner)
        self.written = ""

    def until(self, text: str) -> str:
        """Read until `text` was written; all that was written so far."""
        while text not in self.written and self._read():
            pass
        assert text in self.written, self.written
        return self.written

    def hang_up(self) -> None:
        """Close the other end; the process gets no signal, for the terminal does not control it."""
        os.close(self._screen)

    def type(self, text: str) -> None:
        """Type something."""
        os.write(self._screen, text.encode())

    def end(self) -> int:
        """Read to the end; the exit code."""
        while self._read():
            pass
        os.close(self._screen)
        return self.process.wait()

    def _read(self) -> bool:
        try:
            more = os.read(self._screen, 65536)
        except OSError:  # the other end is closed: Linux says EIO
            return False
        self.written += more.decode("utf-8", "replace")
        return bool(more)


def lines_until(stream: IO[str] | None, text: str) -> list[str]:
    """Read lines until one holds `text`."""
    assert stream is not None
    seen: list[str] = []
    for line in stream:
        seen.append(line)
        if text in line:
            return seen
    raise AssertionError(f"{text!r} never came: {seen}")
