"""Reader of tasks: raw fields of markdown or JSON become values with positions. Pure."""

from collections.abc import Sequence
from dataclasses import dataclass, field, replace

from mimir.domain.finding import START, Finding, SourcePosition, quote_excerpt
from mimir.domain.plan import (
    DEFAULT_MAX_RETRIES,
    DEFAULT_TIME_LIMIT_MINUTES,
    Check,
    Criterion,
    Task,
)
from mimir.planning.format.diagnostics import SourceMap, make_finding
from mimir.planning.format.labels import BY_KEY, Key, nearest_label
from mimir.planning.reader import checks, criteria, values
from mimir.planning.reader.criteria import RawCriterion
from mimir.planning.reader.task_references import TaskReferences, id_of, is_id
from mimir.planning.reader.values import RawField

# Texts that planners write twice, such as description and prompt: the field's own label wins.
_NAMED_BY_RANK = frozenset({"title", "worker_role", "prompt", "qc_role"})


@dataclass(slots=True, kw_only=True)
class RawTask:
    """Fields of a task before their values are read."""

    place: SourcePosition = START
    id: str = ""
    """Empty: missing or unreadable."""
    heading_id: str = ""
    """Id in its heading."""
    title: str = ""
    """Title in the heading, or after the id."""
    raws: list[RawField] = field(default_factory=list[RawField])
    notes: list[str] = field(default_factory=list[str])

    def fields_of_kind(self, key: Key) -> list[RawField]:
        """Return the fields of one kind, in order."""
        return [raw for raw in self.raws if raw.found.field.key == key]


def name_task(given: RawTask, raw: RawField | None, found: list[Finding]) -> None:
    """Set a task's id: that of the "Task ID" field, or that of the heading."""
    if not is_id(given.heading_id):
        given.heading_id = ""
    if raw is None:
        given.id = given.heading_id
        if not given.id:
            message, hint = "A task has no id.", "Add **Task ID:**."
            found.append(make_finding("task-id-missing", message, given.place, hint))
        return
    given.place = raw.place
    text = values.one_line(raw)
    given.id, title = (text, "") if raw.exact else id_of(text)
    # The heading's title was written as a title; the text after an id may be a remark.
    given.title = given.title or title
    if not given.id:
        given.id = given.heading_id
        code, message = "task-id-unreadable", f"{quote_excerpt(text)} is not a task id."
        if not text.strip():
            code, message = "task-id-missing", "The id of a task is empty."
        hint = "Use letters, digits, '.', '-' and '_', such as task-1.1."
        found.append(make_finding(code, message, raw.place, hint))


def unknown_field(name: str, place: SourcePosition) -> Finding:
    """Return the finding of an unknown field, with the nearest known label."""
    near = nearest_label(name)
    return make_finding(
        "label-misspelt" if near else "label-unknown",
        f"{quote_excerpt(name)} is not a field of a task: its text is kept as notes, which no agent sees.",
        place,
        f"Did you mean {near!r}?"
        if near
        else "Put the facts that the worker needs into the prompt.",
    )


def read_all(
    givens: Sequence[RawTask], places: SourceMap, found: list[Finding]
) -> tuple[Task, ...]:
    """Return the tasks of raw tasks that have their ids."""
    # Dependencies may name a task by its heading although its field gives another id.
    aliases = {g.heading_id: g.id for g in givens if g.heading_id and g.id and g.heading_id != g.id}
    references = TaskReferences([g.id for g in givens if g.id], aliases)
    return tuple(
        _TaskReader(given, number, references, places, found).task()
        for number, given in enumerate(givens)
    )


class _TaskReader:
    def __init__(
        self,
        given: RawTask,
        number: int,
        references: TaskReferences,
        places: SourceMap,
        found: list[Finding],
    ) -> None:
        self._given = given
        self._number = number
        self._references = references
        self._places = places
        self._found = found
        places.set_position(number, "", given.place)
        places.set_position(number, "id", given.place)

    def task(self) -> Task:
        """Return the task; an unreadable value is a finding and becomes the default."""
        given = self._given
        # First the checks: the ids that they name decide which words in criteria are ids.
        found_checks = self._checks()
        all_criteria = self._criteria(found_checks)
        if len(all_criteria) == 1:
            # Without a name, a check can only decide this one.
            only = (all_criteria[0].id,)
            found_checks = tuple(
                replace(one, criteria=one.criteria or only) if one.required else one
                for one in found_checks
            )
        time_limit = self._minutes("time_limit_minutes", DEFAULT_TIME_LIMIT_MINUTES)
        retries = self._count("max_retries", DEFAULT_MAX_RETRIES)
        title, prompt = self._one("title"), self._one("prompt")
        return Task(
            id=given.id,
            title=values.title(title) if title else given.title or given.id,
            prompt=prompt.text if prompt else "",
            worker_role=self._text("worker_role"),
            agent=self._plain("agent"),
            qc_role=self._text("qc_role"),
            criteria=all_criteria,
            checks=found_checks,
            dependencies=self._dependencies(),
            files=self._names("files"),
            context_files=self._names("context_files"),
            tools=self._tools(),
            tool_execution=self._text("tool_execution"),
            estimated_tool_calls=self._count("estimated_tool_calls", None),
            estimated_minutes=self._minutes("estimated_minutes", None),
            time_limit_minutes=DEFAULT_TIME_LIMIT_MINUTES if time_limit is None else time_limit,
            max_retries=DEFAULT_MAX_RETRIES if retries is None else retries,
            model=self._plain("model"),
            parallel_group=self._group(),
            notes=self._notes(),
        )

    def _one(self, key: Key) -> RawField | None:
        """Return the field; a second one with another value is a finding."""
        raws = self._given.fields_of_kind(key)
        if not raws:
            return None
        one = min(raws, key=lambda raw: raw.found.rank) if key in _NAMED_BY_RANK else raws[0]
        self._places.set_position(self._number, key, one.place)
        for raw in raws:
            if raw.text.strip() != one.text.strip():
                self._report_second(raw, one)
        return one

    def _report_second(self, raw: RawField, one: RawField) -> None:
        code = "field-repeated"
        message = f"{raw.name} is given twice, with different values."
        # A text under a synonym supplements the one under the field's own label.
        if raw.key in _NAMED_BY_RANK and raw.found.rank > one.found.rank:
            self._given.notes.append(f"{raw.name}: {raw.text.strip()}")
            code = "field-second"
            message = f"{raw.name} is given in addition to {one.name}: its text is kept as notes, which no agent sees."
        hint = f"Keep one of them; the other is on line {one.place.line}."
        self._fault(code, message, raw.place, hint)

    def _fault(self, code: str, message: str, place: SourcePosition, hint: str) -> None:
        self._found.append(make_finding(code, message, place, hint))

    def _text(self, key: Key) -> str:
        raw = self._one(key)
        if raw is None:
            return ""
        if raw.exact:
            return raw.text
        lines = [line.strip() for line in raw.text.split("\n")]
        return "\n".join(lines).strip()

    def _plain(self, key: Key) -> str:
        """Return a name: one line, without backticks."""
        raw = self._one(key)
        if raw is None or raw.exact:
            return raw.text if raw else ""
        self._rest_to_notes(raw)
        return values.strip_markup(values.one_line(raw))

    def _rest_to_notes(self, raw: RawField) -> None:
        """Keep the lines after the first one as notes."""
        lines = [line.strip() for line in raw.text.split("\n") if line.strip()]
        if len(lines) > 1 and not raw.exact:
            self._given.notes.append(f"{raw.name}: " + "\n".join(lines[1:]))

    def _group(self) -> str:
        raw = self._one("parallel_group")
        if raw is None:
            return ""
        if raw.exact:
            return raw.text
        text = self._plain("parallel_group")
        if values.is_none(text):
            return ""
        text = values.without_aside(text)
        words = text.split()
        return words[1] if len(words) > 1 and words[0].casefold() == "group" else text

    def _count(self, key: Key, default: int | None) -> int | None:
        raw = self._one(key)
        if raw is None:
            return default
        self._rest_to_notes(raw)
        return values.count(raw, self._found, default=default)

    def _minutes(self, key: Key, default: float | None) -> float | None:
        raw = self._one(key)
        if raw is None:
            return default
        self._rest_to_notes(raw)
        return values.minutes(raw, self._found, default=default)

    def _names(self, key: Key) -> tuple[str, ...]:
        raw = self._one(key)
        if raw is None:
            return ()
        items = values.names(raw, self._found)
        # In a JSON list the planner marked the items itself.
        is_free = raw.items is None and values.array_of(raw.text) is None
        for n, item in enumerate(items):
            # A sentence among names was probably meant for the prompt.
            if is_free and values.is_prose(item.text):
                message = f"{raw.name} has a value that is not a name: {quote_excerpt(item.text)}."
                hint = 'Write names separated by commas, or a JSON list: ["a name", "b"].'
                self._fault("value-unreadable", message, item.place, hint)
            self._places.set_position(self._number, key, item.place, n)
        return tuple(item.text for item in items)

    def _tools(self) -> tuple[str, ...]:
        raw = self._one("tools")
        if raw is None or raw.items is not None or raw.exact:
            return self._names("tools")
        word = values.strip_markup(values.one_line(raw)).rstrip(".").casefold()
        # An empty tuple means all tools of the role.
        if word in ("all", "any", "default", "n/a"):
            return ()
        if word and values.is_none(word):
            message = (
                f"{raw.name} is {quote_excerpt(raw.text)}: that would mean all tools of the role."
            )
            hint = "Name at least one tool, or leave the line out for all."
            self._fault("value-unreadable", message, raw.place, hint)
            return ()
        return self._names("tools")

    def _dependencies(self) -> tuple[str, ...]:
        raw = self._one("dependencies")
        if raw is None:
            return ()
        named = self._references.read(raw, self._number, self._found)
        for n, (_, place) in enumerate(named):
            self._places.set_position(self._number, "dependencies", place, n)
        return tuple(id for id, _ in named)

    def _checks(self) -> tuple[Check, ...]:
        done: list[Check] = []
        for raw in self._given.fields_of_kind("checks"):
            if raw.unreadable:
                hint = "Write a YAML list of maps with id, criteria and run."
                self._fault("checks-unreadable", raw.unreadable, raw.place, hint)
            if raw.node is None or not _is_checks(raw):
                continue
            self._places.set_position(self._number, "checks", raw.place)
            for check, place in checks.from_node(raw.node, self._found):
                self._places.set_position(self._number, "checks", place, len(done))
                done.append(check)
        return tuple(done)

    def _criteria(self, found_checks: Sequence[Check]) -> tuple[Criterion, ...]:
        named = {id for check in found_checks for id in check.criteria}
        # Some planners list criteria under "Checks", as texts without commands.
        raws = [*self._given.fields_of_kind("criteria"), *self._given.fields_of_kind("checks")]
        given = criteria.merge_criteria(self._criteria_of(raw, named) for raw in raws)
        if raws and raws[0].key == "criteria":
            self._places.set_position(self._number, "criteria", raws[0].place)
        for n, one in enumerate(given):
            self._places.set_position(self._number, "criteria", one.place, n)
        return criteria.assign_ids(given, self._found)

    def _criteria_of(self, raw: RawField, named: set[str]) -> list[RawCriterion]:
        if raw.key == "checks" and (raw.unreadable or _is_checks(raw)):
            return []
        if raw.unreadable:
            hint = "Write a YAML list of texts, or of maps with id and text."
            self._fault("criterion-unreadable", raw.unreadable, raw.place, hint)
            return []
        if raw.node is not None:
            return criteria.from_node(raw.node, named, self._found)
        if values.is_none(raw.text):
            return []
        read, left = criteria.from_lines(raw.lines, named, self._found)
        if left:
            self._given.notes.append(f"{raw.name}:\n" + "\n".join(left))
        return read

    def _notes(self) -> str:
        raws = self._given.fields_of_kind("notes")
        texts = [raw.text if raw.exact else raw.text.strip() for raw in raws]
        return "\n\n".join([*texts, *self._given.notes])


def _is_checks(raw: RawField) -> bool:
    """Return whether a tree contains checks, not criteria: maps, or nothing."""
    node = raw.node
    if node is None or raw.key != "checks":
        return False
    items = node.items if node.kind == "list" else [node]
    return not items or any(item.kind == "map" for item in items)


def for_all(givens: Sequence[RawTask], raws: Sequence[RawField]) -> None:
    """Give each task the fields for all tasks that it lacks."""
    for raw in raws:
        for given in givens:
            # A task's own value wins over the default for all.
            if not given.fields_of_kind(raw.key):
                given.raws.append(replace(raw, name=BY_KEY[raw.key].label))
