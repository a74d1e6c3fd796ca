"""Segmentation of a document: assigns each line to a task, a field or the plan. Pure.

A task begins at a heading that names one, or at a "Task ID" label. It ends at the next task, at a
heading that is not below it, or where other text follows a rule. Labels inside it begin fields;
other text is the task's notes. Values are read later.
"""

from mimir.planning.format import labels
from mimir.planning.format.labels import LabelMatch
from mimir.planning.reader import line_syntax
from mimir.planning.reader.block_text import tag_text
from mimir.planning.reader.criteria import is_marked_item
from mimir.planning.reader.line_syntax import HeadingLine, LabelLine, TaskHeading
from mimir.planning.reader.outline import FieldText, Outline, PlanDocument, TaskDraft
from mimir.planning.reader.plan_sections import PlanSections
from mimir.planning.reader.prompts import PromptReader
from mimir.planning.reader.source import SourceBlock, SourceText

# Fields with a body, in which labels of another form are text.
_BODIES = frozenset({"criteria", "checks", "tool_execution", "notes", "prompt"})


class Segmenter:
    """One pass over the lines of a document."""

    def __init__(self, source: SourceText) -> None:
        self.source = source
        self.outline = Outline(source)
        self.document = PlanDocument(source=source, outline=self.outline)
        self.task: TaskDraft | None = None
        self.field: FieldText | None = None
        self.ruled = False
        """True: a rule followed the task's last field."""
        self.level = 0
        """Level of the last heading that names no field."""
        self.pending: int | None = None
        """Line of a heading that may belong to the next task."""
        self.outside = PlanSections(self.outline, self.document)
        self.has_task_id = any(label.is_task_id for label in self.outline.labels.values())

    def run(self) -> PlanDocument:
        """Return the drafts of all tasks, and the lines outside them."""
        index = 0
        while index < len(self.source):
            index = self._step(index)
        self._end_task()
        return self.document

    def _step(self, index: int) -> int:
        label = self.outline.labels.get(index)
        block = self.source.blocks.get(index)
        if block is not None and label is None:
            return self._on_block(block)
        line = self.source.lines[index]
        if not line.strip():
            self._keep(index)
            return index + 1
        heading = self.outline.headings.get(index)
        if heading is not None:
            return self._on_heading(index, heading)
        if line_syntax.is_rule(line):
            return self._on_rule(index)
        head = self.outline.bold_heads.get(index)
        if head is not None and self.outside.section is None:
            return self._begin(index, head)
        # 0 means "not consumed": the line is text.
        after = self._on_label(index, label) if label is not None else 0
        return after or self._on_text(index, line)

    # Lines without a syntax of their own.

    def _keep(self, index: int) -> None:
        """Add a line to the open field, task or plan section."""
        blank = not self.source.lines[index].strip()
        if self.field is not None:
            self.field.lines.append(index)
        elif self.task is not None and not self.ruled:
            self._keep_note(index)
        else:
            # Blank lines after a rule decide nothing: the next field may follow.
            if not blank:
                self._end_task()
            self.outside.keep(index)

    def _keep_note(self, index: int) -> None:
        task = self.task
        assert task is not None
        if not task.notes or task.notes[-1].found is not None or task.notes[-1].name:
            empty = LabelLine("", "", 1, 1, ("bold", 0))
            task.notes.append(FieldText.from_label(index, empty))
        task.notes[-1].lines.append(index)

    def _on_text(self, index: int, line: str) -> int:
        # Marks of a collapsible section only wrap a task's text.
        text = line.strip().casefold()
        wrapper = text.startswith(("<details", "</details", "<summary"))
        name, _, behind = text.rpartition("<summary>")[2].partition("</summary>")
        found = labels.find(name)
        is_field = found is not None and found.field.key in ("dependencies", "criteria")
        has_text = is_field or bool(behind.removesuffix("</details>").strip())
        if self.task is None or not wrapper or has_text:
            self._keep(index)
        return index + 1

    def _on_rule(self, index: int) -> int:
        if self.field is not None and self.field.key == "criteria" and self._item_follows(index):
            return index + 1
        # A rule between a label and its value ends nothing.
        if self.field is not None and self._value_follows(index):
            return index + 1
        if self.field is not None or self.task is not None:
            self.field = None
            self.ruled = True
        else:
            self.outside.rule(index)
        return index + 1

    def _item_follows(self, index: int) -> bool:
        """Return whether a criterion with points or a box follows a rule in the list."""
        after = self.outline.next_text(index + 1)
        return after < len(self.source) and is_marked_item(self.source.lines[after])

    def _value_follows(self, index: int) -> bool:
        """Return whether the open field has no value yet, and text without a label follows."""
        after = self.outline.next_text(index + 1)
        is_text = after < len(self.source) and not (
            after in self.outline.labels
            or after in self.outline.headings
            or after in self.outline.bold_heads
            or after in self.source.blocks
        )
        return is_text and self.field is not None and not self.field.has_content(self.source)

    # Blocks.

    def _on_block(self, block: SourceBlock) -> int:
        lines = range(block.start, block.end)
        if self.task is not None and block.tag.startswith("prompt") and self._may_be_prompt():
            return self._on_unlabelled_prompt(block)
        if self.field is None and self.ruled:
            self._end_task()
        if self.task is None and self.field is None:
            self.outside.take(block)
            return block.end
        # An HTML comment inside a value would change it.
        if block.kind == "comment" and self.field is not None and self.task is not None:
            self._keep_note(block.start)
            self.task.notes[-1].lines.extend(lines[1:])
            return block.end
        for index in lines:
            self._keep(index)
        return block.end

    def _may_be_prompt(self) -> bool:
        assert self.task is not None
        return not self.task.has("prompt") and (self.field is None or self.field.key not in _BODIES)

    def _on_unlabelled_prompt(self, block: SourceBlock) -> int:
        assert self.task is not None
        one = FieldText.from_label(block.start, LabelLine("Prompt", "", 1, 1, ("block", 0)))
        one.text = tag_text(self.source, block)
        self.task.fields.append(one)
        self.field = None
        return block.end

    # Headings.

    def _on_heading(self, index: int, heading: HeadingLine) -> int:
        head = line_syntax.task_head(heading.text)
        label = line_syntax.heading_label(heading)
        # A task in a section still begins a task: otherwise it would be lost in the prose.
        if head is not None and head.strong:
            return self._begin_at_heading(index, heading, head)
        if self.outside.holds(heading):
            self.outside.keep(index)
            return index + 1
        if label is not None:
            after = self._on_heading_label(index, heading, label)
            if after:
                return after
        if self._is_task_heading(index, head):
            return self._begin_at_heading(index, heading, head)
        if self.task is not None and self.task.by_heading and heading.level > self.task.level:
            self._on_unknown_heading(index, heading)
        else:
            self._end_section(index, heading)
        return index + 1

    def _on_heading_label(self, index: int, heading: HeadingLine, label: LabelLine) -> int:
        found = label.found
        assert found is not None
        if found.for_all:
            return self._on_for_all(index, label)
        if found.field.key == "id":
            return self._on_id(index, label) if self._is_id(label) else 0
        # Outside the task the heading is a section, even if its text is a known label.
        if self.task is None or heading.level <= self.task.level:
            return 0
        # A label in another form than the task's is a section after the last task, if repeated.
        again = self.task.has(found.field.key) or self.ruled
        if again and label.shape not in self.task.shapes:
            return 0
        return self._begin_field(index, label, found)

    def _is_task_heading(self, index: int, head: TaskHeading | None) -> bool:
        """Return whether a heading may name a task, and has a task's fields below it."""
        if not self.outline.has_field(index, "prompt"):
            return False
        return head is not None or self.outline.has_field(index, "worker_role")

    def _on_unknown_heading(self, index: int, heading: HeadingLine) -> None:
        assert self.task is not None
        name = heading.text.rstrip(":： ")
        self.field = FieldText.from_label(
            index, LabelLine(name, "", heading.level + 2, 1, ("heading", heading.level))
        )
        self.field.lines.append(index)
        self.task.notes.append(self.field)
        self.ruled = False

    def _end_section(self, index: int, heading: HeadingLine) -> None:
        self._end_task()
        self.level = heading.level
        self.pending = index
        self.outside.open(index, heading)

    # Tasks.

    def _begin_at_heading(self, index: int, heading: HeadingLine, head: TaskHeading | None) -> int:
        self.pending = None
        self.level = heading.level
        return self._begin(index, head, column=heading.level + 2, by_heading=True)

    def _begin(
        self, index: int, head: TaskHeading | None, *, column: int = 1, by_heading: bool = False
    ) -> int:
        """Begin a task; without `by_heading`, any heading that names no field ends it."""
        self._end_task()
        self.outside.close()
        self.task = TaskDraft(
            index=index, column=column, level=self.level, by_heading=by_heading, head=head
        )
        if by_heading or head is not None:
            self.task.lines.append(index)
        return index + 1

    def _end_task(self) -> None:
        if self.task is not None:
            self.document.drafts.append(self.task)
        self.task = self.field = None
        self.ruled = False

    def _on_id(self, index: int, label: LabelLine) -> int:
        task = self.task
        again = self.ruled and task is not None and bool(task.fields)
        if task is None or task.id is not None or again:
            # "### 1.1 Token bucket" right before "Task ID: 1.1" is the task's own heading.
            claimed = self.pending
            self._begin(index, None, column=label.column)
            assert self.task is not None
            task = self.task
            if claimed is not None and (head := self._claimed_head(claimed, label)):
                task.head = head
                task.lines.append(claimed)
                self.document.notes.pop(claimed, None)
            title = self.outside.title_before(index)
            if title is not None:
                task.fields.append(title)
        self.pending = None
        # Decided at once: a comment after the id is a note of the task.
        task.plain = not task.fields and not task.notes and label.shape[0] == "plain"
        task.id = self.field = FieldText.from_label(index, label)
        task.shapes.add(label.shape)
        self.ruled = False
        return index + 1

    def _is_id(self, label: LabelLine) -> bool:
        """Return whether the label is the task's id: not "ID" alone in a document with "Task ID"."""
        return label.is_task_id or not self.has_task_id

    def _claimed_head(self, heading: int, label: LabelLine) -> TaskHeading | None:
        """Return the task that a heading right before the "Task ID" label names by id or number."""
        id = label.value.strip(" \t`*_")
        text = self.outline.headings[heading].text
        if id and text.startswith(id):
            return TaskHeading(id, text[len(id) :].lstrip(" \t:.)]|-–—"), False)
        number, mark, title = text.partition(". ")
        return TaskHeading(id, title, False) if mark and number.isdigit() and id else None

    # Labels.

    def _on_label(self, index: int, label: LabelLine) -> int:
        """Begin the task or field of a label; return 0 if the label is text."""
        found = label.found
        # Prose has words before a colon too, so that plain labels need a reason to count.
        if label.shape[0] == "plain" and not self._is_plain_label(label):
            return 0
        if self.outside.section is not None and not label.is_task_id:
            return 0
        if found is None:
            return self._on_unknown(index, label)
        if found.for_all:
            return self._on_for_all(index, label)
        if found.field.key == "id":
            return self._on_id(index, label) if self._is_id(label) else 0
        if self.task is None:
            return self._on_label_outside(index, label)
        # After a rule, a repeated field begins a task whose id is missing.
        if self.ruled and self.task.has(found.field.key):
            self._begin(index, None, column=label.column)
        elif not self._accepts(label):
            return 0
        return self._begin_field(index, label, found)

    def _is_plain_label(self, label: LabelLine) -> bool:
        """Return whether a label without emphasis counts: "Task ID", or in a task of such labels."""
        if label.is_task_id:
            return True
        task = self.task
        if task is None:
            return False
        has_notes = any(one.has_content(self.source) for one in task.notes)
        if task.id is None and not task.fields and not has_notes:
            task.plain = True
        return task.plain

    def _accepts(self, label: LabelLine) -> bool:
        """Return whether a label begins a field: not in another form, inside a field's body."""
        assert self.task is not None
        if not self.task.shapes or label.shape in self.task.shapes or self.field is None:
            return True
        if self.field.key == "criteria" and label.shape[0] == "bold":
            return label.found is not None and not self.task.has(label.found.field.key)
        if self.field.found is None or self.field.key in _BODIES:
            return False
        return self.field.has_content(self.source)

    def _begin_field(self, index: int, label: LabelLine, found: LabelMatch) -> int:
        task = self.task
        assert task is not None
        one = FieldText.from_label(index, label)
        self.ruled = False
        self.field = one
        if found.field.key != "prompt":
            task.shapes.add(label.shape)
            task.fields.append(one)
            return index + 1
        prompt = PromptReader(self.outline, task, label).read(index, label)
        task.shapes.add(label.shape)
        task.fields.append(one)
        one.text, one.unmarked = prompt.text, prompt.unmarked
        self.field = None
        return max(prompt.end, index + 1)

    def _on_for_all(self, index: int, label: LabelLine) -> int:
        self._end_task()
        self.field = FieldText.from_label(index, label)
        self.document.for_all.append(self.field)
        return index + 1

    def _on_label_outside(self, index: int, label: LabelLine) -> int:
        self.field = None
        return index + 1 if self.outside.begin(index, label) else 0

    def _on_unknown(self, index: int, label: LabelLine) -> int:
        task = self.task
        if task is None:
            return self._on_label_outside(index, label)
        if self.ruled:
            self._end_task()
            return 0
        if label.shape not in task.shapes or self._is_text_of_field(index):
            return 0
        self.field = FieldText.from_label(index, label)
        task.notes.append(self.field)
        self.field.lines.append(index)
        return index + 1

    def _is_text_of_field(self, index: int) -> bool:
        """Return whether an unknown label is part of prose, or heads a group of criteria."""
        if self.field is None or self.field.key in ("tool_execution", "notes"):
            return self.field is not None
        if self.field.key != "criteria":
            return False
        after = self.outline.next_text(index + 1)
        line = self.source.lines[after].lstrip() if after < len(self.source) else ""
        return not self.field.has_content(self.source) or line.startswith(
            ("- [", "* [", "+ [", "[")
        )
