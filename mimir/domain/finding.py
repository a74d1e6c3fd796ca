"""Findings of a file, each with a code, a position and a suggestion. Pure."""

from typing import Literal

from mimir.domain.value_class import value_class

Severity = Literal["error", "warning", "note"]
"""An error refuses the file; a warning names a risk; a note names something unused."""


@value_class
class SourcePosition:
    """A position in the text of a file."""

    line: int = 1
    """1-based."""
    column: int = 1
    """1-based, in characters."""


START = SourcePosition()
_MOST_EXCERPT = 60
"""Characters of a text that a message quotes."""


@value_class
class Finding:
    """One finding of a file."""

    code: str
    severity: Severity
    line: int
    column: int
    message: str
    suggestion: str
    """Imperative; empty: the message suffices."""

    def render(self, file: str) -> str:
        """Return `file:line:column: severity CODE: message` and the suggestion, on one line."""
        line = f"{file}:{self.line}:{self.column}: {self.severity} {self.code}: {self.message}"
        return f"{line} {self.suggestion}".rstrip()


def quote_excerpt(text: str) -> str:
    """Return a piece of a file's text for a message: one line, shortened, in quotes."""
    flat = " ".join(text.split())
    return repr(flat if len(flat) <= _MOST_EXCERPT else flat[: _MOST_EXCERPT - 1] + "…")
