"""Permissions of tools: task's list ∩ role's list ∩ policy; all else is denied."""

from collections.abc import Collection, Iterable
from fnmatch import fnmatchcase

from mimir.domain.quoted_text import list_names, quote_text
from mimir.domain.value_class import value_class


@value_class
class ToolPolicy:
    """Globs over tool names that hold for every agent of this installation."""

    allow: tuple[str, ...] = ("*",)
    deny: tuple[str, ...] = ()
    """Wins over `allow`."""

    def permits(self, tool: str) -> bool:
        """Return whether the policy permits this tool."""
        return _matches(tool, self.allow) and not _matches(tool, self.deny)


@value_class
class ToolRights:
    """Everything that decides which tools one agent may use."""

    role: str
    role_tools: tuple[str, ...]
    """The tools of the role (`domain.agent.ROLES`)."""
    plan_tools: tuple[str, ...] = ()
    """The tools of the task, for the worker; empty: the plan denies nothing."""
    policy: ToolPolicy = ToolPolicy()

    def why(self, tool: str) -> str:
        """Return why `tool` is denied, for the model; empty if it is granted."""
        name = quote_text(tool)
        if tool not in self.role_tools:
            return f"the role {quote_text(self.role)} may not use {name}."
        # A plan can only narrow the tools of the role.
        if self.plan_tools and tool not in self.plan_tools:
            return f"{name} is not among the tools of this task ({list_names(self.plan_tools)})."
        if not self.policy.permits(tool):
            return f"{name} is switched off by the policy of this installation."
        return ""

    def granted_tools(self, tools: Iterable[str]) -> tuple[str, ...]:
        """Return the granted ones of `tools`, in their order."""
        return tuple(tool for tool in tools if not self.why(tool))


def not_granted(tool: str) -> str:
    """Return the reason for a denied tool without a better one."""
    return f"{quote_text(tool)} was not granted to this agent."


def _matches(tool: str, globs: Collection[str]) -> bool:
    return any(fnmatchcase(tool, glob) for glob in globs)
