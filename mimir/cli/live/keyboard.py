"""Lines typed under the board, which shows them, because the terminal does not echo."""

import asyncio
import codecs
import os
import re
import sys
import termios
from collections.abc import Callable, Generator
from contextlib import contextmanager, suppress

from mimir.cli.console import Console

_SEQUENCE = re.compile(r"\x1b(?:\[[0-?]*[ -/]*[@-~]?|O.?|.)?")
"""Sequences of arrow keys and the like."""
_READ_BYTES = 4096


class TypedLine:
    """A line that is being typed. Pure."""

    def __init__(self) -> None:
        self.text = ""

    def take(self, keys: str) -> list[str]:
        """Take typed characters; return the lines that they finish."""
        finished: list[str] = []
        for key in _SEQUENCE.sub("", keys):
            if key in "\r\n\x04":  # the end of the input ends the line too
                finished.append(self.text.strip())
                self.text = ""
            elif key in "\x7f\b":
                self.text = self.text[:-1]
            elif key == "\x15":
                self.text = ""
            # Other control characters are kept out here, not refused afterwards.
            elif key.isprintable():
                self.text += key
        return finished


@contextmanager
def capture_keys(console: Console, take: Callable[[str], None]) -> Generator[None]:
    """Pass typed characters to `take` while the block runs, without an echo of the terminal."""
    fd, decoder = sys.stdin.fileno(), codecs.getincrementaldecoder("utf-8")(errors="ignore")

    def read() -> None:
        data = os.read(fd, _READ_BYTES)
        if not data:  # the terminal is gone; the reader would be called for ever
            loop.remove_reader(fd)
        take(decoder.decode(data))

    loop = asyncio.get_running_loop()
    with console.raw_input(fd):
        loop.add_reader(fd, read)
        try:
            yield
        finally:
            loop.remove_reader(fd)


def is_in_foreground() -> bool:
    """Return whether this process may read the terminal; a job in the background is stopped."""
    with suppress(OSError, termios.error):  # without job control, no process is in the background
        return os.tcgetpgrp(sys.stdin.fileno()) == os.getpgrp()
    return True
