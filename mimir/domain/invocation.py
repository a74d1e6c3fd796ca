"""Invocation of an agent: the request of a caller and the pinned definition. Pure."""

from collections.abc import Mapping
from dataclasses import dataclass

from mimir.domain.json_value import JsonObject, as_text
from mimir.domain.program import PinnedProgram, read_program

AGENT_ROLE = "Agent "
"""Beginning of the worker role of an invoked definition."""
AGENT_TEXT = "definition"
"""Name of the stored text with the pinned definition."""


@dataclass(frozen=True, slots=True, kw_only=True)
class InvocationRequest:
    """What a caller asks of an agent."""

    prompt: str
    criteria: tuple[str, ...] = ()
    checks: tuple[str, ...] = ()
    """Command lines."""
    deliverables: tuple[str, ...] = ()
    """Paths of files that must exist and differ from the base afterwards."""
    files: tuple[str, ...] = ()
    """Globs that the agent may write; empty: those of the definition."""
    tools: tuple[str, ...] | None = None
    """Tools that the caller allows; None: those of the definition."""
    context: tuple[str, ...] = ()
    """Texts that are shown as material."""
    context_files: tuple[str, ...] = ()
    timeout_seconds: int | None = None

    @property
    def is_read_only(self) -> bool:
        """Whether nothing decides the result."""
        return not (self.criteria or self.checks or self.deliverables)


@dataclass(frozen=True, slots=True, kw_only=True)
class PinnedDefinition:
    """The part of a definition that decides how a run works; later edits do not count."""

    address: str
    path: str
    hash: str
    prompt: str
    program: PinnedProgram | None = None
    """None: an agent of mimir works."""

    @property
    def role(self) -> str:
        """The worker role of the task."""
        return f"{AGENT_ROLE}{self.address} ({self.hash[:12]})"

    def as_json(self) -> Mapping[str, object]:
        """Return the stored form."""
        return {
            "address": self.address,
            "path": self.path,
            "hash": self.hash,
            "prompt": self.prompt,
            "role": self.role,
            **({"program": self.program.as_json()} if self.program else {}),
        }


def pinned_programs(stored: JsonObject) -> Mapping[str, PinnedProgram]:
    """Return the programs of stored definitions, by worker role."""
    found = ((as_text(stored.get("role")), read_program(stored.get("program"))),)
    return {role: program for role, program in found if program is not None}
