"""Which tools a call may use: the plan's list ∩ the role's ∩ the policy; what nothing grants is denied. Pure."""

from collections.abc import Collection, Iterable
from dataclasses import dataclass
from fnmatch import fnmatchcase
from functools import lru_cache

from mimir.tools.calls.messages import list_names, quote_text


@dataclass(frozen=True, slots=True, kw_only=True)
class ToolPolicy:
    """What the person allows everywhere; globs over tool names."""

    allow: tuple[str, ...] = ("*",)
    deny: tuple[str, ...] = ()
    """Wins over `allow`."""

    def permits(self, tool: str) -> bool:
        """Tell whether the policy lets this tool be used."""
        return _matches(tool, self.allow) and not _matches(tool, self.deny)


@dataclass(frozen=True, slots=True, kw_only=True)
class PermissionDecision:
    """Whether a tool may be used, and why not."""

    granted: bool
    reason: str = ""
    """For the model; empty when granted."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ToolRights:
    """Everything that decides what one agent may use."""

    role: str
    role_tools: tuple[str, ...]
    """What the role grants at most (`domain.agent.ROLES`)."""
    plan_tools: tuple[str, ...] = ()
    """The task's own list, for the worker; empty: the plan takes nothing away."""
    policy: ToolPolicy = ToolPolicy()

    def decide(self, tool: str) -> PermissionDecision:
        """Grant one tool or say who refuses it."""
        if tool not in self.role_tools:
            return _no(f"the role {quote_text(self.role)} may not use {quote_text(tool)}.")
        if self.plan_tools and tool not in self.plan_tools:
            return _no(
                f"{quote_text(tool)} is not among the tools of this task ({list_names(self.plan_tools)})."
            )
        if not self.policy.permits(tool):
            return _no(f"{quote_text(tool)} is switched off by the policy of this installation.")
        return PermissionDecision(granted=True)

    def granted_tools(self, tools: Iterable[str]) -> tuple[str, ...]:
        """Return those of `tools` that may be used, in their order."""
        return _granted(self, tuple(tools))

    def why(self, tool: str) -> str:
        """Return why `tool` is refused; empty if it is granted."""
        return self.decide(tool).reason


@lru_cache
def _granted(rights: ToolRights, tools: tuple[str, ...]) -> tuple[str, ...]:
    """Asked for each attempt, of a few different rights."""
    return tuple(tool for tool in tools if rights.decide(tool).granted)


def not_granted(tool: str) -> str:
    """Return the reason where nobody knows a better one."""
    return f"{quote_text(tool)} was not granted to this agent."


def _no(reason: str) -> PermissionDecision:
    return PermissionDecision(granted=False, reason=reason)


def _matches(tool: str, globs: Collection[str]) -> bool:
    return any(fnmatchcase(tool, glob) for glob in globs)
