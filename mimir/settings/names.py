"""Dotted names of settings, and the values that they have in a tree."""

import difflib
import re
from collections.abc import Iterator, Mapping
from typing import cast, get_args

from pydantic import BaseModel

from mimir.domain.json_value import is_object
from mimir.errors import ConfigurationError
from mimir.settings.model import (
    AgentSettings,
    CheckSettings,
    EndpointSettings,
    HistorySettings,
    LlmSettings,
    McpSettings,
    MemorySettings,
    Neo4jSettings,
    PatternSettings,
    QuestionSettings,
    RoleName,
    RoleSettings,
    RunSettings,
    SandboxSettings,
)

# A cloned repository must not steal a key or open the sandbox.
_FROM_PROJECT_NEVER = (
    "llm.base_url",
    "llm.endpoints",
    "llm.api_key",
    "llm.api_key_env",
    "llm.headers",
    "llm.extra_body",
    "llm.lane_header",
    "llm.proxy",
    "llm.prices",
    "sandbox",
    "network",
    "store",
    "neo4j",
    "tool_servers",
    "history",
    "agents.path",
    "agents.vscode_prompts",
    "agents.default_tools",
    "agents.project_first",
    "agents.models",
    "agents.accept",
    "agents.share_preambles",
    "agents.programs",
    "agents.spawns_per_day",
    "agents.session_max_calls",
    "agents.session_max_tokens",
    "agents.session_max_cost",
    "mcp",
)
_OPEN = (
    "llm.extra_body", "llm.headers", "llm.prices", "llm.context_tokens", "llm.max_output_tokens",
    "sandbox.env", "agents.models", "agents.programs",
)  # fmt: skip
"""Tables that are values: their keys are not settings."""
_ENDPOINT = "llm.endpoints."
_ENDPOINT_TABLE = re.compile(r"llm\.endpoints\.[^.]+\.(?:extra_body|headers)")


def is_forbidden(path: str, value: object) -> bool:
    """Return whether a project's file may not choose a setting."""
    # A scripted model of the project would judge its own work.
    is_scripted = isinstance(value, str) and value.startswith("play:")
    return is_scripted or any(path == n or path.startswith(f"{n}.") for n in _FROM_PROJECT_NEVER)


def iterate_leaves(tree: Mapping[str, object], prefix: str = "") -> Iterator[tuple[str, object]]:
    """Yield dotted paths with their values."""
    for key, value in tree.items():
        path = f"{prefix}{key}"
        # The keys of an open table are free, so it counts as one value.
        if is_object(value) and path not in _OPEN and not _ENDPOINT_TABLE.fullmatch(path):
            yield from iterate_leaves(value, f"{path}.")
        else:
            yield path, value


def set_value(tree: dict[str, object], path: str, value: object) -> None:
    """Set a value of nested tables by its dotted path."""
    *parents, last = path.split(".")
    for part in parents:
        inner = tree.get(part)
        if not isinstance(inner, dict):
            # A weaker layer may have written `sandbox = "none"`.
            inner = tree[part] = {"backend": inner} if isinstance(inner, str) else {}
        tree = cast("dict[str, object]", inner)
    tree[last] = {"backend": value} if last == "sandbox" and isinstance(value, str) else value


SECTIONS: Mapping[str, type[BaseModel]] = {
    "llm": LlmSettings,
    "sandbox": SandboxSettings,
    "history": HistorySettings,
    "neo4j": Neo4jSettings,
    "run": RunSettings,
    "checks": CheckSettings,
    "agents": AgentSettings,
    "questions": QuestionSettings,
    "memory": MemorySettings,
    "mcp": McpSettings,
    "patterns": PatternSettings,
    **{f"roles.{role}": RoleSettings for role in get_args(RoleName)},
}
KNOWN = ("store", "sandbox", *(f"{s}.{k}" for s, m in SECTIONS.items() for k in m.model_fields))


def section_of(path: str) -> type[BaseModel] | None:
    """Return the section that a dotted name belongs to; None: there is none."""
    section = path.rpartition(".")[0]
    if section.startswith(_ENDPOINT) and section.count(".") == 2:
        return EndpointSettings
    return SECTIONS.get(section)


def require_known(path: str, source: str) -> None:
    """Require that a setting exists; the `ConfigurationError` names the nearest one."""
    section, _, key = path.rpartition(".")
    model = section_of(path)
    if path in KNOWN or (model is not None and key in model.model_fields):
        return
    fields = model.model_fields if model is not None else ()
    names = [*KNOWN, *(f"{section}.{name}" for name in fields)]
    near = difflib.get_close_matches(path, names, n=1, cutoff=0.5)
    hint = f" Did you mean {near[0]!r}?" if near else ""
    raise ConfigurationError(
        f"Unknown setting {path!r} in {source}.{hint}",
        next_step="Correct the key, or remove it.",
    )
