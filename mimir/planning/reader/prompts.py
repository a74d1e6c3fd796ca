"""Where a prompt ends, and its text, byte for byte.

A prompt stands in `<prompt>`, in `<details>`, in a fence, indented below a bullet, or bare. Bare, it ends where the next field of the
task begins: a known label in the form in which the task writes its labels, for a field that was not given yet. Everything else is text.
"""

from dataclasses import dataclass

from mimir.planning.format.labels import Key
from mimir.planning.reader import line_syntax
from mimir.planning.reader.block_text import dedent_lines, fence_text, tag_text, trim_blank_lines
from mimir.planning.reader.line_syntax import LabelLine, indent_of
from mimir.planning.reader.outline import Outline, TaskDraft
from mimir.planning.reader.source import NESTING_INFO, SourceBlock


@dataclass(frozen=True, slots=True, kw_only=True)
class PromptBlock:
    """A prompt and the line after it."""

    text: str
    end: int
    unmarked: range = range(0)
    """Its lines, if it was bare."""


class PromptReader:
    """Reads the prompts of one task."""

    def __init__(self, outline: Outline, draft: TaskDraft, label: LabelLine) -> None:
        """Look from a prompt's label.

        Args:
            outline: Of the whole document.
            draft: The task so far; fields that it has are not expected again.
            label: The prompt's.
        """
        self._rank = label.found.rank if label.found is not None else 0
        self._outline = outline
        self._source = outline.source
        self._draft = draft
        self._shapes = {*draft.shapes, label.shape}
        self._given: set[Key] = {one.key for one in draft.fields if one.key is not None}
        self._field_ahead = -1
        """A line that is known to begin a field."""

    def read(self, index: int, label: LabelLine) -> PromptBlock:
        """Return the prompt whose label stands on line `index`."""
        block = self._source.blocks.get(index)
        if block is not None:
            return PromptBlock(
                text=tag_text(self._source, block, bullet=label.shape[0] == "bullet"), end=block.end
            )
        if not label.value.strip():
            wrapped = self._wrapped(self._outline.next_text(index + 1))
            if wrapped is not None:
                return wrapped
        return self._bare(index, label)

    def read_block(self, block: SourceBlock) -> PromptBlock:
        """Return the prompt of a `<prompt>` block that has no label."""
        return PromptBlock(text=tag_text(self._source, block), end=block.end)

    # In a wrapper.

    def _wrapped(self, index: int) -> PromptBlock | None:
        block = self._source.blocks.get(index)
        if block is not None and block.tag.startswith("prompt"):
            return PromptBlock(text=tag_text(self._source, block), end=block.end)
        if index in self._source.details:
            end = self._source.details[index]
            text = self._details_text(index, end)
        elif block is not None and block.kind == "fence" and block.info in NESTING_INFO:
            end, text = block.end, fence_text(self._source, block)
        else:
            return None
        # More text behind the wrapper belongs to the prompt too: then it is bare, and the wrapper a part of it.
        return (
            PromptBlock(text=text, end=end)
            if self._is_boundary(self._outline.next_text(end))
            else None
        )

    def _details_text(self, start: int, end: int) -> str:
        lines = self._source.raw[start:end]
        lines[0] = lines[0][lines[0].index(">") + 1 :] if ">" in lines[0] else ""
        lines[-1] = lines[-1][: lines[-1].casefold().rindex("</details>")]
        skip = _summary_lines(lines)
        first = self._outline.next_text(start + skip)
        block = self._source.blocks.get(first)
        if block is not None and not "".join(lines[block.end - start :]).strip():
            if block.tag.startswith("prompt"):
                return tag_text(self._source, block)
            if block.kind == "fence" and block.info in NESTING_INFO:
                return fence_text(self._source, block)
        return trim_blank_lines(dedent_lines(lines[skip:], indent_of(self._source.lines[start])))

    # Bare.

    def _bare(self, index: int, label: LabelLine) -> PromptBlock:
        first = self._outline.next_text(index + 1)
        kind, indent = label.shape
        below = first < len(self._source) and indent_of(self._source.lines[first]) > indent
        inline = [label.value.lstrip()] if label.value.strip() else []
        if kind == "bullet" and below:
            end = self._end_of_indented(index + 1, indent)
            lines = self._source.raw[index + 1 : end]
            return PromptBlock(
                text=trim_blank_lines([*inline, *dedent_lines(lines, max(map(len, lines)))]),
                end=end,
            )
        end = self._end_of_flat(index + 1)
        lines = self._source.raw[index + 1 : end]
        lines = dedent_lines(lines, indent) if kind in ("bold", "plain") else lines
        return PromptBlock(
            text=trim_blank_lines([*inline, *lines]), end=end, unmarked=range(index + 1, end)
        )

    def _end_of_indented(self, index: int, indent: int) -> int:
        while index < len(self._source):
            block = self._source.blocks.get(index)
            line = self._source.lines[index]
            if line.strip() and indent_of(line) <= indent:
                break
            index = block.end if block else index + 1
        return min(index, len(self._source))

    def _end_of_flat(self, index: int) -> int:
        while index < len(self._source):
            block = self._source.blocks.get(index)
            if block is not None:
                index = block.end
            elif index in self._source.details:
                index = self._source.details[index]
            elif self._ends_flat(index):
                break
            else:
                index += 1
        return min(index, len(self._source))

    def _ends_flat(self, index: int) -> bool:
        if self._is_start(index) or self._is_next_field(index):
            return True
        heading = self._outline.headings.get(index)
        if heading is not None:
            return self._is_foreign(heading.level) and not self._field_follows(index)
        return line_syntax.is_rule(self._source.lines[index]) and self._is_last(index)

    def _is_start(self, index: int) -> bool:
        return self._outline.next_start(index - 1) == index

    def _is_next_field(self, index: int) -> bool:
        """True for a known label, in a form of this task, of a field that it has not given."""
        heading = self._outline.headings.get(index)
        label = line_syntax.heading_label(heading) if heading else self._outline.labels.get(index)
        if label is None or label.found is None:
            return False
        if label.found.for_all:
            return True
        key = label.found.field.key
        if label.shape not in self._shapes or key in ("id", "notes") or key in self._given:
            return False
        if key == "prompt" and label.found.rank >= self._rank:
            return False  # "Instructions" within a "Prompt" are text; "Prompt" behind a "Description" is not
        return heading is None or heading.level > self._draft.level

    def _is_foreign(self, level: int) -> bool:
        """True for a heading that would not be below the task."""
        return not self._draft.by_heading or level <= self._draft.level

    def _field_follows(self, index: int) -> bool:
        """True if a field of this task comes after a heading: then the heading is text of the prompt."""
        if index < self._field_ahead:
            return True
        end = self._outline.next_start(index)
        while index < end - 1 and self._outline.look_ahead():
            index += 1
            block = self._source.blocks.get(index)
            if block is not None:
                index = block.end - 1
            elif self._is_next_field(index):
                self._field_ahead = index
                return True
            elif line_syntax.is_rule(self._source.lines[index]) and self._is_last(index):
                return False
        return False

    def _is_last(self, index: int) -> bool:
        """True if a rule separates the task from what comes next."""
        after = self._outline.next_text(index + 1)
        if after >= len(self._source) or self._is_start(after):
            return True
        heading = self._outline.headings.get(after)
        return heading is not None and self._is_foreign(heading.level)

    def _is_boundary(self, index: int) -> bool:
        """True if what stands on a line cannot belong to a prompt that was closed before it."""
        if index >= len(self._source) or index in self._outline.headings:
            return True
        line = self._source.lines[index]
        if (
            line_syntax.is_rule(line)
            or self._is_start(index)
            or line.strip().casefold() == "</details>"
        ):
            return True
        label = self._outline.labels.get(index)
        return label is not None and (label.shape in self._shapes or label.found is not None)


def _summary_lines(lines: list[str]) -> int:
    """Return how many lines the opening of a `<details>` takes, its `<summary>` included; `lines` is emptied there."""
    first = next((n for n, line in enumerate(lines) if line.strip()), len(lines))
    if first < len(lines) and lines[first].strip().casefold().startswith("<summary"):
        for n in range(first, len(lines)):
            if "</summary>" in lines[n].casefold():
                rest = lines[n][lines[n].casefold().index("</summary>") + 10 :]
                return n if rest.strip() else n + 1
    return first
