"""Screen of the demo: text that is broken between words, for any width of the terminal."""

import textwrap
from typing import Protocol

WIDEST = 100
"""Columns on a wide terminal or in a pipe."""


class NarratorScreen(Protocol):
    """Terminal or pipe of the narration; it removes control characters."""

    @property
    def width(self) -> int:
        """Columns of the terminal."""
        ...

    def say(self, text: str = "") -> None:
        """Print a line."""
        ...


def say_wrapped(screen: NarratorScreen, lead: str, text: str) -> None:
    """Print a text after its lead, broken between words; further lines are indented."""
    lines = textwrap.wrap(
        text,
        min(WIDEST, screen.width),
        initial_indent=lead,
        subsequent_indent=" " * len(lead),
        break_long_words=False,
        break_on_hyphens=False,
    )
    for line in lines:
        screen.say(line)
