"""Keys that each format has besides name, description and model. Pure."""

import json
import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from typing import cast

from mimir.domain.agent_definition import (
    AgentDefinition,
    AgentFormat,
    AgentKind,
    AgentLimits,
    CrashBehaviour,
    MemoryAccess,
    ToolRequest,
    Verification,
)
from mimir.domain.located_tree import LocatedValue
from mimir.registry.answer_schema import check_schema
from mimir.registry.formats.fields import FALSE, TRUE, FieldReader, as_json
from mimir.registry.tool_names import map_tool

MAX_CALLS = 200


def read_own_keys(
    format: AgentFormat, reader: FieldReader, found: AgentDefinition
) -> AgentDefinition:
    """Return the definition with the values of the keys that only its format has."""
    return _READERS[format](reader, found)


def _read_folder(reader: FieldReader, found: AgentDefinition) -> AgentDefinition:
    kind = cast("AgentKind", reader.choice("type", ("sdk", "cli"), "sdk"))
    program = reader.text("program")
    if kind == "cli" and not program:
        message, hint = "An agent of type cli needs a program.", "Add a line: program: claude"
        reader.add("invalid-value", message, "type", hint)
    if program and not re.fullmatch(r"[A-Za-z0-9_-]{1,64}", program):
        message = f"{program[:80]!r} is not the name of a program in your settings."
        hint = "Name a preset, such as claude; only your own settings choose commands."
        reader.add("program-in-file", message, "program", hint)
        program = ""
    named = _read_tools(reader, "tools")
    return replace(
        found,
        kind=kind,
        program=program,
        tools=ToolRequest(
            requested=named or (),
            denied=_read_tools(reader, "deny_tools") or (),
            is_default=named is None,
        ),
        files=_read_files(reader),
        limits=AgentLimits(
            timeout_seconds=reader.number("timeout_seconds", 10, 7200),
            max_tool_calls=reader.number("max_tool_calls", 1, MAX_CALLS),
            max_tokens=reader.number("max_tokens", 1, 1_000_000),
        ),
        output_schema=_read_schema(reader),
        skills=reader.names("skills") or (),
        may_spawn=reader.flag("may_spawn"),
        memory=cast("MemoryAccess", reader.choice("memory", ("none", "read", "propose"), "read")),
        verify=cast(
            "Verification",
            reader.choice("verify", ("auto", "checks", "judge", "citations"), "auto"),
        ),
        on_crash=cast("CrashBehaviour", reader.choice("on_crash", ("again", "ask"), "again")),
    )


def _read_files(reader: FieldReader) -> tuple[str, ...]:
    files = reader.names("files") or ()
    for glob in files:
        if glob.startswith(("/", "~")) or ".." in glob.split("/"):
            message = f"The glob {glob[:80]!r} leads out of the project."
            reader.add("invalid-value", message, "files", "Write it relative to the project.")
            return ()
    return files


def _read_schema(reader: FieldReader) -> str:
    node = reader.value("output_format")
    if node is None:
        return ""
    if node.kind != "map" or set(node.keys) != {"type", "schema"}:
        message = "'output_format' is not a map of type and schema."
        reader.add("invalid-value", message, "output_format", "Write type: json_schema and schema.")
        return ""
    if node.keys["type"].text != "json_schema":
        message = "The type of 'output_format' is not json_schema."
        reader.add("invalid-value", message, "output_format", "Write type: json_schema.")
        return ""
    schema = as_json(node.keys["schema"])
    refusal = check_schema(schema)
    if refusal:
        message = f"The answer schema is refused: {refusal}."
        hint = "Write a smaller schema, with references to itself only."
        reader.add("schema-refused", message, "output_format", hint)
        return ""
    return json.dumps(schema, ensure_ascii=False)


def _read_claude(reader: FieldReader, found: AgentDefinition) -> AgentDefinition:
    named = _read_tools(reader, "tools")
    mode = reader.text("permissionMode")
    if mode == "bypassPermissions":
        message = "permissionMode: bypassPermissions is never obeyed."
        reader.add("refused-key", message, "permissionMode")
    elif mode not in ("", "plan"):
        message = f"permissionMode: {mode[:40]} is not used by mimir."
        reader.add("unsupported-key", message, "permissionMode")
    return replace(
        found,
        tools=ToolRequest(
            requested=named or (),
            denied=_read_tools(reader, "disallowedTools") or (),
            is_default=named is None,
            is_read_only=mode == "plan",
        ),
        limits=AgentLimits(max_tool_calls=_read_turns(reader, "maxTurns")),
        skills=reader.names("skills") or (),
        is_disabled=reader.flag("disabled"),
    )


def _read_turns(reader: FieldReader, key: str) -> int | None:
    turns = reader.number(key, 1, 1_000_000)
    return None if turns is None else min(turns, MAX_CALLS)


def _read_copilot(reader: FieldReader, found: AgentDefinition) -> AgentDefinition:
    named = _read_tools(reader, "tools")
    return replace(
        found,
        tools=ToolRequest(requested=named or (), is_default=named is None),
        is_disabled=reader.flag("disable-model-invocation")
        and reader.text("user-invocable").casefold() == "false",
    )


def _read_opencode(reader: FieldReader, found: AgentDefinition) -> AgentDefinition:
    chosen = _read_choices(reader)
    requested = tuple(name for name, is_granted in chosen.items() if is_granted)
    denied = tuple(name for name, is_granted in chosen.items() if not is_granted)
    key = "steps" if reader.value("steps") else "maxSteps"
    return replace(
        found,
        temperature=_read_temperature(reader),
        tools=ToolRequest(requested=requested, denied=denied, is_default=not requested),
        limits=AgentLimits(max_tool_calls=_read_turns(reader, key)),
        is_disabled=reader.flag("disable"),
    )


def _read_choices(reader: FieldReader) -> dict[str, bool]:
    """Return tool → whether it is requested, from `tools` and `permission`; a denial wins."""
    chosen: dict[str, bool] = {}
    for key, yes, no in (("tools", TRUE, FALSE), ("permission", ("allow",), ("deny", "ask"))):
        node = reader.value(key)
        if node is not None and node.kind != "map":
            # A list requests its tools; one answer holds for all tools, and allows the default ones.
            named = _read_tools(reader, key) if key == "tools" else ()
            answer = yes[0] if named else no[0] if key == "tools" else reader.text(key)
            every = () if answer.casefold() in yes else ("*",)
            node = replace(
                node, keys=dict.fromkeys(named or every, LocatedValue("text", text=answer))
            )
        for name, value in (node.keys if node else {}).items():
            # A map of patterns is granted only if each of them is.
            answers = {one.text.casefold() for one in value.keys.values() or [value]}
            chosen[name] = answers <= {*yes} and chosen.get(name, True)
            if unknown := sorted(answers - {*yes, *no} | answers & {"ask"}):
                message = f"The answer {unknown[0][:40]!r} for {name[:80]!r} is not supported; not granted."
                reader.add("unsupported-key", message, key)
    return chosen


def _read_temperature(reader: FieldReader) -> float | None:
    text = reader.text("temperature")
    if not text:
        return None
    if re.fullmatch(r"[0-9](?:\.[0-9]{1,6})?|\.[0-9]{1,6}", text) and float(text) <= 2:
        return float(text)
    message, hint = "'temperature' is not a number from 0 to 2.", "Write a number such as 0.2."
    reader.add("invalid-value", message, "temperature", hint)
    return None


def _read_skill(reader: FieldReader, found: AgentDefinition) -> AgentDefinition:
    named = _read_tools(reader, "tools")
    allowed = _read_tools(reader, "allowed-tools")
    names = allowed if named is None else named
    if len(reader.text("compatibility")) > 500:
        message = "'compatibility' has more than 500 characters."
        reader.add("invalid-value", message, "compatibility", "Shorten it.")
    return replace(found, tools=ToolRequest(requested=names or (), is_default=names is None))


def _read_tools(reader: FieldReader, key: str) -> tuple[str, ...] | None:
    """Return the names of tools, also of a text with blanks between them; None: it is absent."""
    names = reader.names(key)
    words = re.findall(r"[^\s;|(]+(?:\([^)]*\))?", names[0]) if names and len(names) == 1 else []
    # The specification of skills separates tools with blanks; elsewhere "all but Bash" is a text.
    return tuple(words) if (key == "allowed-tools" and words) or _are_tools(words) else names


def _are_tools(words: Sequence[str]) -> bool:
    return len(words) > 1 and all(map(map_tool, words))


_READERS: Mapping[AgentFormat, Callable[[FieldReader, AgentDefinition], AgentDefinition]] = {
    "folder": _read_folder,
    "claude": _read_claude,
    "copilot": _read_copilot,
    "opencode": _read_opencode,
    "skill": _read_skill,
}
