"""Text inside a block, byte for byte: without the block's marks and its indent. Pure."""

from mimir.planning.reader.line_syntax import indent_of
from mimir.planning.reader.source import SourceBlock, SourceText


def tag_text(source: SourceText, block: SourceBlock, *, bullet: bool = False) -> str:
    """Return the text between `<prompt>` and `</prompt>`, without their line breaks.

    Args:
        source: The document.
        block: A block of kind `tag`.
        bullet: True if the tag follows a bullet's label: its text is indented below the bullet.
    """
    raw = source.raw[block.start : block.end]
    first = raw[0]
    at = first.casefold().index(f"<{block.tag}>") + len(block.tag) + 2
    lines = [first[at:], *raw[1:]]
    if block.closed:
        last = lines[-1].rstrip()
        lines[-1] = last[: len(last) - len(f"</{block.tag}>")]
    # A tag alone on its line: the line break after it is not part of the text.
    if not lines[0].strip():
        crlf = lines[0].endswith("\r")
        lines = lines[1:]
        if block.closed and lines and not lines[-1].strip():
            lines = lines[:-1]
            # The last carriage return is part of the line break before the closing tag.
            if lines and crlf:
                lines[-1] = lines[-1].removesuffix("\r")
    return "\n".join(dedent_lines(lines, indent_of(first) + (2 if bullet else 0)))


def fence_text(source: SourceText, block: SourceBlock) -> str:
    """Return the text inside a fence."""
    lines = source.raw[block.start + 1 : block.end - 1]
    if source.raw[block.start].endswith("\r") and lines:
        lines[-1] = lines[-1].removesuffix("\r")
    return "\n".join(dedent_lines(lines, block.indent))


def dedent_lines(lines: list[str], at_most: int) -> list[str]:
    """Remove the common indent of all lines with text, but at most `at_most` characters."""
    common = at_most
    for line in lines:
        if not common:
            return lines
        if line.strip():
            common = min(common, len(line) - len(line.lstrip(" \t")))
    # A blank line may be shorter than the indent of the others.
    return [line[min(common, len(line) - len(line.lstrip(" \t"))) :] for line in lines]


def trim_blank_lines(lines: list[str]) -> str:
    """Return the lines as one text without blank lines at its start and end."""
    filled = [n for n, line in enumerate(lines) if line.strip()]
    return "\n".join(lines[filled[0] : filled[-1] + 1]).removesuffix("\r") if filled else ""
