"""Screen of the demo: text that is broken between words, for any width of the terminal."""

import textwrap
from collections.abc import Callable

from mimir.domain.value_class import value_class

WIDEST = 100
"""Columns on a wide terminal or in a pipe."""


@value_class
class NarratorScreen:
    """Terminal or pipe of the narration."""

    say: Callable[[str], None]
    """Prints a line without control characters."""
    width: Callable[[], int]
    """Returns the columns, which change with the window."""


def say_wrapped(screen: NarratorScreen, lead: str, text: str) -> None:
    """Print a text after its lead, broken between words; further lines are indented."""
    lines = textwrap.wrap(
        text,
        min(WIDEST, screen.width()),
        initial_indent=lead,
        subsequent_indent=" " * len(lead),
        break_long_words=False,
        break_on_hyphens=False,
    )
    for line in lines:
        screen.say(line)
