"""The two streams of the process. What models, files and arguments say is made harmless before it is printed.

A terminal obeys control characters: they move the cursor, rename the window, answer questions, turn text around. None of them
passes `clean`; what stood there is shown instead.
"""

import json
import os
import re
import sys
from collections.abc import Generator, Mapping
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import TextIO

from mimir.cli.symbols import Symbols, for_encoding

_COLOURS = re.compile(r"\x1b\[[0-9;]{0,30}m")
"""What test runners colour their output with: noise, left out. Whatever this joins is looked at again by `_CONTROL`."""
_CONTROL = re.compile(
    "[\x00-\x08\x0b-\x1f\x7f-\x9f"  # C0 without tab and line feed, DEL, C1
    "\xad\u061c\u180e\u200b\u200e\u200f\u2028-\u202e\u2060-\u206f\ufeff\ufff9-\ufffb"  # invisible, turn text around
    "\ud800-\udfff\U000e0000-\U000e007f]"  # halves of characters, invisible tags
)
_SPACE = re.compile(r"\s+")
_SHOW_CURSOR = b"\x1b[?25h\n"
WIDE = 200
"""Columns of lines that go to a pipe."""
SAID_CHARS = 400
"""Most characters of one line that says what is wrong."""


def clean(text: str) -> str:
    """Return `text` without anything that a terminal obeys, but tabs and line feeds; what stood there is shown as an escape."""
    if _is_plain(text):
        return text
    lines = _COLOURS.sub("", text.replace("\r\n", "\n"))
    return _CONTROL.sub(lambda found: _shown(found[0]), lines)


def _is_plain(text: str) -> bool:
    """Tell without a search that nothing has to be done: most are so, and a status has thousands."""
    return text.isascii() and text.isprintable()


def clean_line(text: str, limit: int | None = None) -> str:
    """Return `text` harmless and on one line; longer than `limit` characters it is cut with a mark."""
    spaced = text if _is_plain(text) and "  " not in text else clean(_SPACE.sub(" ", text))
    line = spaced.strip()
    return line if limit is None or len(line) <= limit else f"{line[: limit - 1]}…"


def _shown(character: str) -> str:
    code = ord(character)
    if code <= 0xFF:
        return f"\\x{code:02x}"
    return f"\\u{code:04x}" if code <= 0xFFFF else f"\\U{code:08x}"


class Console:
    """What a person reads: results on `out`, what is in the way on `err`."""

    def __init__(self, out: TextIO, err: TextIO) -> None:
        self.out = out
        self.err = err
        self._is_cursor_hidden = False

    @classmethod
    def of_process(cls) -> "Console":
        """Take the process's streams; one that is closed swallows what it is given, and none fails on a character that it lacks."""
        return cls(_stream(sys.stdout), _stream(sys.stderr))

    @property
    def is_terminal(self) -> bool:
        """True if results are looked at as they come."""
        return self.out.isatty()

    @property
    def can_ask(self) -> bool:
        """True if somebody is there to be asked."""
        return sys.stdin is not None and sys.stdin.isatty() and self.err.isatty()  # pyright: ignore[reportUnnecessaryComparison]  closed before the process began

    @property
    def glyphs(self) -> Symbols:
        """The signs that the terminal can show."""
        return for_encoding(self.out.encoding)

    @property
    def width(self) -> int:
        """Columns of the terminal; wide where results go to a pipe."""
        if not self.is_terminal:
            return WIDE
        try:
            return os.get_terminal_size(self.out.fileno()).columns or 80
        except (OSError, ValueError):
            return 80

    def say(self, text: str = "") -> None:
        """Print a result, line breaks kept."""
        self._write(self.out, clean(text))

    def note(self, text: str) -> None:
        """Print what a person should know, beside the result: one line."""
        self._write(self.err, clean_line(text))

    def json(self, value: Mapping[str, object]) -> None:
        """Print one JSON object on one line; escaped, so that it is harmless on a terminal too."""
        self._write(self.out, json.dumps(value, ensure_ascii=True, allow_nan=False, default=str))

    async def ask(self, question: str) -> bool:
        """Ask for yes or no on `err`; anything but a clear yes is no. Waits without standing in the way of a signal."""
        self.err.write(f"{clean_line(question)} [y/N] ")
        self.err.flush()
        import asyncio  # costs more than all else that `mimir --help` needs

        loop = asyncio.get_running_loop()
        answered: asyncio.Future[None] = loop.create_future()
        loop.add_reader(sys.stdin.fileno(), lambda: answered.done() or answered.set_result(None))
        try:
            await answered
        finally:
            loop.remove_reader(sys.stdin.fileno())
        answer = sys.stdin.readline()
        if not answer.endswith("\n"):
            self.err.write("\n")
        return answer.strip().lower() in ("y", "yes")

    @contextmanager
    def hidden_cursor(self) -> Generator[None]:
        """Remember while the block runs that something is drawn there, without a cursor."""
        self._is_cursor_hidden = True
        try:
            yield
        finally:
            self._is_cursor_hidden = False

    def leave(self) -> None:
        """Leave the terminal in order, from anywhere: past all that is buffered, before the process ends at once."""
        with suppress(OSError, ValueError):
            if self._is_cursor_hidden:
                os.write(self.out.fileno(), _SHOW_CURSOR)
            os.write(self.err.fileno(), b"interrupted\n")

    @staticmethod
    def _write(stream: TextIO, line: str) -> None:
        stream.write(f"{line}\n")
        stream.flush()


def _stream(stream: TextIO | None) -> TextIO:
    if stream is None:
        return Path(os.devnull).open("w", encoding="utf-8")
    reconfigure = getattr(stream, "reconfigure", None)
    if callable(reconfigure):
        reconfigure(errors="replace")
    return stream
