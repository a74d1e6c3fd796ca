"""Escaping of untrusted text for markdown: it cannot load, link or format anything. Pure.

Text that the engine did not write is shown as code, inline or fenced, between more back-ticks than it has. Code has no markup, so only
the bar of a table cell must be replaced.
"""

import re
import textwrap
import unicodedata

WIDTH = 100
"""Columns at which the lines of a fenced text are wrapped."""
MOST_LINE = 300
"""Characters of an inline text."""
MOST_TEXT = 20_000
"""Characters of a fenced text."""
_MOST_CELL = 80
"""Characters of a cell in a table."""

_COLOURS = re.compile(r"\x1b\[[0-9;]{0,30}m")
_TICKS = re.compile(r"`+")


def escape_text(text: str) -> str:
    """Remove control and invisible characters except line feeds; tabs become blanks."""
    text = _COLOURS.sub("", text).replace("\r\n", "\n").replace("\r", "\n").expandtabs(4)
    # Fast path: most texts have no such character.
    if text.replace("\n", "").isprintable():
        return text
    return "".join(map(_printable, text))


def one_line(text: str, most: int = MOST_LINE) -> str:
    """Return a text on one line of at most `most` characters, cut with a mark."""
    line = " ".join(escape_text(text).split())
    return line if len(line) <= most else f"{line[: most - 1]}…"


def code(text: str, most: int = MOST_LINE) -> str:
    """Return a text as inline code; a dash for an empty text."""
    line = one_line(text, most)
    if not line:
        return "—"
    ticks = "`" * (_longest_run(line) + 1)
    # Blanks separate back-ticks at the ends from the delimiters; renderers remove them.
    edge = " " if line[0] == "`" or line[-1] == "`" else ""
    return f"{ticks}{edge}{line}{edge}{ticks}"


def cell(text: str) -> str:
    """Return a text as inline code for a table cell, where a bar would end the cell."""
    # Inside code, a backslash before the bar would be shown.
    return code(text.replace("|", "¦"), _MOST_CELL)


def fence_text(text: str, most: int = MOST_TEXT) -> str:
    """Return a text in a fence that it cannot close, wrapped and cut with a mark."""
    body = escape_text(text).strip("\n")
    if len(body) > most:
        body = f"{body[:most]}\n[… {len(body) - most} more characters]"
    wrapped = "\n".join(map(_wrap, body.split("\n")))
    ticks = "`" * max(3, _longest_run(wrapped) + 1)
    return f"{ticks}text\n{wrapped}\n{ticks}"


def _wrap(line: str) -> str:
    if len(line) <= WIDTH:
        return line
    indent = line[: len(line) - len(line.lstrip(" "))][: WIDTH // 2]
    indent += "  " if line.lstrip(" ").startswith("- ") else ""
    return "\n".join(
        textwrap.wrap(
            line, WIDTH, subsequent_indent=indent, break_on_hyphens=False, drop_whitespace=True
        )
    )


def _longest_run(text: str) -> int:
    return max((len(run) for run in _TICKS.findall(text)), default=0)


def _printable(character: str) -> str:
    """Return a printable form: invisible characters are removed, invalid ones marked."""
    if character == "\n":
        return character
    match unicodedata.category(character):
        case "Zl" | "Zp":
            return "\n"
        case "Cc" | "Cf":
            return ""
        # Half a surrogate pair cannot be written as UTF-8.
        case "Cs" | "Co" | "Cn":
            return "\ufffd"
        case _:
            return character
