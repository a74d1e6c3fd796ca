"""Text that nobody vouches for, made harmless for markdown: it can load nothing, link nothing, head nothing, and not get out. Pure.

The rule: what the engine did not write itself stands in code, inline or fenced, behind more back-ticks than it holds. In code no markup
is read, so there is nothing to escape; only a cell of a table has to be kept from being split.
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

_COLOURS = re.compile(r"\x1b\[[0-9;]{0,30}m")
_TICKS = re.compile(r"`+")


def escape_text(text: str) -> str:
    """Return a text without control characters (but line feeds), without anything invisible, tabs as blanks, one end of line."""
    text = _COLOURS.sub("", text).replace("\r\n", "\n").replace("\r", "\n").expandtabs(4)
    if text.replace("\n", "").isprintable():  # of all that is not, only some blanks may stand
        return text
    return "".join(map(_shown, text))


def one_line(text: str, most: int = MOST_LINE) -> str:
    """Return a text on one line, cut with a mark where it is longer than `most` characters."""
    line = " ".join(escape_text(text).split())
    return line if len(line) <= most else f"{line[: most - 1]}…"


def code(text: str, most: int = MOST_LINE) -> str:
    """Return a text as inline code; a dash where there is none."""
    line = one_line(text, most)
    if not line:
        return "—"
    ticks = "`" * (_longest(line) + 1)
    # A blank on each side keeps back-ticks at the ends apart from the delimiters; renderers take it away.
    edge = " " if line[0] == "`" or line[-1] == "`" else ""
    return f"{ticks}{edge}{line}{edge}{ticks}"


def cell(text: str, most: int = 80) -> str:
    """Return a text as inline code for a cell of a table: a bar would end the cell, even in code."""
    return code(text.replace("|", "¦"), most)


def fence_text(text: str, most: int = MOST_TEXT) -> str:
    """Return a text in a fence that it cannot close; long lines are wrapped, what is too long is cut with a mark."""
    body = escape_text(text).strip("\n")
    if len(body) > most:
        body = f"{body[:most]}\n[… {len(body) - most} more characters]"
    wrapped = "\n".join(map(_wrapped, body.split("\n")))
    ticks = "`" * max(3, _longest(wrapped) + 1)
    return f"{ticks}text\n{wrapped}\n{ticks}"


def _wrapped(line: str) -> str:
    if len(line) <= WIDTH:
        return line
    indent = line[: len(line) - len(line.lstrip(" "))][: WIDTH // 2]
    indent += "  " if line.lstrip(" ").startswith("- ") else ""
    return "\n".join(
        textwrap.wrap(
            line, WIDTH, subsequent_indent=indent, break_on_hyphens=False, drop_whitespace=True
        )
    )


def _longest(text: str) -> int:
    return max((len(run) for run in _TICKS.findall(text)), default=0)


def _shown(character: str) -> str:
    """Return a character as it may stand: invisible ones go, halves of characters are marked."""
    if character == "\n":
        return character
    match unicodedata.category(character):
        case "Zl" | "Zp":
            return "\n"
        case "Cc" | "Cf":
            return ""
        case "Cs" | "Co" | "Cn":
            return "\ufffd"
        case _:
            return character
