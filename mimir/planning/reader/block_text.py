"""The text inside a block, byte for byte: without the lines that make the block, and without the block's own indent."""

from mimir.planning.reader.line_syntax import indent_of
from mimir.planning.reader.source import SourceBlock, SourceText


def tag_text(source: SourceText, block: SourceBlock, *, bullet: bool = False) -> str:
    """Return what stands between `<prompt>` and `</prompt>`, without the line breaks right inside them.

    Args:
        source: The document.
        block: Of kind `tag`.
        bullet: True if the tag stands behind a bullet's label: its text is indented below the bullet.
    """
    raw = source.raw[block.start : block.end]
    first = raw[0]
    at = first.casefold().index(f"<{block.tag}>") + len(block.tag) + 2
    lines = [first[at:], *raw[1:]]
    if block.closed:
        last = lines[-1].rstrip()
        lines[-1] = last[: len(last) - len(f"</{block.tag}>")]
    if not lines[0].strip():
        lines = _without_frame(lines, closed=block.closed)
    return "\n".join(dedent_lines(lines, indent_of(first) + (2 if bullet else 0)))


def _without_frame(lines: list[str], *, closed: bool) -> list[str]:
    """Return the lines without the tags' own; in a file with carriage returns the last one's belongs to the frame."""
    crlf = lines[0].endswith("\r")
    lines = lines[1:]
    if closed and lines and not lines[-1].strip():
        lines = lines[:-1]
        if lines and crlf:
            lines[-1] = lines[-1].removesuffix("\r")
    return lines


def fence_text(source: SourceText, block: SourceBlock) -> str:
    """Return what stands in a fence."""
    lines = source.raw[block.start + 1 : block.end - 1]
    if source.raw[block.start].endswith("\r") and lines:
        lines[-1] = lines[-1].removesuffix("\r")
    return "\n".join(dedent_lines(lines, block.indent))


def dedent_lines(lines: list[str], at_most: int) -> list[str]:
    """Return the lines without their common indent, at most `at_most` characters of it; blank lines stay."""
    common = at_most
    for line in lines:
        if not common:
            return lines
        if line.strip():
            common = min(common, len(line) - len(line.lstrip(" \t")))
    return [line[min(common, len(line) - len(line.lstrip(" \t"))) :] for line in lines]


def trim_blank_lines(lines: list[str]) -> str:
    """Return the lines as text, without blank ones around it."""
    first, last = 0, len(lines)
    while first < last and not lines[first].strip():
        first += 1
    while last > first and not lines[last - 1].strip():
        last -= 1
    return "\n".join(lines[first:last]).removesuffix("\r")
