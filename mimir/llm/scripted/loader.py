"""Reads a play from YAML. Strict: what is not of the format is an error that names the file and the place in the document."""

import json
import math
import re
from collections.abc import Callable, Hashable, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Literal, TypeVar, cast, get_args

import yaml

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
_TURN_KEYS = (
    "text",
    "calls",
    "verdict",
    "choose",
    "when",
    "fault",
    "delay_seconds",
    "finish",
    "usage",
    "repeat",
)


def load_script(path: Path) -> ModelScript:
    """Read a play from a file.

    Raises:
        PlanError: The file cannot be read or is no play.
    """
    try:
        text = path.read_bytes().decode("utf-8")
    except (OSError, UnicodeDecodeError) as error:
        raise PlanError(
            f"The play cannot be read: {error}.", at=Location(file=str(path), line=1)
        ) from None
    return parse(text, str(path))


def parse(text: str, file: str = "play") -> ModelScript:
    """Read a play from YAML text; raises as `load_script`."""
    try:
        value: object = yaml.load(text, Loader=_StrictYamlLoader)
    except yaml.MarkedYAMLError as error:
        mark = error.problem_mark
        at = Location(
            file=file,
            line=mark.line + 1 if mark else 1,
            column=mark.column + 1 if mark else 1,
        )
        raise PlanError(f"The play is no YAML: {error.problem}.", at=at, code="play") from None
    except (yaml.YAMLError, RecursionError) as error:
        at = Location(file=file, line=1)
        raise PlanError(f"The play is no YAML: {error}.", at=at, code="play") from None
    return from_value(value, file)


def from_value(value: object, file: str = "play") -> ModelScript:
    """Read a play from a document that was parsed already; raises as `load_script`."""
    at = _ScriptNode(file, "")
    doc = at.table(value, ("play", "roles", "parts", "default"))
    return ModelScript(
        name=doc.get("play", _ScriptNode.text, file),
        roles={role: tuple(words) for role, words in doc.get("roles", _roles, {}).items()},
        parts=tuple(doc.get("parts", lambda at, v: at.each(v, _part), [])),
        default=tuple(doc.get("default", lambda at, v: at.each(v, _turn), [])),
    )


class _StrictYamlLoader(yaml.SafeLoader):
    """YAML without dates, and without a key twice."""


def _mapping(loader: _StrictYamlLoader, node: yaml.MappingNode) -> dict[Hashable, object]:
    seen: set[object] = set()
    for key, _ in node.value:
        if key.value in seen:
            raise yaml.constructor.ConstructorError(
                None, None, f"the key {key.value!r} stands twice", key.start_mark
            )
        seen.add(key.value)
    return cast("dict[Hashable, object]", loader.construct_mapping(node, deep=True))


_StrictYamlLoader.add_constructor("tag:yaml.org,2002:map", _mapping)
_StrictYamlLoader.yaml_implicit_resolvers = {
    first: [(tag, rule) for tag, rule in rules if tag != "tag:yaml.org,2002:timestamp"]
    for first, rules in yaml.SafeLoader.yaml_implicit_resolvers.items()
}


class _ScriptNode:
    """A place in the document; reads values there or says what is wrong."""

    def __init__(self, file: str, path: str) -> None:
        self.file = file
        self.path = path

    def wrong(self, what: str) -> PlanError:
        place = self.path or "the document"
        return PlanError(f"{self.file}: {place}: {what}", code="play")

    def at(self, step: str | int) -> "_ScriptNode":
        if isinstance(step, int):
            return _ScriptNode(self.file, f"{self.path}[{step}]")
        return _ScriptNode(self.file, f"{self.path}.{step}" if self.path else step)

    def table(self, value: object, keys: Sequence[str]) -> "_ScriptTable":
        if not isinstance(value, dict):
            raise self.wrong("a table is wanted here.")
        row = cast("dict[object, object]", value)
        for key in row:
            if key not in keys:
                raise self.wrong(f"unknown key {key!r}; known are {', '.join(keys)}.")
        return _ScriptTable(self, cast("Mapping[str, object]", row))

    def each(self, value: object, read: "Callable[[_ScriptNode, object], T]") -> list[T]:
        if not isinstance(value, list):
            raise self.wrong("a list is wanted here.")
        return [read(self.at(n), item) for n, item in enumerate(cast("list[object]", value))]

    def text(self, value: object) -> str:
        if not isinstance(value, str):
            raise self.wrong("a text is wanted here (quote it).")
        return value

    def texts(self, value: object) -> list[str]:
        return [self.text(value)] if isinstance(value, str) else self.each(value, _ScriptNode.text)

    def count(self, value: object) -> int:
        if not isinstance(value, int) or isinstance(value, bool) or not 0 <= value <= FOREVER:
            raise self.wrong("a whole number from 0 is wanted here.")
        return value

    def seconds(self, value: object) -> float:
        if not isinstance(value, int | float) or isinstance(value, bool):
            raise self.wrong("a number of seconds is wanted here.")
        if not math.isfinite(value) or value < 0:
            raise self.wrong("a number of seconds from 0 is wanted here.")
        return float(value)

    def json(self, value: object) -> Json:
        if isinstance(value, dict):
            row = cast("dict[object, object]", value)
            return {self.text(k): self.at(str(k)).json(v) for k, v in row.items()}
        if isinstance(value, list):
            return self.each(cast("list[object]", value), _ScriptNode.json)
        if value is None or isinstance(value, str | bool | int | float):
            return value
        raise self.wrong(f"{type(value).__name__} has no form in JSON.")


class _ScriptTable:
    def __init__(self, at: _ScriptNode, row: Mapping[str, object]) -> None:
        self.where = at
        self.row = row

    def get(self, key: str, read: Callable[[_ScriptNode, object], T], default: T) -> T:
        return read(self.where.at(key), self.row[key]) if key in self.row else default

    def need(self, key: str, read: Callable[[_ScriptNode, object], T]) -> T:
        if key not in self.row:
            raise self.where.wrong(f"{key!r} is missing.")
        return read(self.where.at(key), self.row[key])


def _roles(at: _ScriptNode, value: object) -> dict[str, list[str]]:
    if not isinstance(value, dict):
        raise at.wrong("a table of role to texts is wanted here.")
    rows = cast("dict[object, object]", value)
    return {at.text(role): at.at(str(role)).texts(words) for role, words in rows.items()}


def _part(at: _ScriptNode, value: object) -> ScriptedPart:
    row = at.table(value, ("role", "task", "lane", "attempt", "when", "turns", "closing"))
    attempts, first = row.get("attempt", _attempt, ((), 0))
    return ScriptedPart(
        role=row.get("role", _ScriptNode.text, "*"),
        task=row.get("task", _ScriptNode.text, "*"),
        lane=row.get("lane", _ScriptNode.text, "*"),
        attempts=attempts,
        from_attempt=first,
        when=row.get("when", _when, ALWAYS),
        turns=tuple(row.need("turns", lambda at, v: at.each(v, _turn))),
        closing=row.get("closing", _turn, None),
    )


def _attempt(at: _ScriptNode, value: object) -> tuple[tuple[int, ...], int]:
    if value == "*":
        return (), 0
    if isinstance(value, str) and (later := re.fullmatch(r">=\s*(\d{1,6})", value)):
        return (), int(later[1])
    if isinstance(value, int):
        return (at.count(value),), 0
    return tuple(at.each(value, _ScriptNode.count)), 0


def _when(at: _ScriptNode, value: object) -> ScriptCondition:
    row = at.table(value, ("brief_has", "brief_lacks", "last_has", "last_lacks"))
    return ScriptCondition(
        brief_has=tuple(row.get("brief_has", _ScriptNode.texts, [])),
        brief_lacks=tuple(row.get("brief_lacks", _ScriptNode.texts, [])),
        last_has=tuple(row.get("last_has", _ScriptNode.texts, [])),
        last_lacks=tuple(row.get("last_lacks", _ScriptNode.texts, [])),
    )


def _turn(at: _ScriptNode, value: object) -> ScriptedTurn:
    if isinstance(value, str):
        return ScriptedTurn(text=value)
    row = at.table(value, _TURN_KEYS)
    turn = ScriptedTurn(
        text=row.get("text", _ScriptNode.text, None),
        calls=tuple(row.get("calls", lambda at, v: at.each(v, _call), [])),
        verdict=row.get("verdict", _verdict, None),
        choose=tuple(row.get("choose", lambda at, v: at.each(v, _turn), [])),
        when=row.get("when", _when, ALWAYS),
        fault=row.get("fault", _fault, None),
        delay_seconds=row.get("delay_seconds", _ScriptNode.seconds, 0.0),
        finish=row.get("finish", _finish, None),
        usage=row.get("usage", _usage, None),
        repeat=row.get("repeat", _repeat, 1),
    )
    _check_turn(at, turn)
    if turn.fault is None:
        return turn
    return replace(turn, fault=_limited(at.at("fault"), turn.fault, turn))


def _limited(at: _ScriptNode, fault: TurnFault, turn: ScriptedTurn) -> TurnFault:
    """Set how often a fault strikes: once before an answer of the turn's own, always where there is none."""
    if FAULTS[fault.name].kind == "answer" and not fault.times:
        return replace(fault, times=FOREVER)
    if not turn.has_answer and (fault.times or fault.while_file):
        raise at.wrong("with times or while_file the turn needs an answer for afterwards.")
    return fault if fault.times else replace(fault, times=1 if turn.has_answer else FOREVER)


def _check_turn(at: _ScriptNode, turn: ScriptedTurn) -> None:
    if turn.verdict is not None and (turn.text is not None or turn.calls):
        raise at.wrong("a verdict is a text by itself; take away text and calls.")
    if turn.choose and (turn.has_answer or turn.fault):
        raise at.wrong("a turn either chooses or says something.")
    if not (turn.choose or turn.has_answer or turn.fault):
        raise at.wrong("a turn needs text, calls, verdict, choose or fault.")
    if turn.repeat < 1:
        raise at.wrong("repeat starts at 1.")


def _call(at: _ScriptNode, value: object) -> ScriptedCall:
    row = at.table(value, ("tool", "arguments", "id", "times"))
    return ScriptedCall(
        tool=row.need("tool", _ScriptNode.text),
        arguments=row.get("arguments", _arguments, "{}"),
        id=row.get("id", _ScriptNode.text, ""),
        times=row.get("times", _ScriptNode.count, 1),
    )


def _arguments(at: _ScriptNode, value: object) -> str:
    if isinstance(value, str):
        return value
    return json.dumps(at.json(value), ensure_ascii=False)


def _verdict(at: _ScriptNode, value: object) -> Mapping[str, Json]:
    row = at.json({"auto": value} if isinstance(value, str) else value)
    if not isinstance(row, dict):
        raise at.wrong('a verdict is a table, or "pass" or "fail".')
    if "auto" in row and row["auto"] not in ("pass", "fail"):
        raise at.wrong('auto is "pass" or "fail".')
    return row


def _fault(at: _ScriptNode, value: object) -> TurnFault:
    if isinstance(value, str):
        value = {"name": value}
    row = at.table(cast("object", value), ("name", "times", "while_file", "seconds", "parameter"))
    name = row.need("name", _ScriptNode.text)
    if name not in FAULTS:
        raise at.wrong(f"unknown fault {name!r}; known are {', '.join(FAULTS)}.")
    parameter = row.get("parameter", _ScriptNode.text, "")
    if (name == "unsupported_parameter") != bool(parameter):
        raise at.wrong("unsupported_parameter needs a parameter, other faults have none.")
    return TurnFault(
        name=name,
        times=row.get("times", _ScriptNode.count, 0),
        while_file=row.get("while_file", _ScriptNode.text, ""),
        seconds=row.get("seconds", _ScriptNode.seconds, 1.0),
        parameter=parameter,
    )


def _finish(at: _ScriptNode, value: object) -> Finish:
    if value not in get_args(Finish):
        raise at.wrong(f"finish is one of {', '.join(get_args(Finish))}.")
    return cast("Finish", value)


def _usage(at: _ScriptNode, value: object) -> tuple[int, int] | Literal["none"]:
    if value == "none":
        return "none"
    row = at.table(value, ("input", "output"))
    return row.need("input", _ScriptNode.count), row.need("output", _ScriptNode.count)


def _repeat(at: _ScriptNode, value: object) -> int:
    return FOREVER if value == "forever" else at.count(value)
