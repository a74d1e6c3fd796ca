"""Keys of the five formats of agent files, and the findings of all other keys. Pure.

Sources: the public documentation of each format.
"""

from collections.abc import Iterable, Mapping
from functools import lru_cache
from typing import Literal

from mimir.domain.agent_definition import AgentFormat
from mimir.domain.finding import Finding
from mimir.domain.json_schema import plain_key
from mimir.domain.located_tree import LocatedValue
from mimir.domain.value_class import value_class
from mimir.registry.findings import make_agent_finding

KeyUse = Literal["used", "unsupported", "refused"]

PERMISSION_KEYS = (
    "tools", "allowedTools", "allowed-tools", "allowed_tools", "disallowedTools", "permission",
    "permissions", "permissionMode", "mcpServers", "mcp-servers", "hooks",
)  # fmt: skip
"""A tool that ignores a misspelt one of these may grant every tool."""
SETTINGS_KEYS = ("mcpServers", "mcp-servers", "hooks")
"""Of them, those that choose programs to run: no other name means one of them."""
MAX_DISTANCE = 2
MAX_KEY = 40
"""Characters of a word that can nearly be a key."""


@value_class
class KeyTable:
    """The keys of one format."""

    used: tuple[str, ...]
    unsupported: tuple[str, ...] = ()
    refused: tuple[str, ...] = ()
    is_strict: bool = False
    """Whether an unknown key is an error."""

    def use_of(self, key: str) -> KeyUse | None:
        """Return how a key is used; None: the format does not define it."""
        if key in self.used:
            return "used"
        if key in self.unsupported:
            return "unsupported"
        return "refused" if key in self.refused else None

    @property
    def all(self) -> tuple[str, ...]:
        """Every key that the format defines."""
        return (*self.used, *self.unsupported, *self.refused)


_SKILL = ("name", "description", "license", "compatibility", "metadata", "allowed-tools")

KEY_TABLES: Mapping[AgentFormat, KeyTable] = {
    "folder": KeyTable(
        used=(
            "name", "type", "description", "model", "program", "tools", "deny_tools", "files",
            "timeout_seconds", "max_tool_calls", "max_tokens", "output_format", "skills",
            "may_spawn", "memory", "verify", "on_crash",
        ),
        # The branch of a run is always kept.
        unsupported=("keep_workspace",),
        is_strict=True,
    ),
    "claude": KeyTable(
        used=(
            "name", "description", "tools", "disallowedTools", "model", "permissionMode",
            "maxTurns", "skills", "disabled",
        ),
        unsupported=(
            "memory", "background", "isolation", "color", "effort", "initialPrompt", "omitClaudeMd",
        ),
        refused=("mcpServers", "hooks"),
    ),
    "copilot": KeyTable(
        used=(
            "name", "description", "tools", "model", "user-invocable", "disable-model-invocation",
            "metadata",
        ),
        unsupported=("agents", "handoffs", "argument-hint", "target", "infer", "mode"),
        refused=("mcp-servers", "hooks"),
    ),
    "opencode": KeyTable(
        used=(
            "description", "mode", "model", "temperature", "steps", "maxSteps", "tools",
            "permission", "disable",
        ),
        unsupported=("top_p", "prompt", "hidden", "color", "variant"),
    ),
    "skill": KeyTable(used=_SKILL),
}  # fmt: skip
SKILL_AGENT_KEYS = KeyTable(used=(*_SKILL, "model", "tools"))
"""Of a SKILL.md below `agents/`, which is an agent."""


def is_agent_key(word: str) -> bool:
    """Return whether a word is a key of any format, or nearly one of permissions."""
    known = any(table.use_of(word) for table in (*KEY_TABLES.values(), SKILL_AGENT_KEYS))
    return known or bool(nearest_key(word, PERMISSION_KEYS, cutoff=MAX_DISTANCE))


def find_key_faults(values: LocatedValue, table: KeyTable, format: str) -> Iterable[Finding]:
    """Yield a finding for each key that mimir does not use."""
    for key, place in values.key_places.items():
        shown = repr(key if len(key) <= 60 else key[:59] + "…")
        match table.use_of(key):
            case "used":
                continue
            case "unsupported":
                message = f"{shown} is not used by mimir."
                yield make_agent_finding("unsupported-key", message, place)
            case "refused":
                message = f"{shown} is never obeyed: only your own settings may choose it."
                yield make_agent_finding("refused-key", message, place)
            case None:
                yield _judge_unknown(key, shown, table, format, values)


def _judge_unknown(
    key: str, shown: str, table: KeyTable, format: str, values: LocatedValue
) -> Finding:
    place = values.key_places[key]
    near = nearest_key(key, table.all, cutoff=MAX_DISTANCE)
    hint = f"Did you mean {near!r}?" if near else ""
    if meant := nearest_key(key, PERMISSION_KEYS, cutoff=MAX_DISTANCE):
        message = f"{shown} is not a key of format {format!r}; no tool is granted."
        native = near or ("" if meant in SETTINGS_KEYS else _native_permission(key, table))
        hint = f"Did you mean {native!r}?" if native else "Remove it."
        return make_agent_finding("permission-key", message, place, hint)
    message = f"{shown} is not a key of format {format!r}; it is ignored."
    if table.is_strict:
        message = f"{shown} is not a key of format {format!r}."
        hint = hint or f"Remove it; the keys are {', '.join(table.all)}."
    severity = "error" if table.is_strict else "warning"
    return make_agent_finding("unknown-key", message, place, hint, severity)


def _native_permission(key: str, table: KeyTable) -> str:
    """Return the key of this format that grants or denies tools; empty: there is none."""
    is_denial = "disallow" in key.casefold()
    names = ("disallowedTools", "deny_tools") if is_denial else ("tools", "allowed-tools")
    return next((name for name in names if name in table.used), "")


def nearest_key(word: str, known: tuple[str, ...], *, cutoff: int) -> str:
    """Return the known word with the smallest edit distance, at most `cutoff`; empty: none."""
    # No key is so long, and the cache must not hold a text of a file.
    return "" if len(word) > MAX_KEY else _find_nearest(word, known, cutoff)


@lru_cache(maxsize=1024)  # collections of agents repeat their own keys in each file
def _find_nearest(word: str, known: tuple[str, ...], cutoff: int) -> str:
    best, nearest = cutoff + 1, ""
    for one in known:
        for left, right in ((word, one), (plain_key(word), plain_key(one))):
            distance = edit_distance(left, right, cutoff)
            if distance < best:
                best, nearest = distance, one
    return nearest


def edit_distance(left: str, right: str, cutoff: int) -> int:
    """Return the Levenshtein distance of two words, `cutoff + 1` if it is larger."""
    if abs(len(left) - len(right)) > cutoff:
        return cutoff + 1
    row = list(range(len(right) + 1))
    for number, sign in enumerate(left, 1):
        before, row[0] = row[0], number
        for column, other in enumerate(right, 1):
            before, row[column] = (
                row[column],
                min(row[column] + 1, row[column - 1] + 1, before + (sign != other)),
            )
    return min(row[-1], cutoff + 1)
