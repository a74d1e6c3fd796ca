"""Assembly of tool calls from the fragments of a stream.

Servers number fragments in many ways: no index, one index for all, a new id each, the name again and again. Each fragment goes
to the call that it can continue; only a named fragment begins a call.
"""

import json
import re
from collections.abc import Callable
from dataclasses import dataclass, field

from mimir.domain.json_value import JsonObject, as_object, as_text, is_object
from mimir.domain.message import ToolCall
from mimir.domain.value_class import value_class
from mimir.llm.opaque_fields import OpaqueFields, pack_fields
from mimir.llm.storable_text import clean

_LONGEST_NAME = 256
_STRUCTURE = re.compile(r'["\\{}\[\]]')
_SPACE = re.compile(r"\s*")
# More objects in one text are no repetition.
_MOST_VALUES = 8
_CALL_MEMBERS = ("index", "id", "type", "function")
_FUNCTION_MEMBERS = ("name", "arguments")


@dataclass(slots=True)
class _ArgumentScan:
    """Incremental test for a complete JSON object: linear in the text."""

    depth: int = 0
    in_text: bool = False
    escape_at: int = -1
    size: int = 0
    members: bool = False
    is_complete: bool = False
    """True after the first object with members has ended."""

    def feed(self, text: str) -> None:
        for found in _STRUCTURE.finditer(text):
            self._step(found[0], self.size + found.start())
        self.size += len(text)

    def _step(self, mark: str, at: int) -> None:
        if at == self.escape_at:
            return
        if mark == "\\":
            self.escape_at = at + 1
        elif mark == '"':
            self.in_text = not self.in_text
            self.members = self.members or self.depth > 0
        elif not self.in_text:
            self.depth += 1 if mark in "{[" else -1
            self.is_complete = self.is_complete or (self.depth == 0 and self.members)


@dataclass(slots=True)
class _PartialCall:
    id: str = ""
    name: str = ""
    arguments: list[str] = field(default_factory=list[str])
    scan: _ArgumentScan = field(default_factory=_ArgumentScan)
    fields: OpaqueFields = field(default_factory=lambda: OpaqueFields(_CALL_MEMBERS))
    function_fields: OpaqueFields = field(default_factory=lambda: OpaqueFields(_FUNCTION_MEMBERS))

    def can_continue(self, name: str, arguments: str) -> bool:
        """Return whether a named fragment may belong to this call."""
        if arguments and self.scan.is_complete:
            return False
        return name == self.name or not self.name or not (self.arguments or arguments)

    def is_awaiting(self, name: str) -> bool:
        """Return whether the arguments are in the middle of an object."""
        return name == self.name and (self.scan.depth > 0 or self.scan.in_text)

    def add_name(self, name: str) -> None:
        """Add a part of the name; some servers repeat the whole name."""
        self.name = name if name.startswith(self.name) else self.name + name

    @property
    def opaque(self) -> str:
        function = self.function_fields.merged()
        return pack_fields(self.fields.merged() | ({"function": function} if function else {}))


@value_class
class _Fragment:
    index: int | None
    id: str
    name: str
    arguments: str


class TooManyCalls(Exception):  # noqa: N818  a state of the answer; never leaves the package
    """More calls than an answer may have."""


class CallAssembler:
    """Builder of the tool calls of one answer."""

    def __init__(self, most: int, charge: Callable[[int], None]) -> None:
        """`charge` gets the size of each kept part."""
        self._most = most
        self._charge = charge
        self._calls: list[_PartialCall] = []
        self._by_index: dict[int, _PartialCall] = {}

    def add(self, row: JsonObject) -> None:
        """Add a fragment; raise `TooManyCalls`, or `ValueError` for a member of a wrong form."""
        function = as_object(row.get("function")) or row
        name, given = as_text(function.get("name")), function.get("arguments")
        arguments = given if isinstance(given, str) else "" if given is None else json.dumps(given)
        index, id = _index(row.get("index")), as_text(row.get("id"))
        call = self._find(_Fragment(index=index, id=id, name=name, arguments=arguments))
        self._charge(len(name.encode("utf-8", "surrogatepass")) if name != call.name else 0)
        self._charge(len(arguments.encode("utf-8", "surrogatepass")))
        if name != call.name:
            call.add_name(name)
        if arguments:
            call.arguments.append(arguments)
            call.scan.feed(arguments)
        if function is not row:
            self._charge(call.fields.add(row) + call.function_fields.add(function))

    def calls(self) -> tuple[ToolCall, ...]:
        """Return the calls; each has an id of its own, and no call is given twice."""
        ids: set[str] = set()
        out: list[ToolCall] = []
        for number, call in enumerate(self._unrepeated()):
            id = clean(call.id)[:_LONGEST_NAME]
            while not id or id in ids:  # results are matched by id, so each must be unique
                id = f"{id or 'call'}-{number}"
            ids.add(id)
            arguments = normalise_arguments(clean("".join(call.arguments)))
            name = clean(call.name)[:_LONGEST_NAME]
            out.append(ToolCall(id=id, name=name, arguments=arguments, opaque=call.opaque))
        return tuple(out)

    def _unrepeated(self) -> list[_PartialCall]:
        out: list[_PartialCall] = []
        for call in self._calls:
            before = out[-1] if out else None
            is_repeated = (
                before is not None
                and bool(call.arguments)
                and call.id in ("", before.id)
                and (call.name, "".join(call.arguments)) == (before.name, "".join(before.arguments))
            )
            if not is_repeated:
                out.append(call)
        return out

    def _find(self, fragment: "_Fragment") -> _PartialCall:
        index, id, name, arguments = fragment.index, fragment.id, fragment.name, fragment.arguments
        last = self._calls[-1] if self._calls else None
        by_index = None if index is None else self._by_index.get(index)
        by_id = next((c for c in reversed(self._calls) if id and c.id == id), None)
        if not name:
            # Only a head names its call: the rest belongs to a known call, or to the last one.
            call = by_id if by_id and (by_index is None or by_index.id != id) else by_index or last
        else:
            call = self._continued(fragment, by_index, by_id)
            if call is None and index is None and not id and last and last.name == name:
                call = last if last.can_continue(name, arguments) else None
        if call is None:
            call = self._begin(index)
        if not call.id:
            call.id = id
            self._charge(len(id))
        return call

    def _continued(
        self,
        fragment: "_Fragment",
        by_index: _PartialCall | None,
        by_id: _PartialCall | None,
    ) -> _PartialCall | None:
        """Return the call that a named fragment continues; None: it begins one."""
        name, arguments, id = fragment.name, fragment.arguments, fragment.id
        if by_index is not None and (not id or by_index.id in ("", id)):
            return by_index if by_index.can_continue(name, arguments) else None
        known = by_id or by_index
        if known is None:
            return None
        if by_id is not None and fragment.index is None:
            return by_id if by_id.can_continue(name, arguments) else None
        # Index and id disagree: an object that is still open decides.
        return known if known.is_awaiting(name) else None

    def _begin(self, index: int | None) -> _PartialCall:
        if len(self._calls) >= self._most:
            raise TooManyCalls
        call = _PartialCall()
        self._calls.append(call)
        if index is not None:
            self._by_index[index] = call
        return call


def normalise_arguments(text: str) -> str:
    """Return arguments without an empty object before them, second copy or encoding.

    Text of any other form is returned as it is.
    """
    values = _json_values(text)
    if len(values) == 1 and isinstance(values[0], str):
        values = _json_values(values[0])
        return json.dumps(values[0], ensure_ascii=False) if _is_one_object(values) else text
    if len(values) < 2 or not all(is_object(value) for value in values):
        return text
    values = [value for value in values if value] or values[:1]
    return json.dumps(values[0], ensure_ascii=False) if _is_one_object(values) else text


def _is_one_object(values: list[object]) -> bool:
    return bool(values) and is_object(values[0]) and all(value == values[0] for value in values)


def _json_values(text: str) -> list[object]:
    """Return the JSON values that a text is made of; empty if it contains anything else."""
    values: list[object] = []
    decoder, text, at = json.JSONDecoder(), text.strip(), 0
    try:
        while at < len(text) and len(values) < _MOST_VALUES:
            value, end = decoder.raw_decode(text, at)
            values.append(value)
            at = _SPACE.match(text, end).end()  # pyright: ignore[reportOptionalMemberAccess]  it matches nothing, too
    except (ValueError, RecursionError):
        return []
    return values if at >= len(text) else []


def _index(value: object) -> int | None:
    if isinstance(value, str) and value.isascii() and value.isdigit() and len(value) < 9:
        return int(value)
    return value if isinstance(value, int) and not isinstance(value, bool) else None
