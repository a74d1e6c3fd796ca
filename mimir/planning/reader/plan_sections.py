"""Collector of the lines outside tasks: the plan's fields, sections and notes. Pure."""

from mimir.planning.format import labels
from mimir.planning.format.labels import PlanKey
from mimir.planning.reader.line_syntax import HeadingLine, LabelLine
from mimir.planning.reader.outline import FieldText, Outline, PlanDocument
from mimir.planning.reader.source import SourceBlock


class PlanSections:
    """Collects the lines that belong to no task."""

    def __init__(self, outline: Outline, document: PlanDocument) -> None:
        self.section: tuple[PlanKey, int] | None = None
        """Field of the open section, and the level of its heading."""
        self._source = outline.source
        self._outline = outline
        self._document = document
        self._field: FieldText | None = None

    def close(self) -> None:
        """End the field and the section, because a task begins."""
        self.section = self._field = None

    def keep(self, index: int) -> None:
        """Add a line to the open field, or to the notes."""
        field = self._field
        blank = not self._source.lines[index].strip()
        # Outside sections a blank line ends a field, as a paragraph.
        if field is not None and self.section is None and blank and field.has_content(self._source):
            self._field = field = None
        if field is not None:
            field.lines.append(index)
        else:
            self._document.notes[index] = None

    def rule(self, index: int) -> None:
        """Add a thematic break; it ends a field outside sections."""
        if self.section is None:
            self._field = None
        self.keep(index)

    def take(self, block: SourceBlock) -> None:
        """Add a block as a whole."""
        lines = range(block.start, block.end)
        if block.tag.startswith("reasoning") and self._document.reasoning is None:
            self._document.reasoning = "\n".join(self._source.raw[block.start + 1 : block.end - 1])
        elif self._field is not None:
            self._field.lines.extend(lines)
            self._field = self._field if self.section is not None else None
        else:
            self._document.notes.update(dict.fromkeys(lines))

    def holds(self, heading: HeadingLine) -> bool:
        """Return whether a heading is inside the open section."""
        return self.section is not None and heading.level > self.section[1]

    def open(self, index: int, heading: HeadingLine) -> None:
        """Begin a section; a level-1 heading before all tasks is the plan's title."""
        self.close()
        is_first = self._document.heading is None and not self._document.drafts
        if heading.level == 1 and is_first:
            self._document.heading = heading.text
            return
        key = labels.find_plan_label(heading.text)
        # A second section of the same name is a note: the first one is the plan's.
        if key in ("reasoning", "goal", "request") and key not in self._document.plan:
            name = LabelLine(heading.text, "", heading.level + 2, 1, ("heading", 0))
            self._field = self._document.plan[key] = FieldText.from_label(index, name)
            self.section = (key, heading.level)
        elif labels.words(heading.text) not in (labels.words(labels.TASKS_HEADING), "notes"):
            self._document.notes[index] = None

    def begin(self, index: int, label: LabelLine) -> bool:
        """Begin the plan's field that a label names; return False if it names none."""
        key = labels.find_plan_label(label.name)
        # Reasoning and notes are sections of several paragraphs, which a label cannot begin.
        if key is None or key in ("reasoning", "notes") or key in self._document.plan:
            self._field = None
            return False
        self._field = self._document.plan[key] = FieldText.from_label(index, label)
        return True

    def title_before(self, index: int) -> FieldText | None:
        """Remove and return a plan title right before a task's id: it is the task's title."""
        title = self._document.plan.get("title")
        # Title and id may come in any order; only neighbours belong together.
        if title is None or self._outline.next_text(title.index + 1) != index:
            return None
        del self._document.plan["title"]
        title.lines = []
        return title
