"""Reader of prompts: the end of a prompt and its text, byte for byte. Pure.

A prompt is in `<prompt>`, in `<details>`, in a fence, indented below a bullet, or bare. A bare one
ends at the task's next field: a known label in the form of the task's labels, not given before.
"""

from mimir.domain.value_class import value_class
from mimir.planning.format.labels import Key
from mimir.planning.reader import line_syntax
from mimir.planning.reader.block_text import dedent_lines, fence_text, tag_text, trim_blank_lines
from mimir.planning.reader.line_syntax import LabelLine, indent_of
from mimir.planning.reader.outline import Outline, TaskDraft
from mimir.planning.reader.source import NESTING_INFO


@value_class
class PromptBlock:
    """A prompt and the line after it."""

    text: str
    end: int
    unmarked: range = range(0)
    """Its lines, if no tag or fence delimits it."""


class PromptReader:
    """Reader of one prompt."""

    def __init__(self, outline: Outline, draft: TaskDraft, label: LabelLine) -> None:
        """Prepare to read the prompt of `label`; the fields of `draft` are not expected again."""
        self._rank = label.found.rank if label.found is not None else 0
        self._outline = outline
        self._source = outline.source
        self._draft = draft
        self._shapes = {*draft.shapes, label.shape}
        # A field that was given cannot follow: the same label inside a prompt is text.
        self._given: set[Key] = {one.key for one in draft.fields if one.key is not None}
        # A later line that begins a field.
        self._field_ahead = -1

    def read(self, index: int, label: LabelLine) -> PromptBlock:
        """Return the prompt whose label is on line `index`."""
        block = self._source.blocks.get(index)
        if block is not None:
            text = tag_text(self._source, block, bullet=label.shape[0] == "bullet")
            return PromptBlock(text=text, end=block.end)
        if not label.value.strip():
            wrapped = self._wrapped(self._outline.next_text(index + 1))
            if wrapped is not None:
                return wrapped
        return self._bare(index, label)

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
        # If more text of the prompt follows, the prompt is bare and the wrapper a part of it.
        ends_here = self._is_boundary(self._outline.next_text(end))
        return PromptBlock(text=text, end=end) if ends_here else None

    def _details_text(self, start: int, end: int) -> str:
        lines = self._source.raw[start:end]
        # Text may follow the tag on its line, also with attributes: <details open>.
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
        # The indent below a bullet ends the prompt as clearly as a tag does.
        if kind == "bullet" and below:
            end = self._end_of_indented(index + 1, indent)
            lines = self._source.raw[index + 1 : end]
            text = trim_blank_lines([*inline, *dedent_lines(lines, max(map(len, lines)))])
            return PromptBlock(text=text, end=end, unmarked=range(index + 1, end))
        end = self._end_of_flat(index + 1)
        lines = self._source.raw[index + 1 : end]
        lines = dedent_lines(lines, indent) if kind in ("bold", "plain") else lines
        text = trim_blank_lines([*inline, *lines])
        return PromptBlock(text=text, end=end, unmarked=range(index + 1, end))

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
            # A heading of the task's own level may still be text of the prompt.
            return self._is_foreign(heading.level) and not self._field_follows(index)
        return line_syntax.is_rule(self._source.lines[index]) and self._is_last(index)

    def _is_start(self, index: int) -> bool:
        return self._outline.next_start(index - 1) == index

    def _is_next_field(self, index: int) -> bool:
        """Return whether a known label, in a form of this task, begins a field not given yet."""
        heading = self._outline.headings.get(index)
        label = line_syntax.heading_label(heading) if heading else self._outline.labels.get(index)
        if label is None or label.found is None:
            return False
        # A default for all tasks is outside tasks, in any form of label.
        if label.found.for_all:
            return True
        key = label.found.field.key
        if label.shape not in self._shapes or key in ("id", "notes") or key in self._given:
            return False
        # "Instructions" inside a "Prompt" are text; a "Prompt" after a "Description" is a field.
        if key == "prompt" and label.found.rank >= self._rank:
            return False
        return heading is None or heading.level > self._draft.level

    def _is_foreign(self, level: int) -> bool:
        """Return whether a heading of this level is outside the task."""
        return not self._draft.by_heading or level <= self._draft.level

    def _field_follows(self, index: int) -> bool:
        """Return whether a field of this task follows a heading, which is then prompt text."""
        # The last search already found a field after this line.
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
        """Return whether a rule ends the task."""
        after = self._outline.next_text(index + 1)
        if after >= len(self._source) or self._is_start(after):
            return True
        heading = self._outline.headings.get(after)
        return heading is not None and self._is_foreign(heading.level)

    def _is_boundary(self, index: int) -> bool:
        """Return whether a line cannot belong to a prompt that was closed before it."""
        if index >= len(self._source) or index in self._outline.headings or self._is_start(index):
            return True
        line = self._source.lines[index]
        if line_syntax.is_rule(line) or line.strip().casefold() == "</details>":
            return True
        label = self._outline.labels.get(index)
        return label is not None and (label.shape in self._shapes or label.found is not None)


def _summary_lines(lines: list[str]) -> int:
    """Return the number of lines before the text of a `<details>`: blank ones and `<summary>`."""
    first = next((n for n, line in enumerate(lines) if line.strip()), len(lines))
    if first < len(lines) and lines[first].strip().casefold().startswith("<summary"):
        for n in range(first, len(lines)):
            if "</summary>" in lines[n].casefold():
                rest = lines[n][lines[n].casefold().index("</summary>") + 10 :]
                return n if rest.strip() else n + 1
    return first
