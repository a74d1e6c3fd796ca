"""Output streams of the process; foreign text is made harmless here.

A terminal obeys control characters: they move the cursor, rename the window, answer questions and reverse text. `clean` replaces
each of them with a visible escape.
"""

import errno
import os
import re
import sys
from collections.abc import Generator, Mapping
from contextlib import contextmanager, nullcontext, suppress
from pathlib import Path
from typing import Any, TextIO, cast

from mimir.cli.symbols import Symbols, for_encoding
from mimir.errors import UsageError

# Patterns are texts, which `re` compiles once at first use: `_CONTROL` alone takes 3 ms.
# Colours of test runners are dropped before `_CONTROL` checks the joined text.
_COLOURS = r"\x1b\[[0-9;]{0,30}m"
_CONTROL = (
    "[\x00-\x08\x0b-\x1f\x7f-\x9f"  # C0 without tab and line feed, DEL, C1
    "\xad\u061c\u180e\u200b\u200e\u200f\u2028-\u202e\u2060-\u206f\ufeff\ufff9-\ufffb"  # invisible, turn text around
    "\ud800-\udfff\U000e0000-\U000e007f]"  # halves of characters, invisible tags
)
_CLOSED = (errno.EIO, errno.ENXIO, errno.EBADF, errno.ECONNRESET, errno.ENOTCONN)
"""Errors of a write to a terminal, a socket or a descriptor that is gone."""
_SHOW_CURSOR = b"\x1b[?25h\n"
WIDE = 200
"""Columns of lines that go to a pipe."""
MAX_ERROR_CHARS = 400
"""Most characters of one line of an error."""


def clean(text: str) -> str:
    """Return `text` with control characters as escapes, except tabs and line feeds."""
    if _is_plain(text):
        return text
    # A single carriage return would overwrite the line, so only line ends are normalised.
    lines = re.sub(_COLOURS, "", text.replace("\r\n", "\n"))
    return re.sub(_CONTROL, lambda found: _escape(found[0]), lines)


def _is_plain(text: str) -> bool:
    # A quick test that most of the thousands of texts of a status pass.
    return text.isascii() and text.isprintable()


def clean_line(text: str, limit: int | None = None) -> str:
    """Return `text` harmless and on one line; text over `limit` characters ends with `…`."""
    spaced = text if _is_plain(text) and "  " not in text else clean(re.sub(r"\s+", " ", text))
    line = spaced.strip()
    return line if limit is None or len(line) <= limit else f"{line[: limit - 1]}…"


def _escape(character: str) -> str:
    code = ord(character)
    if code <= 0xFF:
        return f"\\x{code:02x}"
    return f"\\u{code:04x}" if code <= 0xFFFF else f"\\U{code:08x}"


class Console:
    """Standard output for results, standard error for everything else."""

    def __init__(self, out: TextIO, err: TextIO) -> None:
        self.out = out
        self.err = err
        self._is_cursor_hidden = False
        self._saved_modes: tuple[int, list[Any]] | None = None

    @classmethod
    def of_process(cls) -> "Console":
        """Return the console of this process's streams.

        A closed stream discards its text; a character that a stream cannot encode is replaced.
        """
        return cls(_open_stream(sys.stdout), _open_stream(sys.stderr))

    @property
    def is_terminal(self) -> bool:
        """True if standard output is a terminal."""
        return self.out.isatty()

    @property
    def is_error_terminal(self) -> bool:
        """True if standard error is a terminal."""
        return self.err.isatty()

    @property
    def can_ask(self) -> bool:
        """True if the user can answer a question."""
        return sys.stdin is not None and sys.stdin.isatty() and self.err.isatty()  # pyright: ignore[reportUnnecessaryComparison]  closed before the process began

    @property
    def glyphs(self) -> Symbols:
        """The symbols that the terminal can show."""
        return for_encoding(self.out.encoding)

    @property
    def width(self) -> int:
        """Columns of the terminal; `WIDE` in a pipe."""
        if not self.is_terminal:
            return WIDE
        try:
            return os.get_terminal_size(self.out.fileno()).columns or 80
        except (OSError, ValueError):
            return 80

    def say(self, text: str = "") -> None:
        """Print a result, line breaks kept; on a terminal, long lines are wrapped at words."""
        self._write(
            self.out, _fit_lines(clean(text), self.width) if self.is_terminal else clean(text)
        )

    def print_exact(self, text: str) -> None:
        """Print a text for a program, such as a patch or a script: no line is wrapped."""
        self._write(self.out, clean(text))

    def page(self, text: str) -> None:
        """Print a long result: through the user's pager on a terminal that it does not fit."""
        if not self.is_terminal or not self._show_in_pager(clean(text)):
            self.print_exact(text)

    def _show_in_pager(self, text: str) -> bool:
        """Return whether a pager showed the text."""
        import shutil
        import subprocess

        lines = shutil.get_terminal_size().lines
        if text.count("\n") + 1 < lines:
            return False
        pager = shutil.which("less") or shutil.which("more")
        if pager is None:
            return False
        # `-F`: a short text needs no key. Colours and control codes are already replaced.
        words = [pager, "-FX"] if pager.endswith("less") else [pager]
        with suppress(OSError):
            return subprocess.run(words, input=text + "\n", text=True, check=False).returncode == 0
        return False

    def note(self, text: str) -> None:
        """Print one line to standard error; on a terminal, it is wrapped at words."""
        line = clean_line(text)
        self._write(self.err, _fit_lines(line, self.width) if self.is_error_terminal else line)

    def json(self, value: Mapping[str, object]) -> None:
        """Print one JSON object on one line, as ASCII."""
        import json  # `mimir --help` does not wait for it

        # ASCII only, so that JSON is harmless on a terminal too.
        self._write(self.out, json.dumps(value, ensure_ascii=True, allow_nan=False, default=str))

    async def ask(self, question: str) -> bool:
        """Ask for yes or no on standard error; only a clear yes is yes."""
        return (await self._prompt(f"{question} [y/N]") or "").lower() in ("y", "yes")

    def require_terminal(self, *, next_step: str) -> None:
        """Require a terminal on which the user can confirm.

        Raises:
            UsageError: There is none; the next step does without.
        """
        if not self.can_ask:
            problem = "Cannot ask for confirmation: standard input is not a terminal."
            raise UsageError(problem, next_step=next_step)

    async def ask_line(self, question: str, *, hidden: bool = False) -> str:
        """Ask for one line on standard error; a hidden one is not shown while it is typed.

        Raises:
            UsageError: The input has ended.
        """
        answer = await self._prompt(question, hidden=hidden)
        if answer is None:
            raise UsageError("The input has ended before the answer.", next_step="Answer by flags.")
        return answer

    async def _prompt(self, question: str, *, hidden: bool = False) -> str | None:
        """Return the line that the user types; None: the input has ended."""
        import termios

        self.err.write(f"{_fit_lines(clean_line(question), self.width)} ")
        self.err.flush()
        silent = self._without_modes(sys.stdin.fileno(), termios.ECHO) if hidden else nullcontext()
        with silent:
            return await self._read_line(hidden=hidden)

    async def _read_line(self, *, hidden: bool) -> str | None:
        import asyncio  # costs more than everything else that `mimir --help` needs

        loop = asyncio.get_running_loop()
        answered: asyncio.Future[None] = loop.create_future()
        # A reader of the loop, not a blocking read: a signal must still end the wait.
        loop.add_reader(sys.stdin.fileno(), lambda: answered.done() or answered.set_result(None))
        try:
            await answered
        finally:
            loop.remove_reader(sys.stdin.fileno())
        answer = sys.stdin.readline()
        # At the end of the input, the cursor is still on the line of the question.
        if hidden or not answer.endswith("\n"):
            self.err.write("\n")
        return answer.strip() if answer else None

    @contextmanager
    def raw_input(self, fd: int) -> Generator[None]:
        """Read single characters of a terminal without their echo while the block runs."""
        import termios

        with self._without_modes(fd, termios.ICANON | termios.ECHO):
            yield

    @contextmanager
    def _without_modes(self, fd: int, modes: int) -> Generator[None]:
        import termios

        before = termios.tcgetattr(fd)
        self._saved_modes = fd, before
        termios.tcsetattr(fd, termios.TCSADRAIN, [*before[:3], before[3] & ~modes, *before[4:]])
        try:
            yield
        finally:
            self._saved_modes = None
            # A terminal that is gone has no modes.
            with suppress(termios.error):
                termios.tcsetattr(fd, termios.TCSADRAIN, before)

    @contextmanager
    def hidden_cursor(self) -> Generator[None]:
        """Mark the cursor as hidden while the block draws."""
        self._is_cursor_hidden = True
        try:
            yield
        finally:
            self._is_cursor_hidden = False

    def leave(self) -> None:
        """Restore the terminal before the process ends at once; buffers are bypassed."""
        with suppress(Exception):
            if self._saved_modes is not None:
                import termios

                fd, modes = self._saved_modes
                termios.tcsetattr(fd, termios.TCSANOW, modes)
            if self._is_cursor_hidden:
                os.write(self.out.fileno(), _SHOW_CURSOR)
            # Not through the buffers: another thread may hold their lock.
            os.write(self.err.fileno(), b"interrupted\n")

    @staticmethod
    def _write(stream: TextIO, line: str) -> None:
        stream.write(f"{line}\n")
        stream.flush()


def _fit_lines(text: str, width: int) -> str:
    """Wrap each line that is too long at words, under its own indent."""
    from mimir.cli.layout import columns_of, wrap

    lines: list[str] = []
    for line in text.split("\n"):
        indent = line[: len(line) - len(line.lstrip())]
        is_short = columns_of(line) <= width
        lines += [line] if is_short else wrap(line, width, first=indent, rest=f"{indent}  ")
    return "\n".join(lines)


def _open_stream(stream: TextIO | None) -> TextIO:
    if stream is None:
        return Path(os.devnull).open("w", encoding="utf-8")
    # A test may replace the stream by one without this method.
    reconfigure = getattr(stream, "reconfigure", None)
    if callable(reconfigure):
        reconfigure(errors="replace")
    return cast("TextIO", _OutputStream(stream))


class _OutputStream:
    """A stream on which every closed other end is a `BrokenPipeError`, also a terminal's."""

    def __init__(self, stream: TextIO) -> None:
        self._stream = stream

    def write(self, text: str) -> int:
        with _closed_as_pipe():
            return self._stream.write(text)

    def flush(self) -> None:
        with _closed_as_pipe():
            self._stream.flush()

    def __getattr__(self, name: str) -> object:
        return getattr(self._stream, name)


@contextmanager
def _closed_as_pipe() -> Generator[None]:
    try:
        yield
    except OSError as error:
        if error.errno in _CLOSED:
            raise BrokenPipeError(errno.EPIPE, "The output was closed") from error
        raise
