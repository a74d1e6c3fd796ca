"""Reader of JSON plans: `{overview, reasoning, tasks: […]}` or a bare list of tasks. Pure.

Keys are labels in camelCase or snake_case.
"""

import json
from collections.abc import Iterator
from dataclasses import replace
from typing import get_args

from mimir.domain.located_tree import LocatedValue
from mimir.planning.format import labels
from mimir.planning.format.diagnostics import make_finding
from mimir.planning.format.labels import LabelMatch, ListKey, TextKey, words
from mimir.planning.reader.markdown import RawPlan
from mimir.planning.reader.task_reader import RawTask, name_task, unknown_field
from mimir.planning.reader.values import RawField, ValueLine

_LISTS = frozenset((*get_args(ListKey), "dependencies"))
_EXACT = frozenset(get_args(TextKey))


def is_plan(node: LocatedValue) -> bool:
    """Return whether a JSON value is a plan: a list of objects, or an object with tasks."""
    if node.kind == "list":
        return any(item.kind == "map" for item in node.items)
    return node.kind == "map" and _tasks_of(node) is not None


def read_json_plan(node: LocatedValue) -> RawPlan:
    """Return the plan of a JSON value."""
    plan = RawPlan()
    tasks = node if node.kind == "list" else _read_root(node, plan)
    for name, item in _each_task(tasks):
        if item.kind != "map":
            message, hint = "A task must be an object.", "Write {id, title, prompt, …}."
            plan.findings.append(make_finding("json-shape", message, item.place, hint))
        else:
            plan.tasks.append(_read_task(item, name, plan))
    return plan


def _tasks_of(node: LocatedValue) -> LocatedValue | None:
    for key, value in node.keys.items():
        if words(key) == "tasks" and value.kind in ("list", "map"):
            return value
    # Some models wrap the whole answer: {"plan": {"tasks": […]}}.
    inner = node.keys.get("plan")
    return _tasks_of(inner) if inner is not None and inner.kind == "map" else None


def _each_task(tasks: LocatedValue | None) -> Iterator[tuple[str, LocatedValue]]:
    """Yield tasks with their keys in an object of tasks; a task of a list has an empty key."""
    if tasks is not None:
        # An object of tasks: its keys are the ids.
        yield from tasks.keys.items()
        yield from (("", item) for item in tasks.items)


def _read_root(node: LocatedValue, plan: RawPlan) -> LocatedValue | None:
    for key, value in node.keys.items():
        if words(key) == "tasks" or value.kind == "null":
            continue
        if key == "plan" and _tasks_of(value) is not None:
            _read_root(value, plan)
        elif words(key) == "overview" and value.kind == "map":
            for inner, item in value.keys.items():
                _take_plan_value(plan, inner, item)
        else:
            _take_plan_value(plan, key, value, overview=words(key) == "overview")
    return _tasks_of(node)


def _take_plan_value(
    plan: RawPlan, key: str, value: LocatedValue, *, overview: bool = False
) -> None:
    """Store a value of the plan itself; an unknown one becomes a note."""
    name = "goal" if overview else labels.find_plan_label(key)
    if name == "notes":
        plan.notes.append(_prose(value))
    elif name is None or name in plan.values:
        # The version of a schema tells readers nothing.
        if words(key) != "schema":
            plan.notes.append(f"{key}: {_prose(value)}")
    else:
        plan.values[name] = _prose(value)


def _prose(node: LocatedValue) -> str:
    """Return a value as text; the texts of an object follow their keys."""
    if node.is_scalar:
        return node.text
    if node.kind == "map" and all(value.is_scalar for value in node.keys.values()):
        return "\n\n".join(f"{key}:\n{value.text}" for key, value in node.keys.items())
    return json.dumps(_plain(node), ensure_ascii=False, indent=2)


def _plain(node: LocatedValue) -> object:
    """Return the tree as plain values; the parser bounds its depth."""
    if node.kind == "map":
        return {key: _plain(value) for key, value in node.keys.items()}
    if node.kind == "list":
        return [_plain(item) for item in node.items]
    return None if node.kind == "null" else node.text


def _read_task(node: LocatedValue, name: str, plan: RawPlan) -> RawTask:
    # The key has the rank of a heading: an explicit id wins over it.
    task = RawTask(place=node.place, heading_id=name)
    ids: list[RawField] = []
    for key, value in node.keys.items():
        found = labels.find_json_key(key)
        if found is None:
            plan.findings.append(unknown_field(key, node.key_places[key]))
            task.notes.append(f"{key}: {_prose(value)}")
        elif value.kind != "null":
            raw = _read_field(found, key, value)
            if raw is not None:
                (ids if raw.key == "id" else task.raws).append(raw)
                continue
            is_list = found.field.key in _LISTS
            dependencies = found.field.key == "dependencies"
            code = "dependency-unreadable" if dependencies else "value-unreadable"
            hint = "Write a list of texts." if is_list else "Write a text."
            message = f"{key} has a value of the wrong type."
            plan.findings.append(make_finding(code, message, value.place, hint))
    name_task(task, ids[0] if ids else None, plan.findings)
    return task


def _read_field(found: LabelMatch, key: str, node: LocatedValue) -> RawField | None:
    """Return a field's value; None if it is of a wrong type."""
    name = found.field.key
    raw = RawField(found=found, name=key, place=node.place, text=_prose(node))
    if name in ("criteria", "checks") and node.kind != "text":
        return replace(raw, node=node)
    if name in _LISTS:
        items = _items(found, key, node)
        return (
            replace(raw, items=items)
            if items is not None or node.kind in ("text", "number")
            else None
        )
    if name in ("prompt", "tool_execution") and node.kind == "list":
        is_text = all(item.kind == "text" for item in node.items)
        text = "\n".join(item.text for item in node.items)
        return replace(raw, text=text, exact=True) if is_text else None
    # A number is no text: {"prompt": 5} is an error, {"maxRetries": 5} is not.
    if node.kind == "text" or (node.kind == "number" and name not in _EXACT):
        lines = tuple(ValueLine(text=line, place=node.place) for line in node.text.split("\n"))
        return replace(raw, lines=lines, exact=name in _EXACT and node.kind == "text")
    return None


def _items(found: LabelMatch, key: str, node: LocatedValue) -> tuple[RawField, ...] | None:
    """Return the texts of a list; None if it is no list of texts."""
    if node.kind != "list" or not all(item.kind in ("text", "number") for item in node.items):
        return None
    return tuple(
        RawField(found=found, name=key, place=item.place, text=item.text) for item in node.items
    )
