"""Outline of a document: headings and labels outside blocks, drafts of tasks. Pure."""

from dataclasses import dataclass, field
from functools import cached_property

from mimir.planning.format.labels import Key, LabelMatch, PlanKey
from mimir.planning.reader import line_syntax
from mimir.planning.reader.line_syntax import HeadingLine, LabelLine, Shape, TaskHeading
from mimir.planning.reader.source import SourceText, first_after


class Outline:
    """Headings and labels by line; each line is parsed once."""

    def __init__(self, source: SourceText) -> None:
        """Parse the lines outside blocks, and the labels before a `<prompt>`."""
        self.source = source
        self.headings: dict[int, HeadingLine] = {}
        self.labels: dict[int, LabelLine] = {}
        # Look-ahead is quadratic on hostile texts; this budget is far above any real plan's use.
        self._look_ahead_left = 100_000 + len(source)
        self.bold_heads: dict[int, TaskHeading] = {}
        """Lines of bold text that begin a task."""
        self._starts: list[int] = []
        free: list[int] = []
        index = 0
        while index < len(source):
            block = source.blocks.get(index)
            # The first line of a tagged block may hold the label before it.
            if block is None or block.kind == "tag":
                self._parse_line(index, source.lines[index])
                free.append(index)
            index = block.end if block else index + 1
        for index in free:
            head = self._pseudo_head(index)
            if head is not None:
                self.bold_heads[index] = head
        self._starts = sorted({*self._starts, *self.bold_heads})

    def _parse_line(self, index: int, line: str) -> None:
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
        """Count one more line of look-ahead; False after so many that only a hostile text needs."""
        self._look_ahead_left -= 1
        return self._look_ahead_left > 0

    def next_start(self, index: int) -> int:
        """Return the first line after `index`, outside blocks, that begins a task, or the end."""
        return first_after(self._starts, index, len(self.source))

    @cached_property
    def _lines_of(self) -> dict[Key, list[int]]:
        """Lines whose label or heading names a field, by field."""
        named = dict(self.labels)
        for index, heading in self.headings.items():
            label = line_syntax.heading_label(heading)
            if label is not None:
                named[index] = label
        prompts = [b.start for b in self.source.blocks.values() if b.tag.startswith("prompt")]
        found: dict[Key, set[int]] = {"prompt": set(prompts)}
        for index, label in named.items():
            if label.found is not None:
                found.setdefault(label.found.field.key, set()).add(index)
        return {key: sorted(lines) for key, lines in found.items()}

    @cached_property
    def _other_headings(self) -> list[int]:
        """Headings that name no field, and lines that begin a task."""
        headings = self.headings.items()
        other = (n for n, heading in headings if line_syntax.heading_label(heading) is None)
        return sorted({*other, *self._starts})

    def has_field(self, heading: int, key: Key) -> bool:
        """Return whether the field is named in the section of the heading."""
        # The section ends at the next task, or at the next heading that names no field.
        end = first_after(self._other_headings, heading, len(self.source))
        return first_after(self._lines_of.get(key, []), heading, end) < end

    def _pseudo_head(self, index: int) -> TaskHeading | None:
        """Return the task of a bold line, `**Task 1.1: …**`, if its first fields follow."""
        line = self.source.lines[index]
        if "task" not in line[:100].casefold() or "*" not in line[:20]:
            return None
        label, heading = self.labels.get(index), line_syntax.pseudo_heading(line)
        if label is not None and label.found is None:
            head = line_syntax.task_head(label.name)
            if head is not None:
                head = TaskHeading(head.id, label.value.strip() or head.title, head.strong)
        else:
            head = line_syntax.task_head(heading.text) if heading else None
        return head if head is not None and head.strong and self._fields_follow(index) else None

    def _fields_follow(self, index: int) -> bool:
        """Return whether a first label of a task follows, before any heading or rule."""
        # The first label follows at once; a longer search would find that of the next task.
        for here in range(index + 1, min(index + 12, len(self.source))):
            label = self.labels.get(here)
            if label is not None and label.found is not None:
                return label.found.field.key in ("id", "title", "worker_role", "prompt")
            if here in self.headings or line_syntax.is_rule(self.source.lines[here]):
                return False
        return False

    def next_text(self, index: int) -> int:
        """Return the first line with text at or after `index`, or the end."""
        while index < len(self.source) and not self.source.lines[index].strip():
            index += 1
        return index


@dataclass(slots=True, kw_only=True)
class FieldText:
    """Lines of a field, before its value is read."""

    found: LabelMatch | None
    """None: an unknown field."""
    name: str
    index: int
    """Line of the label."""
    column: int
    """1-based, of a value on the label's line, otherwise of the label."""
    inline: str
    """Text after the label."""
    shape: Shape
    lines: list[int] = field(default_factory=list[int])
    """Its lines below the label."""
    text: str | None = None
    """Exact text of a prompt."""
    unmarked: range = range(0)
    """Lines of a prompt that no tag or fence delimits."""

    @classmethod
    def from_label(cls, index: int, label: LabelLine) -> "FieldText":
        """Return the field that a label begins."""
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
        """The task's field; None: unknown."""
        return self.found.field.key if self.found else None

    def has_content(self, source: SourceText) -> bool:
        """Return whether any text follows the label."""
        return bool(self.inline.strip()) or any(source.lines[n].strip() for n in self.lines)


@dataclass(slots=True, kw_only=True)
class TaskDraft:
    """Lines of a task, before its values are read."""

    index: int
    column: int = 1
    level: int
    """Headings of this level or above end it."""
    by_heading: bool
    """True: a heading begins it; headings below that level are part of it."""
    head: TaskHeading | None = None
    id: FieldText | None = None
    fields: list[FieldText] = field(default_factory=list[FieldText])
    shapes: set[Shape] = field(default_factory=set[Shape])
    plain: bool = False
    """True: its labels have no emphasis."""
    notes: list[FieldText] = field(default_factory=list[FieldText])
    """Unknown fields; without a name: text that belongs to no field."""
    lines: list[int] = field(default_factory=list[int])
    """Lines of the heading; they become plan notes if the draft is no task."""

    def has(self, key: Key) -> bool:
        """Return whether the field is given."""
        return any(one.key == key for one in self.fields)


@dataclass(slots=True, kw_only=True)
class PlanDocument:
    """Tasks, fields and notes that the segmenter found."""

    source: SourceText
    outline: Outline
    drafts: list[TaskDraft] = field(default_factory=list[TaskDraft])
    plan: dict[PlanKey, FieldText] = field(default_factory=dict[PlanKey, FieldText])
    for_all: list[FieldText] = field(default_factory=list[FieldText])
    """Fields that hold for every task without them."""
    heading: str | None = None
    """Text of the first heading of level 1."""
    reasoning: str | None = None
    """Text of a `<reasoning>` block."""
    notes: dict[int, None] = field(default_factory=dict[int, None])
    """Lines outside tasks that belong to no field; an ordered set."""
