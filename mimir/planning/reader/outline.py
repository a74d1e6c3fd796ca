"""A document's headings and labels outside blocks, and what stands where: drafts of tasks, before any value is read."""

from bisect import bisect_left, bisect_right
from dataclasses import dataclass, field
from functools import cached_property

from mimir.planning.format import labels
from mimir.planning.format.labels import Key, LabelMatch, PlanKey
from mimir.planning.reader import line_syntax
from mimir.planning.reader.line_syntax import HeadingLine, LabelLine, Shape, TaskHeading
from mimir.planning.reader.source import SourceText

NO_HEADING = 7
"""A level below every heading's."""


class Outline:
    """Headings and labels by line; each line is looked at once."""

    def __init__(self, source: SourceText) -> None:
        """Look at every line of `source` outside blocks, and at those that open a `<prompt>` behind a label."""
        self.source = source
        self.headings: dict[int, HeadingLine] = {}
        self.labels: dict[int, LabelLine] = {}
        self._look_ahead_left = 100_000 + len(source)
        self.bold_heads: dict[int, TaskHeading] = {}
        """Lines of bold text that begin a task."""
        self._starts: list[int] = []
        free: list[int] = []
        index = 0
        while index < len(source):
            block = source.blocks.get(index)
            if block is None or block.kind == "tag":
                self._look(index, source.lines[index])
                free.append(index)
            index = block.end if block else index + 1
        for index in free:
            head = self._pseudo_head(index)
            if head is not None:
                self.bold_heads[index] = head
        self._starts = sorted({*self._starts, *self.bold_heads})

    def _look(self, index: int, line: str) -> None:
        if not line or line.isspace():
            return
        if line_syntax.is_task_start(line):
            self._starts.append(index)
        heading = line_syntax.heading_of(line)
        if heading is not None:
            self.headings[index] = heading
            return
        label = line_syntax.label_of(line) or line_syntax.plain_label_of(line)
        if label is not None:
            self.labels[index] = label

    def look_ahead(self) -> bool:
        """Allow one more line of looking ahead: in all, a document gets so many that only a hostile one runs out."""
        self._look_ahead_left -= 1
        return self._look_ahead_left > 0

    def next_start(self, index: int) -> int:
        """Return the first line after `index`, outside blocks, that says that a task begins, or the end."""
        at = bisect_right(self._starts, index)
        return self._starts[at] if at < len(self._starts) else len(self.source)

    @cached_property
    def _lines_of(self) -> dict[Key, list[int]]:
        """Lines whose label or heading names a field."""
        found: dict[Key, list[int]] = {}
        for index, label in self.labels.items():
            if label.found is not None:
                found.setdefault(label.found.field.key, []).append(index)
        for index, heading in self.headings.items():
            label = line_syntax.heading_label(heading)
            if label is not None and label.found is not None:
                found.setdefault(label.found.field.key, []).append(index)
        prompts = [b.start for b in self.source.blocks.values() if b.tag.startswith("prompt")]
        found["prompt"] = sorted({*found.get("prompt", []), *prompts})
        return {key: sorted(lines) for key, lines in found.items()}

    @cached_property
    def _other_headings(self) -> list[int]:
        """Headings that name no field; and lines that begin a task."""
        other = (
            n for n, heading in self.headings.items() if line_syntax.heading_label(heading) is None
        )
        return sorted({*other, *self._starts})

    def has_field(self, heading: int, key: Key) -> bool:
        """True if the field is named below the heading, before the next one that names no field and the next task."""
        at = bisect_right(self._other_headings, heading)
        end = self._other_headings[at] if at < len(self._other_headings) else len(self.source)
        lines = self._lines_of.get(key, [])
        return bisect_left(lines, end) > bisect_right(lines, heading)

    def _pseudo_head(self, index: int) -> TaskHeading | None:
        """Return the task that a line of bold text begins, `**Task 1.1: …**`, if its first fields follow."""
        line = self.source.lines[index]
        if "task" not in line[:100].casefold() or "*" not in line[:20]:
            return None
        label, heading = self.labels.get(index), line_syntax.pseudo_heading(line)
        if label is not None and label.found is None:
            head = line_syntax.task_head(label.name)
            head = (
                TaskHeading(head.id, label.value.strip() or head.title, head.strong)
                if head
                else None
            )
        else:
            head = line_syntax.task_head(heading.text) if heading else None
        return head if head is not None and head.strong and self._opens(index) else None

    def _opens(self, index: int) -> bool:
        """True if the next label is one that a task begins with, before any heading or rule."""
        for here in range(index + 1, min(index + 12, len(self.source))):
            label = self.labels.get(here)
            if label is not None and label.found is not None:
                return label.found.field.key in ("id", "title", "worker_role", "prompt")
            if here in self.headings or line_syntax.is_rule(self.source.lines[here]):
                return False
        return False

    def next_text(self, index: int) -> int:
        """Return the first line at or after `index` that is not blank, or the end."""
        while index < len(self.source) and not self.source.lines[index].strip():
            index += 1
        return index


@dataclass(slots=True, kw_only=True)
class FieldText:
    """A field as it stands in the document."""

    found: LabelMatch | None
    """None: the reader does not know it."""
    name: str
    index: int
    """Line of the label."""
    column: int
    """1-based, of the value if it stands on the label's line, else of the label."""
    inline: str
    """What stands behind the label."""
    shape: Shape
    lines: list[int] = field(default_factory=list[int])
    """The lines below that belong to it."""
    text: str | None = None
    """A prompt's text, exact."""
    unmarked: range = range(0)
    """A prompt's lines if nothing but the next label ended it."""

    @classmethod
    def from_label(cls, index: int, label: LabelLine) -> "FieldText":
        """Begin the field that a label names."""
        blank = not label.value.strip()
        gap = 0 if blank else len(label.value) - len(label.value.lstrip())
        return cls(
            found=label.found,
            name=label.name,
            index=index,
            column=label.column if blank else label.value_column + gap,
            inline=label.value,
            shape=label.shape,
        )

    @property
    def key(self) -> Key | None:
        """The task's field that it is."""
        return self.found.field.key if self.found else None

    def has_content(self, source: SourceText) -> bool:
        """True if anything but blanks stands behind or below the label."""
        return bool(self.inline.strip()) or any(source.lines[n].strip() for n in self.lines)


@dataclass(slots=True, kw_only=True)
class TaskDraft:
    """A task as it stands in the document."""

    index: int
    column: int = 1
    level: int
    """Headings of this level or above end it."""
    by_heading: bool
    """True: begun by a heading; headings below it are part of it."""
    head: TaskHeading | None = None
    id: FieldText | None = None
    fields: list[FieldText] = field(default_factory=list[FieldText])
    shapes: set[Shape] = field(default_factory=set[Shape])
    plain: bool = False
    """Its labels stand without emphasis."""
    notes: list[FieldText] = field(default_factory=list[FieldText])
    """What the reader does not know; without a name: text that belongs to no field."""
    lines: list[int] = field(default_factory=list[int])
    """Lines of the heading, for when the draft turns out to be no task."""

    def has(self, key: Key) -> bool:
        """True if the field was given."""
        return any(one.key == key for one in self.fields)


@dataclass(slots=True, kw_only=True)
class PlanDocument:
    """What the walk found."""

    source: SourceText
    outline: Outline
    drafts: list[TaskDraft] = field(default_factory=list[TaskDraft])
    plan: dict[PlanKey, FieldText] = field(default_factory=dict[PlanKey, FieldText])
    for_all: list[FieldText] = field(default_factory=list[FieldText])
    """Fields that hold for every task that does not give them."""
    heading: str | None = None
    """Text of the first heading of level 1."""
    reasoning: str | None = None
    """Text of a `<reasoning>` block."""
    lost: list[FieldText] = field(default_factory=list[FieldText])
    """Fields of a task behind its end, which it does not give itself."""
    notes: dict[int, None] = field(default_factory=dict[int, None])
    """Lines outside tasks that belong to nothing; an ordered set."""


def is_task_id(label: LabelLine) -> bool:
    """True if the label says "Task ID" in full, not just "ID"."""
    return labels.words(label.name) in ("task id", "task identifier")
