"""Strict loader of model scripts in YAML.

Every error names the file and the place in the document. The format: docs/scripted-models.md.
"""

import json
import math
import re
from collections.abc import Callable, Hashable
from dataclasses import fields, replace
from pathlib import Path
from typing import Any, Literal, TypeVar, get_args

import yaml

from mimir.domain.json_value import JsonObject, as_member, is_array, is_object
from mimir.domain.message import Finish
from mimir.errors import Location, PlanError
from mimir.llm.scripted.faults import FAULTS
from mimir.llm.scripted.script import (
    ALWAYS,
    FOREVER,
    Json,
    ModelScript,
    ScriptCondition,
    ScriptedCall,
    ScriptedPart,
    ScriptedTurn,
    TurnFault,
)

T = TypeVar("T")
_FINISHES: tuple[Finish, ...] = get_args(Finish)


def load_script(path: Path) -> ModelScript:
    """Load a model script from a file; a `PlanError` names the mistake."""
    try:
        text = path.read_bytes().decode("utf-8")
    except (OSError, UnicodeDecodeError) as error:
        raise PlanError(
            f"The model script cannot be read: {error}.", at=Location(file=str(path), line=1)
        ) from None
    return parse(text, str(path))


def parse(text: str, file: str = "play") -> ModelScript:
    """Parse a model script from YAML text; raises as `load_script`."""
    try:
        value: object = yaml.load(text, Loader=_StrictYamlLoader)
    except (yaml.YAMLError, RecursionError) as error:
        problem, at = str(error), Location(file=file, line=1)
        if isinstance(error, yaml.MarkedYAMLError):
            problem = str(error.problem)
            if mark := error.problem_mark:
                at = Location(file=file, line=mark.line + 1, column=mark.column + 1)
        raise PlanError(f"The model script is not YAML: {problem}.", at=at, code="play") from None
    return from_value(value, file)


def from_value(value: object, file: str = "play") -> ModelScript:
    """Build a model script from a parsed document; raises as `load_script`."""
    doc = _ScriptNode(file, "", value).table(("play", "roles", "parts", "default"))
    return ModelScript(
        name=doc.get("play", _ScriptNode.text, file),
        roles=doc.get("roles", _roles, {}),
        parts=doc.get("parts", lambda node: node.each(_part), ()),
        default=doc.get("default", lambda node: node.each(_turn), ()),
    )


class _StrictYamlLoader(yaml.SafeLoader):
    """YAML without dates and without duplicate keys."""


def _construct_mapping(loader: _StrictYamlLoader, node: yaml.MappingNode) -> dict[Hashable, object]:
    keys: set[object] = set()
    for key, _ in node.value:
        if key.value in keys:
            raise yaml.constructor.ConstructorError(
                None, None, f"the key {key.value!r} is there twice", key.start_mark
            )
        keys.add(key.value)
    return loader.construct_mapping(node, deep=True)


_StrictYamlLoader.add_constructor("tag:yaml.org,2002:map", _construct_mapping)
# A date would become an object that JSON does not have; without its rule it stays text.
_StrictYamlLoader.yaml_implicit_resolvers = {
    first: [(tag, rule) for tag, rule in rules if tag != "tag:yaml.org,2002:timestamp"]
    for first, rules in yaml.SafeLoader.yaml_implicit_resolvers.items()
}


class _ScriptNode:
    """A value of the document with its place."""

    def __init__(self, file: str, path: str, value: object) -> None:
        self.file = file
        self.path = path
        self.value = value

    def error(self, problem: str) -> PlanError:
        return PlanError(f"{self.file}: {self.path or 'the document'}: {problem}", code="play")

    def child(self, step: str | int, value: object) -> "_ScriptNode":
        name = f"[{step}]" if isinstance(step, int) else f".{step}" if self.path else step
        return _ScriptNode(self.file, f"{self.path}{name}", value)

    def members(self, problem: str = "a table is needed here.") -> JsonObject:
        if not is_object(self.value):
            raise self.error(problem)
        return self.value

    def key(self, name: object) -> str:
        # Typed as text, but YAML allows any key.
        return _ScriptNode(self.file, self.path, name).text()

    def table(self, keys: tuple[str, ...]) -> "_ScriptNode":
        for key in self.members():
            if key not in keys:
                raise self.error(f"unknown key {key!r}; known are {', '.join(keys)}.")
        return self

    def get(self, key: str, read: "Callable[[_ScriptNode], T]", default: T) -> T:
        row = self.members()
        return read(self.child(key, row[key])) if key in row else default

    def require(self, key: str, read: "Callable[[_ScriptNode], T]") -> T:
        if key not in self.members():
            raise self.error(f"{key!r} is missing.")
        return read(self.child(key, self.members()[key]))

    def each(self, read: "Callable[[_ScriptNode], T]") -> tuple[T, ...]:
        if not is_array(self.value):
            raise self.error("a list is needed here.")
        return tuple(read(self.child(n, item)) for n, item in enumerate(self.value))

    def text(self) -> str:
        if not isinstance(self.value, str):
            raise self.error("a text is needed here (quote it).")
        return self.value

    def texts(self) -> tuple[str, ...]:
        is_single = isinstance(self.value, str)
        return (self.text(),) if is_single else self.each(_ScriptNode.text)

    def count(self) -> int:
        value = self.value
        if not isinstance(value, int) or isinstance(value, bool) or not 0 <= value <= FOREVER:
            raise self.error("a whole number from 0 is needed here.")
        return value

    def seconds(self) -> float:
        value = self.value
        if not isinstance(value, int | float) or isinstance(value, bool):
            raise self.error("a number of seconds is needed here.")
        if not math.isfinite(value) or value < 0:
            raise self.error("a number of seconds from 0 is needed here.")
        return float(value)

    def json(self) -> Json:
        value = self.value
        if is_object(value):
            return {self.key(k): self.child(str(k), v).json() for k, v in value.items()}
        if is_array(value):
            return list(self.each(_ScriptNode.json))
        if value is None or isinstance(value, str | bool | int | float):
            return value
        raise self.error(f"{type(value).__name__} has no form in JSON.")


def _field_names(kind: type[Any]) -> tuple[str, ...]:
    return tuple(field.name for field in fields(kind))


def _roles(node: _ScriptNode) -> dict[str, tuple[str, ...]]:
    rows = node.members("a table of role to texts is needed here.")
    return {node.key(role): node.child(str(role), words).texts() for role, words in rows.items()}


def _part(node: _ScriptNode) -> ScriptedPart:
    row = node.table(("role", "task", "lane", "attempt", "when", "turns", "closing"))
    attempts, first = row.get("attempt", _attempt, ((), 0))
    return ScriptedPart(
        role=row.get("role", _ScriptNode.text, "*"),
        task=row.get("task", _ScriptNode.text, "*"),
        lane=row.get("lane", _ScriptNode.text, "*"),
        attempts=attempts,
        from_attempt=first,
        when=row.get("when", _when, ALWAYS),
        turns=row.require("turns", lambda node: node.each(_turn)),
        closing=row.get("closing", _turn, None),
    )


def _attempt(node: _ScriptNode) -> tuple[tuple[int, ...], int]:
    value = node.value
    if value == "*":
        return (), 0
    if isinstance(value, str) and (later := re.fullmatch(r">=\s*(\d{1,6})", value)):
        return (), int(later[1])
    if isinstance(value, int):
        return (node.count(),), 0
    return node.each(_ScriptNode.count), 0


def _when(node: _ScriptNode) -> ScriptCondition:
    keys = _field_names(ScriptCondition)
    row = node.table(keys)
    return ScriptCondition(**{key: row.get(key, _ScriptNode.texts, ()) for key in keys})


def _turn(node: _ScriptNode) -> ScriptedTurn:
    if isinstance(node.value, str):
        return ScriptedTurn(text=node.value)
    row = node.table(_field_names(ScriptedTurn))
    turn = ScriptedTurn(
        text=row.get("text", _ScriptNode.text, None),
        calls=row.get("calls", lambda node: node.each(_call), ()),
        verdict=row.get("verdict", _verdict, None),
        choose=row.get("choose", lambda node: node.each(_turn), ()),
        when=row.get("when", _when, ALWAYS),
        fault=row.get("fault", _fault, None),
        delay_seconds=row.get("delay_seconds", _ScriptNode.seconds, 0.0),
        finish=row.get("finish", _finish, None),
        usage=row.get("usage", _usage, None),
        repeat=row.get("repeat", _repeat, 1),
    )
    _check_turn(node, turn)
    if turn.fault is None:
        return turn
    return replace(turn, fault=_set_fault_limit(node.child("fault", None), turn.fault, turn))


def _set_fault_limit(node: _ScriptNode, fault: TurnFault, turn: ScriptedTurn) -> TurnFault:
    """Set how often a fault occurs: once before the turn's own answer, always without one."""
    if FAULTS[fault.name].kind == "answer" and not fault.times:
        return replace(fault, times=FOREVER)
    if not turn.has_answer and (fault.times or fault.while_file):
        raise node.error("with times or while_file the turn needs an answer for afterwards.")
    return fault if fault.times else replace(fault, times=1 if turn.has_answer else FOREVER)


def _check_turn(node: _ScriptNode, turn: ScriptedTurn) -> None:
    if turn.verdict is not None and (turn.text is not None or turn.calls):
        raise node.error("a verdict is the text of its turn; remove text and calls.")
    if turn.choose and (turn.has_answer or turn.fault):
        raise node.error("a turn has either choose or an answer.")
    if not (turn.choose or turn.has_answer or turn.fault):
        raise node.error("a turn needs text, calls, verdict, choose or fault.")
    if turn.repeat < 1:
        raise node.error("repeat starts at 1.")


def _call(node: _ScriptNode) -> ScriptedCall:
    row = node.table(_field_names(ScriptedCall))
    return ScriptedCall(
        tool=row.require("tool", _ScriptNode.text),
        arguments=row.get("arguments", _arguments, "{}"),
        id=row.get("id", _ScriptNode.text, ""),
        times=row.get("times", _ScriptNode.count, 1),
    )


def _arguments(node: _ScriptNode) -> str:
    # A text is sent as it is: a script can make a model write arguments that are not JSON.
    is_text = isinstance(node.value, str)
    return node.text() if is_text else json.dumps(node.json(), ensure_ascii=False)


def _verdict(node: _ScriptNode) -> dict[str, Json]:
    row: Json = {"auto": node.value} if isinstance(node.value, str) else node.json()
    if not isinstance(row, dict):
        raise node.error('a verdict is a table, or "pass" or "fail".')
    if "auto" in row and row["auto"] not in ("pass", "fail"):
        raise node.error('auto is "pass" or "fail".')
    return row


def _fault(node: _ScriptNode) -> TurnFault:
    if isinstance(node.value, str):
        node = _ScriptNode(node.file, node.path, {"name": node.value})
    row = node.table(_field_names(TurnFault))
    name = row.require("name", _ScriptNode.text)
    if name not in FAULTS:
        raise node.error(f"unknown fault {name!r}; known are {', '.join(FAULTS)}.")
    parameter = row.get("parameter", _ScriptNode.text, "")
    if (name == "unsupported_parameter") != bool(parameter):
        raise node.error("unsupported_parameter needs a parameter, other faults have none.")
    return TurnFault(
        name=name,
        times=row.get("times", _ScriptNode.count, 0),
        while_file=row.get("while_file", _ScriptNode.text, ""),
        seconds=row.get("seconds", _ScriptNode.seconds, 1.0),
        parameter=parameter,
    )


def _finish(node: _ScriptNode) -> Finish:
    finish = as_member(node.value, _FINISHES)
    if finish is None:
        raise node.error(f"finish is one of {', '.join(_FINISHES)}.")
    return finish


def _usage(node: _ScriptNode) -> tuple[int, int] | Literal["none"]:
    if node.value == "none":
        return "none"
    row = node.table(("input", "output"))
    return row.require("input", _ScriptNode.count), row.require("output", _ScriptNode.count)


def _repeat(node: _ScriptNode) -> int:
    return FOREVER if node.value == "forever" else node.count()
