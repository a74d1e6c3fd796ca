"""Strict parser of tool arguments: unclear arguments are refused, never guessed.

Another form with one reading only is read: `"3"` for a number, null for "not given", `file_path` for `path`.

The result is one object of known names and right types, or a `ToolError` that explains the expected arguments.
"""

from collections.abc import Mapping
from dataclasses import dataclass

from mimir.domain.json_schema import find_mismatch, fit_value, plain_key
from mimir.domain.json_value import (
    JsonObject,
    as_object,
    as_text,
    as_texts,
    as_whole_number,
    is_array,
    is_object,
)
from mimir.domain.message import ToolSpec
from mimir.domain.strict_json import JsonFault, decode_json
from mimir.errors import ToolError

MAX_CHARS = 1_000_000
"""Longest text that is parsed."""
MAX_DEPTH = 16
"""Deepest nesting; far below the depth at which the JSON parser runs out of stack."""
_OTHER_NAMES: Mapping[str, str] = {
    "path": "filepath filename file targetfile absolutepath",
    "old": "oldstring oldstr oldtext",
    "new": "newstring newstr newtext",
    "content": "contents filetext text",
    "command": "cmd",
    "pattern": "regex query",
    "glob": "include filepattern path dir directory folder",
}
"""Argument → its names in the tools of other programs, without case and separators."""
_BLANKS = " \t\r\n"


@dataclass(frozen=True, slots=True)
class ToolArguments:
    """Checked arguments of one call; the readers never fail if the tool's schema fits."""

    values: Mapping[str, object]
    """In the order of the tool's schema."""

    @property
    def first(self) -> str:
        """The first argument as text, for the title of the call."""
        value = next(iter(self.values.values()), "")
        return " ".join(map(str, value)) if is_array(value) else str(value)

    def has(self, name: str) -> bool:
        """Return whether the model gave this argument."""
        return name in self.values

    def text(self, name: str, default: str = "") -> str:
        """Return a string argument."""
        return as_text(self.values.get(name, default))

    def number(self, name: str, default: int) -> int:
        """Return a whole number."""
        found = as_whole_number(self.values.get(name))
        return default if found is None else found

    def texts(self, name: str) -> tuple[str, ...]:
        """Return a list of strings; empty if it is missing."""
        return tuple(as_texts(self.values.get(name)))

    def members(self, name: str) -> Mapping[str, object]:
        """Return an object; empty if it is missing."""
        return as_object(self.values.get(name))


def parse_arguments(raw: str, spec: ToolSpec, *, is_exact: bool = False) -> ToolArguments:
    """Parse the arguments of a call of the tool `spec`; an empty text is `{}`.

    `is_exact`: another form is refused, as for a program, which can keep to the schema.

    Raises:
        ToolError: The text is not one JSON object of the tool's arguments; `next_step` names these.
    """
    known = as_object(spec.input_schema.get("properties"))
    try:
        values = _parse_object(raw, spec.name)
        if not is_exact:
            fitted = as_object(fit_value(values, spec.input_schema))
            values = _rename_members(fitted, known)
        schema = {**spec.input_schema, "additionalProperties": False}
        if fault := find_mismatch(values, schema, f"arguments of {spec.name}"):
            raise ToolError(fault)
    except ToolError as error:
        # The model needs the whole signature to correct its call.
        error.next_step = error.next_step or _describe_usage(spec.name, spec.input_schema)
        raise
    return ToolArguments({name: values[name] for name in known if name in values})


def _parse_object(raw: str, tool: str) -> Mapping[str, object]:
    if len(raw) > MAX_CHARS:
        raise ToolError(
            f"The arguments of {tool} are {len(raw):,} characters long; at most {MAX_CHARS:,} are read.",
            next_step="Send less at once: write a long file in parts.",
        )
    # Providers send an empty text for a call without arguments.
    text = raw.strip(_BLANKS) or "{}"
    try:
        value, end = decode_json(text, max_depth=MAX_DEPTH, is_lenient=True)
    except JsonFault as fault:
        raise ToolError(
            f"The arguments of {tool} cannot be read, and nothing was run. {fault}"
        ) from None
    if end < len(text) or not is_object(value):
        raise ToolError(f"The arguments of {tool} must be one JSON object, such as {{…}}.")
    return value


def _rename_members(values: JsonObject, known: JsonObject) -> JsonObject:
    """Return the arguments under the tool's own names; several aliases of one name stay."""
    renamed = dict(values)
    for name, others in _OTHER_NAMES.items():
        given = [key for key in values if key not in known and plain_key(key) in others.split()]
        if name in known and name not in values and len(given) == 1:
            renamed[name] = renamed.pop(given[0])
    # A list is a command without a shell, a text one with it.
    for name, other, is_other in (("command", "argv", is_array), ("argv", "command", _is_text)):
        if name in renamed and is_other(renamed[name]) and other in known and other not in renamed:
            renamed[other] = renamed.pop(name)
    return renamed


def _is_text(value: object) -> bool:
    return isinstance(value, str)


def _describe_usage(name: str, schema: JsonObject) -> str:
    """Return one sentence that lists the arguments of a tool."""
    required = as_texts(schema.get("required"))
    parts = [
        f"{key} ({_kind_of(as_object(value))}{'' if key in required else ', optional'})"
        for key, value in as_object(schema.get("properties")).items()
    ]
    return (
        f"{name} takes {'; '.join(parts)}." if parts else f"{name} takes no arguments: send {{}}."
    )


def _kind_of(schema: JsonObject) -> str:
    kind = str(schema.get("type", "any value"))
    items = schema.get("items")
    if kind == "array" and is_object(items):
        return f"list of {_kind_of(items)}s"
    return {"array": "list", "integer": "whole number"}.get(kind, kind)
