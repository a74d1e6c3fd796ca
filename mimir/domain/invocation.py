"""Invocation of an agent: the request of a caller and the pinned definition. Pure."""

from dataclasses import field

from mimir.domain.json_value import OMIT_EMPTY
from mimir.domain.program import PinnedProgram
from mimir.domain.run import NO_LIMITS, RunBudget
from mimir.domain.value_class import value_class

AGENT_ROLE = "Agent "
"""Beginning of the worker role of an invoked definition."""
AGENT_TEXT = "definitions"
"""Name of the stored text with the pinned definitions of a run."""
PLAN_AGENTS_TEXT = "agents"
"""Name of the stored text with the agents that the PM of a planning run may name."""
NO_FILES = ".mimir/none"
"""Glob of a path that no deliverable can contain: the task may write nothing."""


@value_class
class InvocationRequest:
    """Request of a caller to an agent."""

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
    max_tool_calls: int | None = None
    """None: the limit of the definition."""
    timeout_seconds: int | None = None
    output_schema: str = ""
    """JSON Schema of the answer as JSON text; empty: that of the definition."""
    refines: str = ""
    """Invocation of the same session whose result it improves. Empty: none."""
    is_forced: bool = False
    """Whether a task may be similar to an earlier one of its session."""

    @property
    def is_read_only(self) -> bool:
        """Whether nothing decides the result."""
        return not (self.criteria or self.checks or self.deliverables)


@value_class
class DelegationLimits:
    """Limits that settings choose."""

    calls: int = 20
    """Invocations of a session, at all depths."""
    active: int = 5
    """Agents of a session at work at the same time; further ones wait."""
    depth: int = 2
    """Longest chain of agents below the caller of mimir."""
    refinements: int = 2
    """Of one task."""
    similarity: float = 0.85
    """Jaccard similarity from which two tasks count as one."""
    per_day: int = 200
    """Invocations of all sessions in 24 hours."""
    budget: RunBudget = NO_LIMITS
    """Of all invocations of a session together."""


@value_class
class SpawnCaller:
    """Agent that spawns another one."""

    run: str
    agent: str
    """Address of its definition."""
    key: str = ""
    """Of its call: a repeated one finds the agent that it has spawned."""


@value_class
class PinnedSkill:
    """Instructions that an agent may read; later edits do not count."""

    name: str
    description: str
    body: str
    files: tuple[tuple[str, str], ...] = ()
    """(path, text) of its references and assets."""
    scripts: tuple[tuple[str, str], ...] = ()
    """(path, text) of its scripts, which the tool `run` sees below `.skill/NAME`."""


@value_class
class PlanningStep:
    """The part of a definition that a planning step works with; later edits do not count."""

    prompt: str
    model: str = ""
    """Full name. Empty: that of the PM."""
    tools: tuple[str, ...] | None = None
    """Tools that the definition may use. None: those of the step, as in older versions."""


@value_class
class PlanAgent:
    """An agent definition that a plan may name."""

    address: str
    kind: str
    description: str
    may_write: bool
    needs_checks: bool = field(default=False, metadata=OMIT_EMPTY)
    """Whether checks alone verify its work."""


@value_class
class MemoryHit:
    """A node of the memory that is similar to a request."""

    id: str
    kind: str
    """`note`, `lesson` …"""
    title: str
    text: str


@value_class
class LedgerExcerpt:
    """Excerpt of another run's ledger about the work that an invocation belongs to."""

    run: str
    goal: str
    decisions: tuple[str, ...] = ()
    handoff: tuple[str, ...] = ()
    """Finished work and open questions."""
    is_parent: bool = False
    """Whether an agent of that run spawned the agent; otherwise it is the project's last plan."""


@value_class
class PinnedMaterial:
    """Further material of an invoked agent; later changes do not count."""

    terms: tuple[str, ...] = ()
    """Domain terms of the definition; they select memory and files."""
    reads_memory: bool = True
    """False: its definition has `memory: none`."""
    memory: tuple[MemoryHit, ...] = ()
    files: tuple[str, ...] = ()
    """Paths of the project that the terms name; they are listed, not shown."""
    instructions: str = ""
    """The project's `AGENTS.md`; empty: there is none."""
    feedback: tuple[str, ...] = field(default=(), metadata=OMIT_EMPTY)
    """Decisions about proposals of the agent in earlier runs of the same task."""
    ledger: LedgerExcerpt | None = field(default=None, metadata=OMIT_EMPTY)
    """None: no run is above it, and the project has executed no plan."""


@value_class
class PinnedDefinition:
    """The part of a definition that decides how a run works; later edits do not count."""

    address: str
    path: str
    hash: str
    prompt: str
    program: PinnedProgram | None = None
    """None: an agent of mimir works."""
    output_schema: str = ""
    """JSON Schema of the answer as JSON text; empty: none."""
    skills: tuple[PinnedSkill, ...] = ()
    files: tuple[str, ...] = ()
    """Globs of its file: it writes only files that these match too. Empty: no such limit."""
    material: PinnedMaterial | None = None
    """None: the agent of a plan, or a run of an older version."""
    verify: str = field(default="", metadata=OMIT_EMPTY)
    """`checks`: QC is not asked. `citations`: each must hold. Empty: as the request names it."""
    max_tokens: int | None = field(default=None, metadata=OMIT_EMPTY)
    """Longest reply. None: the limit of the role."""
    temperature: float | None = None
    """None: that of the role."""

    @property
    def role(self) -> str:
        """The worker role of the task."""
        return f"{AGENT_ROLE}{self.address} ({self.hash[:12]})"
