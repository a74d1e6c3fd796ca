"""Reader of markdown plans: the segmenter's drafts become fields with values. Pure.

Text that belongs to no field is kept as notes, as it was written.
"""

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field, replace

from mimir.domain.finding import Finding, SourcePosition
from mimir.domain.located_tree import (
    LocatedValue,
    LocatedValueError,
    parse_json,
    parse_yaml,
)
from mimir.planning.format import labels
from mimir.planning.format.diagnostics import make_finding
from mimir.planning.format.labels import PlanKey
from mimir.planning.reader import line_syntax
from mimir.planning.reader.block_text import fence_text, tag_text, trim_blank_lines
from mimir.planning.reader.checks import parse_checks, write_listed_checks, write_script_check
from mimir.planning.reader.outline import FieldText, PlanDocument, TaskDraft
from mimir.planning.reader.segmenter import Segmenter
from mimir.planning.reader.source import SourceBlock, SourceText
from mimir.planning.reader.task_reader import RawTask, for_all, name_task, unknown_field
from mimir.planning.reader.values import RawField, ValueLine, title

_DATA = frozenset({"yaml", "yml", "json", ""})
_SHELLS = frozenset({"sh", "bash", "shell", "zsh", "console"})


@dataclass(slots=True, kw_only=True)
class RawPlan:
    """Fields and tasks of a plan before their values are read."""

    tasks: list[RawTask] = field(default_factory=list[RawTask])
    values: dict[PlanKey, str] = field(default_factory=dict[PlanKey, str])
    notes: list[str] = field(default_factory=list[str])
    findings: list[Finding] = field(default_factory=list[Finding])
    document: PlanDocument | None = None
    """Segmented text with the drafts of `tasks`, in their order. None: it is JSON."""


def read_markdown_plan(source: SourceText) -> RawPlan:
    """Return the plan of a markdown document."""
    return _MarkdownReader(source).read()


class _MarkdownReader:
    def __init__(self, source: SourceText) -> None:
        self.source = source
        self.plan = RawPlan()
        self.document: PlanDocument = Segmenter(source).run()

    def read(self) -> RawPlan:
        drafts = self._without_mentions(self.document.drafts)
        for draft in drafts:
            self.plan.tasks.append(self._raw_task(draft))
        for_all(
            self.plan.tasks,
            [r for one in self.document.for_all for r in self._raws(one, first=True)],
        )
        self._read_plan_fields()
        self.plan.notes = self._chunks(sorted(self.document.notes))
        self._find_hidden_tasks(drafts)
        # The parser sorts by position; at one position the cause comes before its consequences.
        self.plan.findings[:0] = self.source.problems
        self.document.drafts = drafts
        self.plan.document = self.document
        return self.plan

    # Tasks.

    def _without_mentions(self, drafts: Sequence[TaskDraft]) -> list[TaskDraft]:
        """Remove headings that only mention a task of the plan; their text becomes plan notes."""
        names: set[str] = set()
        for draft in drafts:
            # Only drafts with content are tasks; an overview names the same tasks without any.
            if draft.has("prompt") or len(draft.fields) > 1:
                names.update(name for name in self._names(draft) if name)
        tasks: list[TaskDraft] = []
        for draft in drafts:
            only_title = all(one.key == "title" for one in draft.fields)
            if names and only_title and any(name in names for name in self._names(draft)):
                self._move_to_notes(draft)
            else:
                tasks.append(draft)
        return tasks

    def _names(self, draft: TaskDraft) -> tuple[str, str]:
        """Return the id of its heading and the id of its "Task ID" field."""
        task = RawTask(heading_id=draft.head.id if draft.head else "")
        if draft.id is not None:
            name_task(task, self._raws(draft.id)[0], [])
        return task.heading_id, task.id

    def _move_to_notes(self, draft: TaskDraft) -> None:
        lines = [*draft.lines, *(n for one in draft.notes for n in one.lines)]
        fields = [*draft.fields, *([draft.id] if draft.id else [])]
        lines += [n for one in fields for n in (one.index, *one.lines)]
        self.document.notes.update(dict.fromkeys(lines))

    def _raw_task(self, draft: TaskDraft) -> RawTask:
        task = RawTask(place=self._place(draft))
        if draft.head is not None:
            task.heading_id, task.title = draft.head.id, draft.head.title
        raw_id = self._raws(draft.id)[0] if draft.id is not None else None
        if raw_id is None and draft.head is not None and not draft.head.id:
            found = labels.LabelMatch(field=labels.BY_KEY["id"])
            raw_id = RawField(found=found, name="Task ID", place=task.place, text=draft.head.title)
        name_task(task, raw_id, self.plan.findings)
        if draft.id is not None and draft.head is None:
            lines = draft.id.lines if draft.id.inline.strip() else draft.id.lines[1:]
            task.notes.extend(self._chunks(lines))
        for one in draft.fields:
            task.raws.extend(self._raws(one, task))
        for one in draft.notes:
            if one.name:
                self.plan.findings.append(unknown_field(one.name, self._place(one)))
            task.notes.extend(self._chunks(one.lines))
        return task

    def _place(self, one: FieldText | TaskDraft) -> SourcePosition:
        return self.source.place(one.index, one.column)

    # Values.

    def _raws(
        self, one: FieldText, task: RawTask | None = None, *, first: bool = False
    ) -> list[RawField]:
        """Return a field's value, or several: one for each fence of data.

        Args:
            one: The field.
            task: Receives the text around a block as notes.
            first: True: only the first paragraph.
        """
        assert one.found is not None
        raw = RawField(found=one.found, name=one.name, place=self._place(one))
        if one.text is not None:
            return [replace(raw, text=one.text, exact=True)]
        blocks = [b for n in one.lines if (b := self.source.blocks.get(n)) is not None]
        body = [n for n in one.lines if self.source.lines[n].strip()]
        alone = not one.inline.strip() and bool(body)
        if alone and blocks and blocks[0].start == body[0] and blocks[0].tag.startswith("text"):
            self._keep_around(one, blocks[:1], task)
            return [replace(raw, text=tag_text(self.source, blocks[0]), exact=True)]
        data = self._data_blocks(one, blocks, body)
        if data:
            self._keep_around(one, data, task)
            return [self._data(raw, block) for block in data]
        lines = tuple(self._value_lines(one, first=first))
        text = trim_blank_lines([line.text for line in lines])
        return [replace(raw, text=text, lines=lines, node=self._bare_checks(one, text))]

    def _data_blocks(
        self, one: FieldText, blocks: list[SourceBlock], body: list[int]
    ) -> list[SourceBlock]:
        fences = [b for b in blocks if b.kind == "fence" and b.info in _DATA]
        if one.key == "checks":
            # Checks in a fence of another language, such as ```bash, are a finding, not prose.
            return fences or [b for b in blocks if b.kind == "fence"]
        if one.key == "criteria" and fences and fences[0].start == body[0]:
            return fences[:1]
        return []

    def _keep_around(
        self, one: FieldText, blocks: Sequence[SourceBlock], task: RawTask | None
    ) -> None:
        """Keep the text around a field's blocks as notes."""
        inside = {n for block in blocks for n in range(block.start, block.end)}
        rest = self._chunks([n for n in one.lines if n not in inside])
        if task is not None:
            task.notes.extend([one.inline.strip(), *rest] if one.inline.strip() else rest)

    def _data(self, raw: RawField, block: SourceBlock) -> RawField:
        text = fence_text(self.source, block)
        line = self.source.first_line + block.start + 1
        if raw.key == "checks" and block.info in _SHELLS and text.strip():
            text = write_script_check(text)
        try:
            is_json = block.info == "json"
            parse = parse_checks if raw.key == "checks" else parse_yaml
            node = parse_json(text, line) if is_json else parse(text, line, block.indent)
        except LocatedValueError as error:
            return replace(raw, place=error.place, text=text, unreadable=str(error))
        place = self.source.place(block.start, block.indent + 1)
        return replace(raw, place=place, text=text, node=node)

    def _value_lines(self, one: FieldText, *, first: bool) -> Iterator[ValueLine]:
        if one.inline.strip():
            yield ValueLine(text=one.inline.strip(), place=self._place(one), inline=True)
        for number, n in enumerate(one.lines):
            if first and (number or one.inline.strip()) and not self.source.lines[n].strip():
                return
            yield ValueLine(text=self.source.lines[n], place=self.source.place(n))

    def _bare_checks(self, one: FieldText, text: str) -> LocatedValue | None:
        """Return the tree of checks without a fence: YAML, a table, or commands in backticks."""
        if one.key != "checks":
            return None
        listed = write_listed_checks(text.split("\n"))
        if not listed and ("run:" not in text or not one.lines):
            return None
        try:
            raw = listed or "\n".join(self.source.lines[n] for n in one.lines)
            first = one.lines[0] if one.lines and not listed else one.index
            node = parse_checks(raw, self.source.first_line + first)
        except LocatedValueError:
            return None
        return node if any(item.kind == "map" for item in node.items) else None

    # The plan.

    def _read_plan_fields(self) -> None:
        heading = self.document.heading
        if heading is not None:
            head, _, rest = heading.partition(":")
            # "# Plan: title" is the form of the instructions; other headings are the title itself.
            is_head = head.strip().casefold() == "plan"
            self.plan.values["title"] = rest.strip() if is_head else heading
        for key, one in self.document.plan.items():
            self.plan.values[key] = self._plan_text(key, one)
        if self.document.reasoning is not None:
            self.plan.values["reasoning"] = self.document.reasoning

    def _plan_text(self, key: PlanKey, one: FieldText) -> str:
        one.found = labels.LabelMatch(field=labels.BY_KEY["title"])
        raw = self._raws(one)[0]
        if raw.exact:
            return raw.text
        if key == "reasoning":
            return trim_blank_lines([one.inline.strip(), *(self.source.raw[n] for n in one.lines)])
        return title(raw)

    def _chunks(self, lines: Iterable[int]) -> list[str]:
        """Return each run of consecutive lines as a text; a `<text>` block is a text of its own."""
        chunks: list[str] = []
        run: list[int] = []
        skip_until = -1
        for n in lines:
            if n < skip_until:
                continue
            block = self.source.blocks.get(n)
            is_text = block is not None and block.tag.startswith("text")
            if run and (n != run[-1] + 1 or is_text):
                chunks += self._chunk(run)
                run = []
            if block is not None and is_text:
                chunks.append(tag_text(self.source, block))
                skip_until = block.end
            else:
                run.append(n)
        return chunks + self._chunk(run)

    def _chunk(self, lines: Sequence[int]) -> list[str]:
        """Return lines as a text, unless they are only blank lines and rules."""
        text = trim_blank_lines([self.source.raw[n] for n in lines])
        return [text] if text.replace("-", "").strip() else []

    # Text that may have been misread.

    def _fault(self, code: str, message: str, index: int, hint: str) -> None:
        self.plan.findings.append(make_finding(code, message, self.source.place(index), hint))

    def _find_hidden_tasks(self, drafts: Sequence[TaskDraft]) -> None:
        """Report fences outside prompts in which an unknown task begins."""
        blocks = [b for n in self.document.notes if (b := self.source.blocks.get(n)) is not None]
        fences = [block for block in blocks if block.kind == "fence"]
        known = {name for draft in drafts if fences for name in self._names(draft)}
        for block in fences:
            for inner in range(block.start + 1, block.end - 1):
                line = self.source.lines[inner]
                heading = line_syntax.heading_of(line)
                head = line_syntax.task_head(heading.text) if heading else None
                # A known task in a fence is an example of a plan that is given elsewhere too.
                if line_syntax.is_task_start(line) and (head is None or head.id not in known):
                    hint = "Move it out of the fence if it belongs to the plan."
                    self._fault("task-in-fence", "A task in a code fence is not read.", inner, hint)
                    break
