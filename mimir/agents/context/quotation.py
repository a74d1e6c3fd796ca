"""Quotation of untrusted text in a prompt: blocks that their content cannot close. Pure.

A fence is longer than any run of back-ticks in its content. Nothing is random, so equal contents give equal prompts.
"""

import json
import re

_TICKS = re.compile(r"`{3,}")
_HEADER = re.compile(r"^(?==== )", re.MULTILINE)


def fence_block(text: str) -> str:
    """Return a fenced block that `text` cannot close."""
    longest = max((len(run) for run in _TICKS.findall(text)), default=2)
    ticks = "`" * (longest + 1)  # longer than any run inside, so nothing inside ends the block
    # A blank before a line that resembles a header of the engine; quotes are compared with white space collapsed.
    body = _HEADER.sub(" ", text)
    end = "" if body.endswith("\n") else "\n"
    return f"{ticks}text\n{body}{end}{ticks}"


def header(words: str) -> str:
    """Return the engine's line above a block, such as `=== source check:unit ===`."""
    return f"=== {one_line(words)} ==="


def verbatim(text: str) -> str:
    """Return a task's prompt between marks, byte for byte."""
    return f"<task>\n{text}\n</task>"


def one_line(text: str) -> str:
    """Return a text on one line, white space collapsed."""
    return " ".join(text.split())


def quote_argument(name: str) -> str:
    """Return a path or an id in the form of a tool's argument."""
    return json.dumps(name, ensure_ascii=False)
