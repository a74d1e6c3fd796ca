"""Agent definitions: a prompt with the rights and limits that its file requests. Pure."""

from typing import Literal

from mimir.domain.finding import Finding
from mimir.domain.value_class import value_class

AgentKind = Literal["sdk", "cli"]
"""`sdk`: the agent loop of mimir. `cli`: an external program."""
AgentFormat = Literal["folder", "claude", "copilot", "opencode", "skill"]
AgentLocation = Literal["shipped", "user", "project", "extra"]
MemoryAccess = Literal["none", "read", "propose"]
Verification = Literal["auto", "checks", "judge", "citations"]
CrashBehaviour = Literal["again", "ask"]


@value_class
class ToolRequest:
    """The tools that a definition names, as written in its file."""

    requested: tuple[str, ...] = ()
    denied: tuple[str, ...] = ()
    is_default: bool = True
    """Whether the file names no tools, so that the default set applies."""
    is_read_only: bool = False
    """Whether the file asks for planning only: no writing and no commands."""


@value_class
class AgentLimits:
    """Limits that a definition requests; None: the setting applies."""

    timeout_seconds: int | None = None
    max_tool_calls: int | None = None
    max_tokens: int | None = None
    """Longest answer."""


@value_class
class AgentSource:
    """The origin of a definition."""

    location: AgentLocation
    format: AgentFormat
    path: str
    """Of the file or folder: relative to the project, otherwise absolute."""
    hash: str
    """SHA-256 of the file, or of all files of the definition."""
    is_trusted: bool
    keys_file: str = ""
    """Name of the file with the keys, if `path` is a folder."""

    @property
    def keys_path(self) -> str:
        """Path of the file that the lines of findings count in."""
        return f"{self.path}/{self.keys_file}" if self.keys_file else self.path


@value_class
class AgentDefinition:
    """One agent definition as read; nothing in it is a permission."""

    name: str
    """Lower-case letters, digits, `-`, and `/` between a skill and its agent."""
    title: str
    """The name as written."""
    kind: AgentKind = "sdk"
    description: str = ""
    prompt: str = ""
    source: AgentSource
    models: tuple[str, ...] = ()
    """Names of models, the first that is known is used; empty: the model of the caller."""
    temperature: float | None = None
    tools: ToolRequest = ToolRequest()
    limits: AgentLimits = AgentLimits()
    program: str = ""
    """Name of the preset of a `cli` agent."""
    files: tuple[str, ...] = ()
    """Globs that it may write in a task invocation."""
    output_schema: str = ""
    """JSON Schema of the answer as JSON text; empty: none."""
    skills: tuple[str, ...] = ()
    may_spawn: bool = False
    memory: MemoryAccess = "read"
    verify: Verification = "auto"
    on_crash: CrashBehaviour = "again"
    is_disabled: bool = False
    findings: tuple[Finding, ...] = ()

    @property
    def has_errors(self) -> bool:
        """Whether a finding refuses the definition."""
        return any(finding.severity == "error" for finding in self.findings)

    @property
    def is_usable(self) -> bool:
        """Whether it may be invoked."""
        return not (self.has_errors or self.is_disabled)
