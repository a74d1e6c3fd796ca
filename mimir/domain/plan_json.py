"""The plan as JSON and back, losing nothing: how a run pins the plan that it was started with.

Keys are the names of the values' fields; a fraction is text ("1/3"), a tuple a list. Every field is
written, defaults too, so that a later version's defaults cannot change a pinned plan.
"""

import re
from collections.abc import Callable, Mapping
from dataclasses import fields
from fractions import Fraction
from typing import TypeVar

from mimir.domain.plan import Check, Criterion, Plan, Task

SCHEMA = 1

_FRACTION = re.compile(r"-?\d{1,4000}(/0*[1-9]\d{0,4000})?")
_T = TypeVar("_T")


def plan_to_json(plan: Plan) -> dict[str, object]:
    """Return the plan as values that `json.dumps` writes."""
    return {"schema": SCHEMA, **_values(plan)}


def _values(value: Plan | Task | Check | Criterion) -> dict[str, object]:
    return {field.name: _plain(getattr(value, field.name)) for field in fields(value)}


def _plain(value: object) -> object:
    match value:
        case Plan() | Task() | Check() | Criterion():
            return _values(value)
        case tuple():
            items: tuple[object, ...] = value  # pyright: ignore[reportUnknownVariableType]  from the pattern alone
            return [_plain(item) for item in items]
        case Fraction():
            return str(value)
        case _:
            return value


def plan_from_json(value: Mapping[str, object]) -> Plan:
    """Return the plan that `plan_to_json` wrote.

    Raises:
        ValueError: It is no such value: a key is missing, too many or of another type, or the schema is newer.
    """
    schema = value.get("schema")
    if schema != SCHEMA:
        raise ValueError(f"A pinned plan of schema {schema!r}; this mimir reads {SCHEMA}.")
    return _plan(_Object({key: item for key, item in value.items() if key != "schema"}, "plan"))


class _Object:
    """A JSON object that must be read whole."""

    def __init__(self, value: object, where: str) -> None:
        if not isinstance(value, Mapping):
            raise ValueError(f"{where}: an object is wanted.")  # noqa: TRY004  one error for all of it
        items: Mapping[object, object] = value  # pyright: ignore[reportUnknownVariableType]  from isinstance alone
        self._left = {str(key): item for key, item in items.items()}
        self._where = where

    def take(self, key: str) -> object:
        if key not in self._left:
            raise ValueError(f"{self._where}: {key!r} is missing.")
        return self._left.pop(key)

    def text(self, key: str) -> str:
        return _text(self.take(key), f"{self._where}.{key}")

    def texts(self, key: str) -> tuple[str, ...]:
        return self.each(key, _text)

    def boolean(self, key: str) -> bool:
        value = self.take(key)
        if not isinstance(value, bool):
            raise ValueError(f"{self._where}.{key}: true or false is wanted.")  # noqa: TRY004
        return value

    def number(self, key: str) -> int | float:
        value = self.take(key)
        if isinstance(value, bool) or not isinstance(value, int | float):
            raise ValueError(f"{self._where}.{key}: a number is wanted.")  # noqa: TRY004
        return value

    def integer(self, key: str) -> int:
        value = self.number(key)
        if not isinstance(value, int):
            raise ValueError(f"{self._where}.{key}: a whole number is wanted.")  # noqa: TRY004
        return value

    def each(self, key: str, read: Callable[[object, str], _T]) -> tuple[_T, ...]:
        value = self.take(key)
        if not isinstance(value, list):
            raise ValueError(f"{self._where}.{key}: a list is wanted.")  # noqa: TRY004
        items: list[object] = value  # pyright: ignore[reportUnknownVariableType]  from isinstance alone
        return tuple(read(item, f"{self._where}.{key}[{n}]") for n, item in enumerate(items))

    def is_null(self, key: str) -> bool:
        """True, and the key is taken, if its value is null."""
        if self._left.get(key, "") is None:
            del self._left[key]
            return True
        return False

    def close(self) -> None:
        if self._left:
            raise ValueError(f"{self._where}: {min(self._left)!r} is not known.")


def _text(value: object, where: str) -> str:
    if not isinstance(value, str):
        raise ValueError(f"{where}: a text is wanted.")  # noqa: TRY004
    return value


def _plan(value: _Object) -> Plan:
    plan = Plan(
        title=value.text("title"),
        tasks=value.each("tasks", _task),
        goal=value.text("goal"),
        request=value.text("request"),
        reasoning=value.text("reasoning"),
        notes=value.text("notes"),
    )
    value.close()
    return plan


def _task(item: object, where: str) -> Task:
    value = _Object(item, where)
    task = Task(
        id=value.text("id"),
        title=value.text("title"),
        prompt=value.text("prompt"),
        worker_role=value.text("worker_role"),
        qc_role=value.text("qc_role"),
        criteria=value.each("criteria", _criterion),
        checks=value.each("checks", _check),
        dependencies=value.texts("dependencies"),
        files=value.texts("files"),
        context_files=value.texts("context_files"),
        tools=value.texts("tools"),
        tool_execution=value.text("tool_execution"),
        estimated_tool_calls=_unless_null(value, "estimated_tool_calls", value.integer),
        estimated_minutes=_unless_null(value, "estimated_minutes", value.number),
        time_limit_minutes=value.number("time_limit_minutes"),
        max_retries=value.integer("max_retries"),
        model=value.text("model"),
        parallel_group=value.text("parallel_group"),
        notes=value.text("notes"),
    )
    value.close()
    return task


def _criterion(item: object, where: str) -> Criterion:
    value = _Object(item, where)
    points = _unless_null(value, "points", value.text)
    # Only the form that we write: a fraction of "1e9999999" would fill the memory.
    if points is not None and not _FRACTION.fullmatch(points):
        raise ValueError(f"{where}.points: {points!r} is no number.")
    criterion = Criterion(
        id=value.text("id"),
        text=value.text("text"),
        points=None if points is None else Fraction(points),
        critical=value.boolean("critical"),
    )
    value.close()
    return criterion


def _check(item: object, where: str) -> Check:
    value = _Object(item, where)
    kind = _unless_null(value, "kind", value.text)
    if kind not in (None, "flip", "hold"):
        raise ValueError(f"{where}.kind: {kind!r} is neither flip nor hold.")
    check = Check(
        id=value.text("id"),
        criteria=value.texts("criteria"),
        run=_run(value.take("run"), where),
        kind=kind,
        tests=_unless_null(value, "tests", value.texts),
        protect=value.texts("protect"),
        required=value.boolean("required"),
        timeout_seconds=value.number("timeout_seconds"),
    )
    value.close()
    return check


def _run(value: object, where: str) -> tuple[str, ...] | str:
    if isinstance(value, str):
        return value
    return _Object({"run": value}, where).texts("run")


def _unless_null(value: _Object, key: str, read: Callable[[str], _T]) -> _T | None:
    return None if value.is_null(key) else read(key)
