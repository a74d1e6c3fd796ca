"""Lines of a document and its opaque blocks: fences, tagged blocks and comments. Pure.

Blocks are found once, top down, before labels: text in a fence or between prompt tags is content.
Lookups use tables that one pass builds, so that the time is linear in the length of the text.
"""

import re
from bisect import bisect_right
from collections import defaultdict
from collections.abc import Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import Literal

from mimir.domain.finding import Finding, SourcePosition
from mimir.domain.value_class import value_class
from mimir.planning.format import labels
from mimir.planning.format.diagnostics import make_finding
from mimir.planning.reader.line_normalization import normalize_line
from mimir.planning.reader.line_syntax import FenceLine, fence_of, indent_of, is_task_start, tag_of
from mimir.planning.reader.values import table_cells

BlockKind = Literal["fence", "tag", "comment", "details"]

NESTING_INFO = frozenset({"", "markdown", "md", "text", "txt", "plaintext", "plain", "prompt"})
"""Info strings of fences that wrap prose; fences with an info string nest inside them."""


@value_class
class SourceBlock:
    """Lines `start` to `end` (exclusive) that are one unit."""

    kind: BlockKind
    start: int
    end: int
    tag: str = ""
    """For a tag: `prompt`, `prompt-2`, …"""
    info: str = ""
    """For a fence: first word of the info string, in lower case."""
    indent: int = 0
    closed: bool = True


class SourceText:
    """A document as lines; indexes are 0-based."""

    def __init__(self, text: str, *, first_line: int = 1) -> None:
        """Split `text` at line feeds; `first_line` is its 1-based line number in the file."""
        self.raw: list[str] = text.split("\n")
        """As written; `lines` has neither carriage returns nor special characters."""
        # Matching works on normalised lines; prompts keep the text as written.
        self.lines: list[str] = unfold_field_tables(
            [normalize_line(line.removesuffix("\r")) for line in self.raw]
        )
        self.first_line = first_line
        self.problems: list[Finding] = []

    def __len__(self) -> int:
        return len(self.lines)

    def place(self, index: int, column: int = 1) -> SourcePosition:
        """Return the position of a line; `column` is 1-based."""
        return SourcePosition(line=self.first_line + index, column=column)

    @cached_property
    def blocks(self) -> dict[int, SourceBlock]:
        """Blocks by the index of their first line; they do not overlap."""
        found: dict[int, SourceBlock] = {}
        index = 0
        while index < len(self.lines):
            block = self._block_at(index)
            if block is not None:
                found[index] = block
                index = block.end
                continue
            line = self.lines[index]
            # The text before a stray closing tag was not read as the prompt that was meant.
            if "</" in line and _STRAY.search(line.rstrip()):
                message = "A closing tag closes no prompt: the prompt ended before, or never began."
                hint = "If the prompt contains the tag, use <prompt-2> and </prompt-2> around it."
                self._fault("block-stray", message, index, hint)
            index += 1
        return found

    @cached_property
    def opaque_lines(self) -> frozenset[int]:
        """Lines inside blocks: their text is content."""
        return frozenset(n for one in self.blocks.values() for n in range(one.start, one.end))

    @cached_property
    def details(self) -> dict[int, int]:
        """For each line that opens `<details>` outside blocks: the index after its closing line."""
        found: dict[int, int] = {}
        opened: list[int] = []
        index = 0
        while index < len(self.lines):
            line = self.lines[index].strip().casefold()
            if line.startswith("<details"):
                opened.append(index)
            # <details> may nest; a closing tag belongs to the last one that is open.
            if "</details>" in line and opened:
                found[opened.pop()] = index + 1
            block = self.blocks.get(index)
            index = block.end if block else index + 1
        for index in opened:
            self._unclosed(index, "<details>")
        return found

    @cached_property
    def _task_starts(self) -> list[int]:
        return [index for index, line in enumerate(self.lines) if is_task_start(line)]

    def _block_at(self, index: int) -> SourceBlock | None:
        line = self.lines[index]
        # Most lines are plain text and need no pattern.
        if "`" not in line and "~" not in line and "<" not in line:
            return None
        fence = fence_of(line)
        if fence is not None:
            return self._fence(index, fence)
        tag = tag_of(line)
        if tag is not None:
            return self._tag(index, tag.name, tag.rest)
        if line.lstrip().startswith("<!--"):
            return self._comment(index)
        return None

    # Fences.

    @cached_property
    def _fences(self) -> dict[int, FenceLine]:
        found = ((index, fence_of(line)) for index, line in enumerate(self.lines))
        return {index: fence for index, fence in found if fence is not None}

    @cached_property
    def _longest_closer_from(self) -> dict[str, list[int]]:
        """For each fence character and line: length of the longest bare fence at or after it."""
        longest = {"`": [0] * (len(self.lines) + 1), "~": [0] * (len(self.lines) + 1)}
        for index in range(len(self.lines) - 1, -1, -1):
            for sign, table in longest.items():
                table[index] = table[index + 1]
                fence = self._fences.get(index)
                if fence is not None and fence.sign == sign and not fence.info:
                    table[index] = max(table[index], fence.length)
        return longest

    @cached_property
    def _balanced_end(self) -> dict[int, int]:
        """For each line of three backticks: its closing line, if fences with info strings nest."""
        depth = 0
        after: list[tuple[int, int]] = []
        ends: dict[int, int] = {}
        # The closing line is the first later one at which the depth is lower: "next smaller element".
        for index, fence in self._fences.items():
            if fence.sign != "`" or fence.length != 3:
                continue
            depth += 1 if fence.info else -1
            while after and after[-1][1] > depth:
                ends[after.pop()[0]] = index
            after.append((index, depth))
        return ends

    def _fence(self, index: int, fence: FenceLine) -> SourceBlock | None:
        # An unclosed fence would swallow the rest of the plan: the line is text, with a finding.
        if self._longest_closer_from[fence.sign][index + 1] < fence.length:
            self._unclosed(index, f"The fence {fence.sign * fence.length}")
            return None
        if fence.info in NESTING_INFO and fence.sign == "`" and index in self._balanced_end:
            end = self._balanced_end[index]
        else:
            end = index + 1
            while not self._closes(end, fence):
                end += 1
        indent = indent_of(self.lines[index])
        return SourceBlock(kind="fence", start=index, end=end + 1, info=fence.info, indent=indent)

    def _closes(self, index: int, opening: FenceLine) -> bool:
        fence = self._fences.get(index)
        if fence is None or fence.info:
            return False
        return fence.sign == opening.sign and fence.length >= opening.length

    # Tags.

    @cached_property
    def _tag_lines(self) -> dict[str, "_TagLines"]:
        """Lines of each tag."""
        found: dict[str, _TagLines] = defaultdict(_TagLines)
        for index, line in enumerate(self.lines):
            if "<" not in line:
                continue
            tag = tag_of(line)
            if tag is not None and not tag.rest:
                found[tag.name].opening.append(index)
            close = _CLOSING.search(line.rstrip())
            if close is not None:
                lines = found[close[1].casefold()]
                (lines.ending if line[: close.start()].strip() else lines.closing).append(index)
        return found

    def _tag(self, index: int, name: str, rest: str) -> SourceBlock | None:
        end = index
        if not _CLOSING.search(rest.rstrip()):
            lines, none = self._tag_lines[name], len(self.lines)
            alone = first_after(lines.closing, index, none)
            ending = first_after(lines.ending, index, none)
            reopened = first_after(lines.opening, index, none)
            # A closing tag alone on its line is meant. One at the end of a text line is meant
            # only if the next block opens before that line.
            end = ending if alone == none or ending < reopened < alone else alone
        closed = end < len(self.lines)
        if not closed:
            self._unclosed(index, f"<{name}>")
            # Other tags are then text; a prompt must not become part of the notes.
            if name != "prompt":
                return None
            # An unclosed prompt ends before the next task, so that only one task is lost.
            end = first_after(self._task_starts, index, len(self.lines)) - 1
        indent = indent_of(self.lines[index])
        return SourceBlock(
            kind="tag", start=index, end=end + 1, tag=name, indent=indent, closed=closed
        )

    def _comment(self, index: int) -> SourceBlock | None:
        end = first_after(self._comment_ends, index - 1, len(self.lines))
        # An HTML comment without an end would hide the rest of the plan.
        if end == len(self.lines):
            return None
        # Text behind the end of a comment is text of the plan.
        rest = self.lines[end].partition("-->")[2]
        if not rest.strip():
            return SourceBlock(kind="comment", start=index, end=end + 1)
        self.lines[end] = rest
        return SourceBlock(kind="comment", start=index, end=end) if end > index else None

    @cached_property
    def _comment_ends(self) -> list[int]:
        return [index for index, line in enumerate(self.lines) if "-->" in line]

    def _unclosed(self, index: int, construct: str) -> None:
        message, hint = f"{construct} is never closed.", "Close it on a line of its own."
        self._fault("block-unclosed", message, index, hint)

    def _fault(self, code: str, message: str, index: int, hint: str) -> None:
        place = self.place(index, indent_of(self.lines[index]) + 1)
        self.problems.append(make_finding(code, message, place, hint))


@dataclass(frozen=True, slots=True)
class _TagLines:
    """Lines that open a tag, close it alone, or end with its closing tag."""

    opening: list[int] = field(default_factory=list[int])
    closing: list[int] = field(default_factory=list[int])
    ending: list[int] = field(default_factory=list[int])


_STRAY = re.compile(r"</prompt(?:-\d{1,6})?>$", re.IGNORECASE)
_CLOSING = re.compile(r"</((?:prompt|text|reasoning)(?:-\d{1,6})?)>$", re.IGNORECASE)


def first_after(indexes: Sequence[int], index: int, end: int) -> int:
    """Return the first of the sorted indexes after `index`; `end` if there is none."""
    at = bisect_right(indexes, index)
    return indexes[at] if at < len(indexes) else end


# Rows of another table, such as one of a data model, have none of these names.
_OF_TASKS = frozenset(
    {"dependencies", "worker_role", "qc_role", "max_retries", "estimated_tool_calls"}
)


def unfold_field_tables(lines: list[str]) -> list[str]:
    """Return lines in which each row of a table of a task's fields is a label with its value."""
    unfolded = list(lines)
    start = 0
    for end in range(len(lines) + 1):
        if end < len(lines) and lines[end].lstrip().startswith("|"):
            continue
        rows = [table_cells(line) for line in lines[start:end]]
        known = [labels.find(row[0].strip("*`")) if len(row) == 2 else None for row in rows]
        keys = {one.field.key for one in known if one}
        if len(keys) > 2 and keys & _OF_TASKS:
            for number, (row, label) in enumerate(zip(rows, known, strict=True), start):
                if label:
                    unfolded[number] = f"**{row[0].strip('*`: ')}:** {row[1]}"
                elif number <= start + 1:  # the head of the table, and the rule below it
                    unfolded[number] = ""
        start = end + 1
    return unfolded
