"""A markdown plan: the walk's drafts become fields with values. What nothing claims is kept as notes, as it was written."""

import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field

from mimir.planning.format import labels
from mimir.planning.format.diagnostics import PlanFinding, make_finding, quote_excerpt
from mimir.planning.format.labels import PlanKey
from mimir.planning.format.located_tree import (
    LocatedValue,
    LocatedValueError,
    parse_json,
    parse_yaml,
)
from mimir.planning.reader import line_syntax
from mimir.planning.reader.block_text import fence_text, tag_text, trim_blank_lines
from mimir.planning.reader.outline import FieldText, PlanDocument, TaskDraft
from mimir.planning.reader.segmenter import walk
from mimir.planning.reader.source import SourceBlock, SourceText
from mimir.planning.reader.task_reader import RawTask, for_all, name_task
from mimir.planning.reader.values import RawField, ValueLine, title

_NAMES_A_TASK = re.compile(r"\W*(?:task\b|\d+\.\d)", re.IGNORECASE)
_DATA = frozenset({"yaml", "yml", "json", ""})


@dataclass(slots=True, kw_only=True)
class RawPlan:
    """A plan as it was given: its own fields, and the tasks' before they are read."""

    tasks: list[RawTask] = field(default_factory=list[RawTask])
    values: dict[PlanKey, str] = field(default_factory=dict[PlanKey, str])
    notes: list[str] = field(default_factory=list[str])
    findings: list[PlanFinding] = field(default_factory=list[PlanFinding])


def read_markdown_plan(source: SourceText) -> RawPlan:
    """Return the plan that a markdown document gives."""
    return _MarkdownReader(source).read()


class _MarkdownReader:
    def __init__(self, source: SourceText) -> None:
        self.source = source
        self.plan = RawPlan()
        self.document: PlanDocument = walk(source)

    def read(self) -> RawPlan:
        drafts = self._without_mentions(self.document.drafts)
        for draft in drafts:
            self.plan.tasks.append(self._given(draft))
            self._find_hidden_fields(draft)
        for_all(
            self.plan.tasks,
            [r for one in self.document.for_all for r in self._raws(one, first=True)],
        )
        self._read_plan_fields()
        self.plan.notes = self._chunks(sorted(self.document.notes))
        self._find_hidden_tasks(drafts)
        self._find_lost_fields()
        self.plan.findings[:0] = self.source.problems
        return self.plan

    # Tasks.

    def _without_mentions(self, drafts: Sequence[TaskDraft]) -> list[TaskDraft]:
        """Leave out headings that only mention a task which is given elsewhere; their text is the plan's notes."""
        names: set[str] = set()
        for draft in drafts:
            if draft.has("prompt") or len(draft.fields) > 1:
                names.update(name for name in self._names(draft) if name)
        kept: list[TaskDraft] = []
        for draft in drafts:
            only_title = all(one.key == "title" for one in draft.fields)
            if names and only_title and any(name in names for name in self._names(draft)):
                self._forget(draft)
            else:
                kept.append(draft)
        return kept

    def _names(self, draft: TaskDraft) -> tuple[str, str]:
        """Return the id that its heading gives, and the one of its "Task ID" field."""
        silent: list[PlanFinding] = []
        given = RawTask(heading_id=draft.head.id if draft.head else "")
        if draft.id is not None:
            name_task(given, self._raws(draft.id)[0], silent)
        return given.heading_id, given.id

    def _forget(self, draft: TaskDraft) -> None:
        lines = [*draft.lines, *(n for one in draft.notes for n in one.lines)]
        fields = [*draft.fields, *([draft.id] if draft.id else [])]
        lines += [n for one in fields for n in (one.index, *one.lines)]
        self.document.notes.update(dict.fromkeys(lines))

    def _given(self, draft: TaskDraft) -> RawTask:
        given = RawTask(place=self.source.place(draft.index, draft.column))
        if draft.head is not None:
            given.heading_id, given.title = draft.head.id, draft.head.title
        raw_id = self._raws(draft.id)[0] if draft.id is not None else None
        if raw_id is None and draft.head is not None and not draft.head.id:
            raw_id = RawField(
                found=labels.LabelMatch(field=labels.BY_KEY["id"]),
                name="Task ID",
                place=given.place,
                text=draft.head.title,
            )
        name_task(given, raw_id, self.plan.findings)
        if draft.id is not None and draft.head is None:
            self._keep_rest(given, draft.id)
        for one in draft.fields:
            given.raws.extend(self._raws(one, given))
        for one in draft.notes:
            self._unknown(one)
            given.notes.extend(self._chunks(one.lines))
        return given

    def _keep_rest(self, given: RawTask, id: FieldText) -> None:
        """Keep text that stands right behind the id."""
        lines = id.lines if id.inline.strip() else id.lines[1:]
        given.notes.extend(self._chunks(lines))

    def _unknown(self, one: FieldText) -> None:
        if not one.name:
            return
        near = labels.near(one.name)
        code = "label-misspelt" if near else "label-unknown"
        self.plan.findings.append(
            make_finding(
                code,
                f"{quote_excerpt(one.name)} is no field of a task; its text is kept as notes, which no agent sees.",
                self.source.place(one.index, one.column),
                suggestion=f"Did you mean {near!r}?"
                if near
                else "What the worker needs belongs into the prompt.",
            )
        )

    # Values.

    def _raws(
        self, one: FieldText, given: RawTask | None = None, *, first: bool = False
    ) -> list[RawField]:
        """Return a field's value; one for each fence of data.

        Args:
            one: The field.
            given: Takes what stands beside a block.
            first: Only the first paragraph.
        """
        assert one.found is not None
        place = self.source.place(one.index, one.column)
        if one.text is not None:
            return [
                RawField(found=one.found, name=one.name, place=place, text=one.text, exact=True)
            ]
        blocks = [b for n in one.lines if (b := self.source.blocks.get(n)) is not None]
        body = [n for n in one.lines if self.source.lines[n].strip()]
        alone = not one.inline.strip() and bool(body)
        if alone and blocks and blocks[0].start == body[0] and blocks[0].tag.startswith("text"):
            self._keep_beside(one, blocks[:1], given)
            text = tag_text(self.source, blocks[0])
            return [RawField(found=one.found, name=one.name, place=place, text=text, exact=True)]
        data = self._data_blocks(one, blocks, body)
        if data:
            self._keep_beside(one, data, given)
            return [self._data(one, block) for block in data]
        return [self._lines(one, first=first)]

    def _data_blocks(
        self, one: FieldText, blocks: list[SourceBlock], body: list[int]
    ) -> list[SourceBlock]:
        fences = [b for b in blocks if b.kind == "fence" and b.info in _DATA]
        if one.key == "checks":
            return fences or [b for b in blocks if b.kind == "fence"]
        if one.key == "criteria" and fences and fences[0].start == body[0]:
            return fences[:1]
        return []

    def _keep_beside(
        self, one: FieldText, blocks: Sequence[SourceBlock], given: RawTask | None
    ) -> None:
        inside = {n for block in blocks for n in range(block.start, block.end)}
        rest = self._chunks([n for n in one.lines if n not in inside])
        if given is not None:
            given.notes.extend([one.inline.strip(), *rest] if one.inline.strip() else rest)

    def _data(self, one: FieldText, block: SourceBlock) -> RawField:
        assert one.found is not None
        text = fence_text(self.source, block)
        line = self.source.first_line + block.start + 1
        place = self.source.place(block.start, block.indent + 1)
        try:
            node = (
                parse_json(text, line)
                if block.info == "json"
                else parse_yaml(text, line, block.indent)
            )
        except LocatedValueError as error:
            return RawField(
                found=one.found, name=one.name, place=error.place, text=text, unreadable=str(error)
            )
        return RawField(found=one.found, name=one.name, place=place, text=text, node=node)

    def _lines(self, one: FieldText, *, first: bool) -> RawField:
        assert one.found is not None
        lines: list[ValueLine] = []
        if one.inline.strip():
            place = self.source.place(one.index, one.column)
            lines.append(ValueLine(text=one.inline.strip(), place=place, inline=True))
        for n in one.lines:
            if first and lines and not self.source.lines[n].strip():
                break
            lines.append(ValueLine(text=self.source.lines[n], place=self.source.place(n)))
        text = trim_blank_lines([line.text for line in lines])
        node = self._bare_checks(one, text)
        return RawField(
            found=one.found,
            name=one.name,
            place=self.source.place(one.index, one.column),
            text=text,
            lines=tuple(lines),
            node=node,
        )

    def _bare_checks(self, one: FieldText, text: str) -> LocatedValue | None:
        """Return the tree of checks that stand in YAML without a fence."""
        if one.key != "checks" or "run:" not in text or not one.lines:
            return None
        try:
            raw = "\n".join(self.source.lines[n] for n in one.lines)
            node = parse_yaml(raw, self.source.first_line + one.lines[0])
        except LocatedValueError:
            return None
        return node if any(item.kind == "map" for item in node.items) else None

    # The plan.

    def _read_plan_fields(self) -> None:
        heading = self.document.heading
        if heading is not None:
            head, colon, rest = heading.partition(":")
            self.plan.values["title"] = (
                rest.strip() if colon and head.strip().casefold() == "plan" else heading
            )
            if heading.strip().casefold() == "plan":
                self.plan.values["title"] = ""
        for key, one in self.document.plan.items():
            self.plan.values[key] = self._plan_text(key, one)
        if self.document.reasoning is not None:
            self.plan.values["reasoning"] = self.document.reasoning

    def _plan_text(self, key: PlanKey, one: FieldText) -> str:
        found = labels.LabelMatch(field=labels.BY_KEY["title"])
        one.found = found
        raw = self._raws(one)[0]
        if raw.exact:
            return raw.text
        if key == "reasoning":
            return trim_blank_lines([one.inline.strip(), *(self.source.raw[n] for n in one.lines)])
        return title(raw)

    def _chunks(self, lines: Iterable[int]) -> list[str]:
        """Return lines as texts, one for each run of them; a `<text>` block's inside is one by itself."""
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
        """Return lines as a text, unless there is nothing in it but blank lines and rules."""
        text = trim_blank_lines([self.source.raw[n] for n in lines])
        return [text] if text.replace("-", "").strip() else []

    # What may have been lost.

    def _find_hidden_fields(self, draft: TaskDraft) -> None:
        """Name dependencies and criteria that stand in a bare prompt in another form than the task's fields."""
        outline = self.document.outline
        for n in (n for one in draft.fields for n in one.unmarked):
            heading = outline.headings.get(n)
            label = line_syntax.heading_label(heading) if heading else outline.labels.get(n)
            key = label.found.field.key if label is not None and label.found is not None else None
            if label is None or key is None or draft.has(key):
                continue
            if key == "criteria" or (key == "dependencies" and _NAMES_A_TASK.match(label.value)):
                self._hidden(n, label.name)

    def _hidden(self, n: int, name: str) -> None:
        self.plan.findings.append(
            make_finding(
                "label-in-prompt",
                f"{quote_excerpt(name)} stands inside the prompt, and the task does not give it.",
                self.source.place(n),
                suggestion="Put the prompt between <prompt> and </prompt>, and the field behind it.",
            )
        )

    def _find_lost_fields(self) -> None:
        for one in self.document.lost:
            self.plan.findings.append(
                make_finding(
                    "field-outside",
                    f"{quote_excerpt(one.name)} stands outside any task, and the task before it has none.",
                    self.source.place(one.index),
                    suggestion="Put it into the task; a heading that is not below the task's ends the task.",
                )
            )

    def _find_hidden_tasks(self, drafts: Sequence[TaskDraft]) -> None:
        """Name fences outside prompts in which a task begins that is not in the plan."""
        blocks = [b for n in self.document.notes if (b := self.source.blocks.get(n)) is not None]
        fences = [block for block in blocks if block.kind == "fence"]
        known = {name for draft in drafts if fences for name in self._names(draft)}
        for block in fences:
            for inner in range(block.start + 1, block.end - 1):
                line = self.source.lines[inner]
                heading = line_syntax.heading_of(line)
                head = line_syntax.task_head(heading.text) if heading else None
                if line_syntax.is_task_start(line) and (head is None or head.id not in known):
                    self.plan.findings.append(
                        make_finding(
                            "task-in-fence",
                            "A task in a code fence was not read.",
                            self.source.place(inner),
                            suggestion="Take it out of the fence if it belongs to the plan.",
                        )
                    )
                    break
