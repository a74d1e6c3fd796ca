"""A JSON plan: `{overview, reasoning, tasks: […]}` or a bare list of tasks; keys are labels in camelCase or snake_case."""

import json
from collections.abc import Iterator

from mimir.planning.format import labels
from mimir.planning.format.diagnostics import SourcePosition, make_finding, quote_excerpt
from mimir.planning.format.labels import LabelMatch, words
from mimir.planning.format.located_tree import LocatedValue
from mimir.planning.reader.markdown import RawPlan
from mimir.planning.reader.task_reader import RawTask, name_task
from mimir.planning.reader.values import RawField, ValueLine

_LISTS = frozenset({"tools", "files", "context_files"})
_TREES = frozenset({"criteria", "checks"})
_EXACT = frozenset(
    {"title", "worker_role", "qc_role", "prompt", "model", "tool_execution", "notes"}
)


def is_plan(node: LocatedValue) -> bool:
    """True if a JSON value is meant to be a plan: a list of objects, or an object with tasks."""
    if node.kind == "list":
        return any(item.kind == "map" for item in node.items)
    return node.kind == "map" and _tasks_of(node) is not None


def read_json_plan(node: LocatedValue) -> RawPlan:
    """Return the plan that a JSON value gives."""
    plan = RawPlan()
    tasks = node if node.kind == "list" else _read_root(node, plan)
    for name, item in _each_task(tasks):
        if item.kind != "map":
            message = "A task must be an object."
            hint = "Write {id, title, prompt, …}."
            plan.findings.append(make_finding("json-shape", message, item.place, suggestion=hint))
        else:
            plan.tasks.append(_task(item, name, plan))
    return plan


def _tasks_of(node: LocatedValue) -> LocatedValue | None:
    for key, value in node.keys.items():
        if words(key) == "tasks" and value.kind in ("list", "map"):
            return value
    inner = node.keys.get("plan")
    return _tasks_of(inner) if inner is not None and inner.kind == "map" else None


def _each_task(tasks: LocatedValue | None) -> Iterator[tuple[str, LocatedValue]]:
    """Yield tasks with the names that an object of tasks gives them."""
    if tasks is None:
        return
    if tasks.kind == "map":
        yield from tasks.keys.items()
    else:
        yield from (("", item) for item in tasks.items)


def _read_root(node: LocatedValue, plan: RawPlan) -> LocatedValue | None:
    for key, value in node.keys.items():
        if words(key) == "tasks" or value.kind == "null":
            continue
        if key == "plan" and _tasks_of(value) is not None:
            _read_root(value, plan)
        elif words(key) == "overview" and value.kind == "map":
            _read_overview(value, plan)
        else:
            _take(plan, key, value, overview=words(key) == "overview")
    return _tasks_of(node)


def _read_overview(node: LocatedValue, plan: RawPlan) -> None:
    for key, value in node.keys.items():
        _take(plan, key, value)


def _take(plan: RawPlan, key: str, value: LocatedValue, *, overview: bool = False) -> None:
    """Take a value of the plan itself; what is not known becomes notes."""
    name = "goal" if overview else labels.find_plan_label(key)
    if name == "notes":
        plan.notes.append(_prose(value))
    elif name is None or name in plan.values:
        if words(key) != "schema":
            plan.notes.append(f"{key}: {_prose(value)}")
    else:
        plan.values[name] = _prose(value)


def _prose(node: LocatedValue) -> str:
    """Return a value as text: a text as it is, an object's texts with their names."""
    if node.is_scalar:
        return node.text
    if node.kind == "map" and all(value.is_scalar for value in node.keys.values()):
        return "\n\n".join(f"{key}:\n{value.text}" for key, value in node.keys.items())
    return json.dumps(_plain(node), ensure_ascii=False, indent=2)


def _plain(node: LocatedValue) -> object:
    """Return the tree as values; its depth is bounded by the parser."""
    if node.kind == "map":
        return {key: _plain(value) for key, value in node.keys.items()}
    if node.kind == "list":
        return [_plain(item) for item in node.items]
    return None if node.kind == "null" else node.text


def _task(node: LocatedValue, name: str, plan: RawPlan) -> RawTask:
    given = RawTask(place=node.place, heading_id=name)
    ids: list[RawField] = []
    for key, value in node.keys.items():
        found = labels.find_json_key(key)
        if found is None:
            _unknown(given, key, value, node.key_places[key], plan)
        elif value.kind != "null":
            raw = _raw(found, key, value, plan)
            if raw is not None:
                (ids if raw.key == "id" else given.raws).append(raw)
    name_task(given, ids[0] if ids else None, plan.findings)
    return given


def _unknown(
    given: RawTask, key: str, value: LocatedValue, place: SourcePosition, plan: RawPlan
) -> None:
    near = labels.near(key)
    plan.findings.append(
        make_finding(
            "label-misspelt" if near else "label-unknown",
            f"{quote_excerpt(key)} is no field of a task; its text is kept as notes, which no agent sees.",
            place,
            suggestion=f"Did you mean {near!r}?"
            if near
            else "What the worker needs belongs into the prompt.",
        )
    )
    given.notes.append(f"{key}: {_prose(value)}")


def _raw(found: LabelMatch, key: str, node: LocatedValue, plan: RawPlan) -> RawField | None:
    """Return a field's value; None and a finding if it is of the wrong type."""
    name = found.field.key
    if name in _TREES and node.kind != "text":
        return RawField(found=found, name=key, place=node.place, text=_prose(node), node=node)
    if name in _LISTS or name == "dependencies":
        items = _items(found, key, node)
        if items is not None or node.kind in ("text", "number"):
            return RawField(found=found, name=key, place=node.place, text=_prose(node), items=items)
    elif name in ("prompt", "tool_execution") and node.kind == "list":
        if all(item.kind == "text" for item in node.items):
            text = "\n".join(item.text for item in node.items)
            return RawField(found=found, name=key, place=node.place, text=text, exact=True)
    elif node.kind == "text" or (node.kind == "number" and name not in _EXACT):
        lines = tuple(ValueLine(text=line, place=node.place) for line in node.text.split("\n"))
        exact = name in _EXACT and node.kind == "text"
        return RawField(
            found=found, name=key, place=node.place, text=node.text, lines=lines, exact=exact
        )
    code = "dependency-unreadable" if name == "dependencies" else "value-unreadable"
    message = f"{key} has a value of the wrong type."
    hint = "Write a list of texts." if name in _LISTS or name == "dependencies" else "Write a text."
    plan.findings.append(make_finding(code, message, node.place, suggestion=hint))
    return None


def _items(found: LabelMatch, key: str, node: LocatedValue) -> tuple[RawField, ...] | None:
    """Return the texts of a list; None if it is none."""
    if node.kind != "list" or not all(item.kind in ("text", "number") for item in node.items):
        return None
    return tuple(
        RawField(found=found, name=key, place=item.place, text=item.text) for item in node.items
    )
