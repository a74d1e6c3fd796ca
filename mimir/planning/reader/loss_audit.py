"""Audit of a reading: finds tasks, fields and criteria that were read as other text. Pure.

Each line outside delimited prompts, fences and comments is looked at without its marks: quote and
list marks, emphasis, tags, emoji. A line that then names a task, a needed field, ids of the plan or
a criterion, and that was read as something else, is a finding. So no form of a line loses it silently.
"""

import re
from collections.abc import Iterator, Sequence
from dataclasses import replace

from mimir.domain.finding import Finding, quote_excerpt
from mimir.domain.plan import Task
from mimir.domain.value_class import value_class
from mimir.planning.format import labels
from mimir.planning.format.diagnostics import make_finding
from mimir.planning.format.labels import Key
from mimir.planning.reader.line_normalization import narrow_text
from mimir.planning.reader.line_syntax import indent_of, is_rule
from mimir.planning.reader.outline import FieldText, PlanDocument, TaskDraft
from mimir.planning.reader.source import NESTING_INFO
from mimir.planning.reader.task_references import NONE_EXCEPT

_MARKS = re.compile(
    r"(?:</?\w{1,10}>|&nbsp;|\[[ \txX✓✔]?\](?=\s)|[a-zA-Z]\)(?=\s)|\(?\d{1,3}[.)](?=\s)|[^\w<&(\[`]|_|[`\[(](?=\w))*"
)
_TAGS = re.compile(r"</?\w{1,10}/?>")
_ENDS_NAME = re.compile(r"</(?:summary|dt|th|td)>", re.IGNORECASE)
_FIELD = re.compile(r"([A-Za-z][\w /\-]{0,60}?)\W*?\s*(?:[:;=|】\])]|[-–—]+>?\s|→|$)\W*(.*)$")
_TASK = re.compile(
    r"task(?:\s+id\W{1,5}|\s*[-_#]?\s*)(?:task[-_ ])?(\d[\w.\-]*|[\w]+-[\w.\-]*)", re.I
)
_TASK_ID_LABEL = re.compile(r"task\s+id(?:entifier)?\b", re.IGNORECASE)
_AFTER_TASK = re.compile(r"\s*(?:$|[^\w\s]|\s[-–—]\s)")
_NAMES_A_TASK = re.compile(r"\W*(?:task\b|\d+\.\d)", re.IGNORECASE)
_ASIDE = re.compile(r"\([^()]*\)")
_INNER_LABEL = re.compile(r"\*\*([^*:]{1,60}):\*\*|\*\*([^*:]{1,60})\*\*:")
_TAGGED = re.compile(r"<([A-Za-z_\-]{2,30})>([^<>]+)</\1>")
_WORDS_AND_IDS = tuple(
    re.compile(rf"({name})(?:\s?[^\w\s]{{1,6}}\s*|\s+)(.+)$")
    for name in (r"[A-Za-z]+", r"[A-Za-z]+[ _\-][A-Za-z]+")
)
_ITEM_MARK = re.compile(r"\s*[-*+•]\s")
_LIST = re.compile(r"\s*(?:,|;|/|&|\+|\band\b|\s)\s*", re.IGNORECASE)
_POINTED = re.compile(
    r"\W*?(?:[(\[]\s*\d{1,4}\s*(?:pts?|points?|%)\s*[)\]]|\d{1,4}\s*(?:pts?|points?)\s*:)",
    re.IGNORECASE,
)
_BOX = re.compile(r"\W*(?:\[[ \txX✓✔]?\]|[☐☑✅✔])\s*\S")
_BEFORE = frozenset(
    [
        "blocked by",
        "needs",
        "prerequisites",
        "prerequisite",
        "depends",
        "must follow",
        "follows",
        "predecessors",
        "predecessor",
        "upstream",
        "waits for",
        "wait for",
        "requires tasks",
        "blockers",
        "preceding tasks",
        "prior tasks",
    ]
)
"""Labels that mean dependencies, but that the table of labels does not have."""
_ONE_LINE: frozenset[Key] = frozenset(
    {
        "estimated_minutes",
        "time_limit_minutes",
        "estimated_tool_calls",
        "parallel_group",
        "max_retries",
        "model",
    }
)
"""Fields whose value is one line, so that a list below it is none of their value."""
_NEEDED: frozenset[Key] = frozenset({"prompt", "dependencies", "criteria"})


@value_class
class _Line:
    """A line that the audit looks at, and its role in the reading."""

    index: int
    text: str
    draft: TaskDraft | None
    """Task that has the line; None: it is outside of tasks."""
    in_prompt: bool = False
    """True: it is part of a prompt without tags."""
    is_below: bool = False
    """True: its indent makes it a part of the prompt."""
    is_in_list: bool = False
    """True: it is in the value of criteria or dependencies."""
    is_below_value: bool = False
    """True: it follows a value of one line."""
    is_fenced: bool = False
    is_label: bool = False
    """True: it begins a field, so that only the text after the field is looked at."""
    is_heading: bool = False


class LossAudit:
    """Auditor of one document."""

    def __init__(self, document: PlanDocument, tasks: Sequence[Task]) -> None:
        """Prepare the audit of a document whose drafts became `tasks`, in their order."""
        self._document = document
        self._source = document.source
        self._ids = {task.id.casefold() for task in tasks if task.id}
        self._ids |= {draft.head.id.casefold() for draft in document.drafts if draft.head}
        self._tasks = dict(zip((d.index for d in document.drafts), tasks, strict=True))
        self._fenced_lines = {
            n
            for block in document.source.blocks.values()
            if block.kind == "fence" and block.info in NESTING_INFO
            for n in range(block.start + 1, block.end - 1)
        }
        self._found: dict[tuple[int, str], list[Finding]] = {}

    def find(self) -> list[Finding]:
        """Return one finding for each task and kind of line that was read as other text."""
        for line in self._lines():
            bare = _bare(line.text)
            if not bare:
                continue
            if line.is_label or line.is_fenced:
                self._is_lost_list(line, bare)
                continue
            _ = (
                self._is_lost_task(line, bare)
                or self._is_lost_field(line, bare)
                or self._is_lost_list(line, bare)
                or self._is_lost_criterion(line)
                or self._is_lost_item(line)
                or self._is_lost_heading(line)
            )
        return [_summary(group) for group in self._found.values()]

    def _lines(self) -> Iterator[_Line]:
        """Yield the lines of notes, of values and of prompts without tags."""
        drafts = self._document.drafts
        for draft in drafts:
            for one in draft.fields:
                if one.key not in ("checks", "notes"):
                    yield replace(self._line(one.index, draft), is_label=True)
                    yield from self._of_field(one, draft)
            for one in draft.notes:
                # A misspelt label is an error already.
                if one.name and not labels.nearest_label(one.name):
                    yield self._line(one.index, draft)
                yield from (
                    self._line(n, draft) for n in one.lines if n != one.index or not one.name
                )
            if draft.id is not None:
                yield from (self._line(n, draft) for n in draft.id.lines)
        yield from (self._line(n, None) for n in sorted(self._document.notes))
        # Sections of the plan are text about the tasks, but may have swallowed one.
        plan = sorted(n for one in self._document.plan.values() for n in one.lines)
        yield from (self._line(n, None) for n in plan if names_task(self._source.lines[n]))

    def _of_field(self, one: FieldText, draft: TaskDraft) -> Iterator[_Line]:
        for n in one.unmarked:
            is_below = one.shape[0] == "bullet" and indent_of(self._source.lines[n]) > one.shape[1]
            yield replace(self._line(n, draft), in_prompt=True, is_below=is_below)
        is_list = one.key in ("criteria", "dependencies")
        lines = (
            n
            for n in one.lines
            if not is_list or self._names_field(n) or names_task(self._source.lines[n])
        )
        # A group has a short name, so that a sentence below its label is something else.
        is_one_line = one.key in _ONE_LINE and (one.inline.strip() or one.key == "parallel_group")
        yield from (
            replace(self._line(n, draft), is_in_list=is_list, is_below_value=bool(is_one_line))
            for n in lines
        )

    def _names_field(self, index: int) -> bool:
        """Return whether a line of a list has the form of a label, not of an item."""
        text = self._source.lines[index]
        match = _FIELD.match(_bare(text))
        if match is None or _is_item(text):
            return False
        # "- Tools:" is an item, or the heading of a group of criteria.
        is_item = _ITEM_MARK.match(text) is not None
        return _key_of(match[1]) is not None or (not is_item and bool(labels.find(match[1])))

    def _line(self, index: int, draft: TaskDraft | None) -> _Line:
        is_opaque = index in self._source.opaque_lines
        is_fenced = index in self._fenced_lines
        return _Line(
            index=index,
            text="" if is_opaque and not is_fenced else self._source.lines[index],
            draft=draft,
            is_fenced=is_fenced,
            is_heading=index in self._document.outline.headings,
        )

    # Kinds of lines.

    def _is_lost_task(self, line: _Line, bare: str) -> bool:
        match = _TASK.match(bare)
        if match is None or not _AFTER_TASK.match(bare[match.end() :]):
            return False
        # Text may mention a task of the plan; an unknown one was lost.
        id = narrow_text(match[1]).rstrip(".-").casefold()
        is_label = _TASK_ID_LABEL.match(bare) is not None
        if self._is_known(id) or (line.text[:1].isalpha() and not is_label and line.in_prompt):
            return False
        message = (
            f"{quote_excerpt(line.text)} looks like the beginning of a task, but was read as text."
        )
        return self._report(
            "task-unread", line, message, "Write the heading as '### task-1: Title'."
        )

    def _is_known(self, id: str) -> bool:
        return not {id, f"task-{id}", id.removeprefix("task-")}.isdisjoint(self._ids)

    def _is_lost_field(self, line: _Line, bare: str) -> bool:
        match = _FIELD.match(bare)
        if match is None:
            return False
        key, draft = _key_of(match[1]), line.draft
        value = match[2] or self._next_text(line.index)
        if key is None:
            is_field = line.is_in_list or self._follows_task(line)
            return is_field and bool(labels.find(match[1])) and self._report_field(line, match[1])
        is_meant = (
            draft is not None and not draft.has("dependencies") and _NAMES_A_TASK.match(value)
        )
        if key == "dependencies" and (is_meant or self._ids_in(value, line)):
            return self._report_field(line, match[1])
        if draft is None:
            if self._is_in_notes(line.index):
                return False
            # A section about the whole plan may follow the tasks.
            is_section = line.is_heading and self._last_has(key, line.index)
            return not is_section and key in _NEEDED and self._report_field(line, match[1])
        if key == "id" or (line.in_prompt and (key != "criteria" or line.is_below)):
            return False
        # A second list of criteria counts as well.
        if draft.has(key) and (key != "criteria" or line.in_prompt):
            return False
        return self._report_field(line, match[1])

    def _next_text(self, index: int) -> str:
        after = self._document.outline.next_text(index + 1)
        while after < len(self._source) and is_rule(self._source.lines[after]):
            after = self._document.outline.next_text(after + 1)
        return self._source.lines[after] if after < len(self._source) else ""

    def _is_in_notes(self, index: int) -> bool:
        """Return whether the section of a line is the notes of the plan."""
        headings = self._document.outline.headings
        above = max((n for n in headings if n < index), default=-1)
        return above >= 0 and labels.find_plan_label(headings[above].text) == "notes"

    def _follows_task(self, line: _Line) -> bool:
        """Return whether a bold label outside of tasks follows the first task."""
        is_label = line.draft is None and line.text.startswith("**") and not line.is_heading
        first = min(draft.index for draft in self._document.drafts)
        is_plan_label = labels.find_plan_label(_head(line.text)) is not None
        return is_label and line.index > first and not is_plan_label

    def _last_has(self, key: Key, index: int) -> bool:
        before = [draft for draft in self._document.drafts if draft.index < index]
        return not before or before[-1].has(key)

    def _is_lost_list(self, line: _Line, bare: str) -> bool:
        """Report `anything: task-1, task-2` within a task that does not depend on these."""
        text = narrow_text(bare)
        head, colon, value = text.partition(":")
        parts = [(head, value)] if colon and len(head) <= 60 else []
        if match := _TAGGED.search(narrow_text(line.text)):
            parts.append((match[1], match[2]))
        words = (pattern.match(text) for pattern in _WORDS_AND_IDS)
        parts += [(match[1], match[2]) for match in words if match and _key_of(match[1])]
        # A second label may stand behind the value of the first one.
        inner = [
            (match[1] or match[2], text[match.end() :]) for match in _INNER_LABEL.finditer(text)
        ]
        parts = inner if line.is_label else parts + inner
        for name, ids in parts if line.draft is not None else ():
            is_free = _key_of(name) in (None, "dependencies")
            if is_free and self._ids_in(ids, line):
                return self._report_field(line, name)
        return False

    def _ids_in(self, value: str, line: _Line) -> bool:
        """Return whether a value is a list of ids that the task does not depend on."""
        value = NONE_EXCEPT.sub("", _TAGS.sub("", narrow_text(value)))
        text = _ASIDE.sub("", value).strip(" \t.:*_`|[](){}>→-")
        words = [word for word in _LIST.split(text) if word]
        # "none; task-1" contradicts itself, so it is no text either.
        names = [
            word.strip("`*_.,;()[]#→").casefold()
            for word in words
            if word.casefold() not in ("task", "none")
        ]
        if not names or not all(name and self._is_known(name) for name in names):
            return False
        # A bare number is a number, unless the label or the word "task" gives its meaning.
        is_bare = len(names) == len(words) and all(name.isdigit() for name in names)
        if is_bare and _key_of(_head(line.text)) is None:
            return False
        task = self._tasks[line.draft.index] if line.draft is not None else None
        own = {id.casefold() for id in (task.id, *task.dependencies)} if task else set[str]()
        return any(not ({n, f"task-{n}"} & own) for n in names)

    def _is_lost_criterion(self, line: _Line) -> bool:
        text = narrow_text(line.text)
        if line.in_prompt and _BOX.match(text) is not None and not _is_item(text, points=True):
            message = f"The list item {quote_excerpt(line.text)} is part of the prompt."
            hint = "Move it below 'Verification Criteria', if it is a criterion."
            return self._report("item-in-prompt", line, message, hint)
        is_in_task = line.draft is not None and not line.in_prompt
        if not _is_item(text, points=not is_in_task):
            return False
        message = (
            f"{quote_excerpt(line.text)} looks like a criterion, but is outside of the criteria."
        )
        return self._report(
            "criterion-unreadable", line, message, "Move it below 'Verification Criteria'."
        )

    def _is_lost_item(self, line: _Line) -> bool:
        if not line.is_below_value or _ITEM_MARK.match(line.text) is None or len(line.text) < 12:
            return False
        message = f"{quote_excerpt(line.text)} is below a value of one line, so it is not read."
        hint = "Move it below 'Verification Criteria', if it is a criterion."
        return self._report("criterion-beside", line, message, hint)

    def _is_lost_heading(self, line: _Line) -> bool:
        """Report a heading right below a criterion, without a text of its own."""
        above = self._source.lines[line.index - 1] if line.is_heading and line.index else ""
        after = self._document.outline.next_text(line.index + 1)
        is_empty = (
            after >= len(self._source)
            or is_rule(self._source.lines[after])
            or after in self._document.outline.headings
        )
        if line.draft is not None or not is_empty or not _is_item(above):
            return False
        message = f"{quote_excerpt(line.text)} is a heading, but stands below a criterion."
        hint = "Write it as a list item, if it is a criterion."
        return self._report("criterion-beside", line, message, hint)

    # Findings.

    def _report_field(self, line: _Line, name: str) -> bool:
        where = "inside the prompt" if line.in_prompt else "read as text"
        code = "label-in-prompt" if line.in_prompt else "field-outside"
        message = f"{quote_excerpt(name)} is {where}, so it is no field of the task."
        hint = "Write it as a field: '**Dependencies:** task-1', outside of the prompt."
        return self._report(code, line, message, hint)

    def _report(self, code: str, line: _Line, message: str, hint: str) -> bool:
        finding = make_finding(code, message, self._source.place(line.index), hint)
        # One heading in an unknown form makes text of all the fields below it.
        cause = line.draft.index if line.draft is not None else -1
        self._found.setdefault((cause, code), []).append(finding)
        return True


def _summary(group: Sequence[Finding]) -> Finding:
    """Return one finding for the lines of one task, or outside of tasks."""
    first, others = group[0], len(group) - 1
    if not others:
        return first
    lines = ", ".join(str(one.line) for one in group[1:6])
    more = " and more" if others > 5 else ""
    return replace(first, message=f"{first.message} The same holds for line {lines}{more}.")


def names_task(line: str) -> bool:
    """Return whether a line has the form of the beginning of a task, in any marks."""
    bare = _bare(line)
    match = _TASK.match(bare)
    return match is not None and _AFTER_TASK.match(bare[match.end() :]) is not None


def _bare(text: str) -> str:
    """Return a line without the marks before its first word."""
    if not text.strip() or is_rule(text):
        return ""
    narrow = narrow_text(_ENDS_NAME.sub(": ", text))
    marks = _MARKS.match(narrow)
    return _TAGS.sub("", narrow[marks.end() if marks else 0 :]).strip()


def _is_item(text: str, *, points: bool = False) -> bool:
    """Return whether a line is a criterion: it has points or, unless `points`, a box."""
    return _POINTED.match(text) is not None or (not points and _BOX.match(text) is not None)


def _head(text: str) -> str:
    match = _FIELD.match(_bare(text))
    return match[1] if match else ""


def _key_of(name: str) -> Key | None:
    """Return the needed field that a label names, also by a name that the table lacks."""
    if labels.words(name) in _BEFORE:
        return "dependencies"
    found = labels.find(name)
    key = found.field.key if found is not None else None
    return key if key in _NEEDED or key == "id" else None
