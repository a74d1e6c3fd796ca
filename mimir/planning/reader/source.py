"""The lines of a document, and the blocks that nothing looks into: fences, `<prompt>`, `<text>`, `<reasoning>`, comments.

Blocks are found once, top down, before any label is: what stands in a fence or between prompt tags is content, whatever it
looks like. Each question is answered from tables made in one pass, so that no text takes more than linear time.
"""

import re
from bisect import bisect_right
from dataclasses import dataclass
from functools import cached_property
from typing import Literal

from mimir.planning.format.diagnostics import PlanFinding, SourcePosition, make_finding
from mimir.planning.reader.line_syntax import FenceLine, fence_of, indent_of, is_task_start, tag_of

BlockKind = Literal["fence", "tag", "comment", "details"]

NESTING_INFO = frozenset({"", "markdown", "md", "text", "txt", "plaintext", "plain", "prompt"})
"""Info strings of fences that wrap prose: fences with an info string inside them nest."""


@dataclass(frozen=True, slots=True, kw_only=True)
class SourceBlock:
    """Lines `start` to `end` (exclusive) that stay together."""

    kind: BlockKind
    start: int
    end: int
    tag: str = ""
    """For a tag: `prompt`, `prompt-2`, …"""
    info: str = ""
    """For a fence: the info string, folded."""
    indent: int = 0
    closed: bool = True


class SourceText:
    """A document as lines; indexes are 0-based."""

    def __init__(self, text: str, *, first_line: int = 1) -> None:
        """Split `text` at line feeds.

        Args:
            text: Carriage returns stay at the end of lines; `line` leaves them out.
            first_line: 1-based number of the first line in the file, for findings.
        """
        self.raw: list[str] = text.split("\n")
        self.lines: list[str] = [line[:-1] if line.endswith("\r") else line for line in self.raw]
        self.first_line = first_line
        self.problems: list[PlanFinding] = []

    def __len__(self) -> int:
        return len(self.lines)

    def place(self, index: int, column: int = 1) -> SourcePosition:
        """Return the place of a line; `column` is 1-based."""
        return SourcePosition(line=self.first_line + index, column=column)

    @cached_property
    def blocks(self) -> dict[int, SourceBlock]:
        """Blocks by the index of their first line; none lies inside another."""
        found: dict[int, SourceBlock] = {}
        index = 0
        while index < len(self.lines):
            block = self._block_at(index)
            if block is not None:
                found[index] = block
                index = block.end
            else:
                self._find_stray(index)
                index += 1
        return found

    def _find_stray(self, index: int) -> None:
        """Name a closing tag that closes nothing: the text before it was not read as the prompt that was meant."""
        line = self.lines[index]
        if "</" in line and _STRAY.search(line.rstrip()):
            self.problems.append(
                make_finding(
                    "block-stray",
                    "This closes no prompt; the prompt ended before, or never began.",
                    self.place(index, indent_of(line) + 1),
                    suggestion="If the prompt itself holds the tag, put it between <prompt-2> and </prompt-2>.",
                )
            )

    @cached_property
    def details(self) -> dict[int, int]:
        """For each line that opens `<details>` outside blocks: the index after the line that closes it."""
        found: dict[int, int] = {}
        opened: list[int] = []
        index = 0
        while index < len(self.lines):
            line = self.lines[index].strip().casefold()
            if line.startswith("<details"):
                opened.append(index)
            if "</details>" in line and opened:
                found[opened.pop()] = index + 1
            block = self.blocks.get(index)
            index = block.end if block else index + 1
        for index in opened:
            self._unclosed(index, "<details>")
        return found

    @cached_property
    def task_starts(self) -> list[int]:
        """Lines that look like the start of a task, wherever they stand."""
        return [index for index, line in enumerate(self.lines) if is_task_start(line)]

    def next_task_start(self, index: int) -> int:
        """Return the first line after `index` that looks like the start of a task, or the end."""
        at = bisect_right(self.task_starts, index)
        return self.task_starts[at] if at < len(self.task_starts) else len(self.lines)

    def _block_at(self, index: int) -> SourceBlock | None:
        line = self.lines[index]
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
        """For each fence character and line: the longest bare fence at or after it."""
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
        """For each line with three backticks: the bare one that closes it, counting those with an info string as nested."""
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
        if self._longest_closer_from[fence.sign][index + 1] < fence.length:
            self._unclosed(index, f"The fence {fence.sign * fence.length}")
            return None
        if fence.info in NESTING_INFO and fence.sign == "`" and index in self._balanced_end:
            end = self._balanced_end[index]
        else:
            end = index + 1
            while not self._closes(end, fence):
                end += 1
        return SourceBlock(
            kind="fence",
            start=index,
            end=end + 1,
            info=fence.info,
            indent=indent_of(self.lines[index]),
        )

    def _closes(self, index: int, opening: FenceLine) -> bool:
        fence = self._fences.get(index)
        return (
            fence is not None
            and not fence.info
            and fence.sign == opening.sign
            and fence.length >= opening.length
        )

    # Tags.

    @cached_property
    def _tag_lines(self) -> dict[str, "_TagScanner"]:
        """For each tag: the lines that open it, close it alone, or end with its closing."""
        found: dict[str, _TagScanner] = {}
        for index, line in enumerate(self.lines):
            if "<" not in line:
                continue
            tag = tag_of(line)
            if tag is not None and not tag.rest:
                found.setdefault(tag.name, _TagScanner([], [], [])).opening.append(index)
            close = _CLOSING.search(line.rstrip())
            if close is not None:
                lines = found.setdefault(close[1].casefold(), _TagScanner([], [], []))
                (lines.ending if line[: close.start()].strip() else lines.closing).append(index)
        return found

    def _tag(self, index: int, name: str, rest: str) -> SourceBlock | None:
        indent = indent_of(self.lines[index])
        if _CLOSING.search(rest.rstrip()):
            return SourceBlock(kind="tag", start=index, end=index + 1, tag=name, indent=indent)
        lines = self._tag_lines.get(name, _TagScanner([], [], []))
        alone = _first_after(lines.closing, index)
        ending = _first_after(lines.ending, index)
        reopened = _first_after(lines.opening, index)
        # A closing tag alone on its line is meant; one at the end of a text line only if the next block opens before that.
        end = (
            ending
            if alone is None or (ending is not None and _between(reopened, ending, alone))
            else alone
        )
        if end is None:
            self._unclosed(index, f"<{name}>")
            if name != "prompt":
                return None
            end = self.next_task_start(index) - 1
            return SourceBlock(
                kind="tag", start=index, end=end + 1, tag=name, indent=indent, closed=False
            )
        return SourceBlock(kind="tag", start=index, end=end + 1, tag=name, indent=indent)

    def _comment(self, index: int) -> SourceBlock | None:
        if "-->" in self.lines[index]:
            return SourceBlock(kind="comment", start=index, end=index + 1)
        end = _first_after(self._comment_ends, index)
        return None if end is None else SourceBlock(kind="comment", start=index, end=end + 1)

    @cached_property
    def _comment_ends(self) -> list[int]:
        return [index for index, line in enumerate(self.lines) if "-->" in line]

    def _unclosed(self, index: int, what: str) -> None:
        column = indent_of(self.lines[index]) + 1
        self.problems.append(
            make_finding(
                "block-unclosed",
                f"{what} is never closed.",
                self.place(index, column),
                suggestion="Close it on a line of its own.",
            )
        )


@dataclass(frozen=True, slots=True)
class _TagScanner:
    opening: list[int]
    closing: list[int]
    ending: list[int]


_STRAY = re.compile(r"</prompt(?:-\d{1,6})?>$", re.IGNORECASE)
_CLOSING = re.compile(r"</((?:prompt|text|reasoning)(?:-\d{1,6})?)>$", re.IGNORECASE)


def _first_after(indexes: list[int], index: int) -> int | None:
    at = bisect_right(indexes, index)
    return indexes[at] if at < len(indexes) else None


def _between(index: int | None, low: int, high: int) -> bool:
    return index is not None and low < index < high
