"""What the engine knows and a role may see: frozen values, made by attempts, qc and planning from the store and the workspace.

No absolute path, no time, no random id belongs in any of them: every field may stand in a prompt.
"""

from collections.abc import Mapping
from dataclasses import dataclass, replace
from fractions import Fraction
from typing import Literal

from mimir.agents.context.receipt import WithheldPiece
from mimir.domain.evidence import CheckOutcome
from mimir.domain.plan import Task


@dataclass(frozen=True, slots=True, kw_only=True)
class ContextBudgets:
    """Tokens of each part; what does not fit is referenced. Critical pieces are never cut."""

    files: int = 12_000
    dependencies: int = 4_000
    earlier: int = 14_000
    """Previous answer, diff and failed outputs of a retry."""
    answer: int = 6_000
    """The worker's answer before QC."""
    checks: int = 10_000
    changed: int = 24_000
    """Contents and diffs before QC."""
    related: int = 2_000
    repository: int = 10_000
    memory: int = 8_000

    def smaller(self) -> "ContextBudgets":
        """Return a third of each: for the retry after a context that was too long."""
        return replace(
            self, **{name: getattr(self, name) // 3 for name in self.__dataclass_fields__}
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class FileView:
    """A file that a task lists as context."""

    path: str
    size: int
    """Bytes."""
    text: str | None
    """None: not there, or no text."""
    note: str = ""
    """Why there is no text: `not there`, `binary` …"""


@dataclass(frozen=True, slots=True, kw_only=True)
class DependencyView:
    """A task that this one builds on, completed."""

    id: str
    title: str
    answer: str
    """Its closing answer; its beginning is shown."""
    files: tuple[str, ...] = ()
    """Paths that it changed."""
    artifact: str = ""
    """What `read_artifact` takes for the whole answer."""


@dataclass(frozen=True, slots=True, kw_only=True)
class FailedCheck:
    """A check that an earlier attempt did not pass."""

    id: str
    command: str
    outcome: str
    """`exit code 1`, `timed out` …"""
    output: str


@dataclass(frozen=True, slots=True, kw_only=True)
class EarlierAttempt:
    """An attempt before this one, and what became of it."""

    number: int
    reason: str
    """Why there is another: `qc_failure`, `integration`, `silent_no_op` …"""
    score: Fraction | None = None
    """None: judged without QC."""
    issues: tuple[str, ...] = ()
    checks: tuple[FailedCheck, ...] = ()
    answer: str = ""
    artifact: str = ""
    """What `read_artifact` takes for the whole answer."""
    diff: str = ""
    tripped: str = ""
    """What ended its use of tools; empty: nothing."""
    note: str = ""
    """What else the next one must know: files with conflict markers, changes that were left out …"""


@dataclass(frozen=True, slots=True, kw_only=True)
class WorkerInput:
    """What a worker may know."""

    preamble: str
    """System message: the role's preamble with the fixed rules."""
    task: Task
    attempt: int
    attempts: int
    """Granted in all; an integration retry adds one to both numbers."""
    tools: tuple[str, ...] = ()
    """Names in force."""
    files: tuple[FileView, ...] = ()
    dependencies: tuple[DependencyView, ...] = ()
    earlier: tuple[EarlierAttempt, ...] = ()
    """Oldest first."""
    required_fixes: tuple[str, ...] = ()
    """Of the last judged attempt; QC is asked about the same list, by number."""
    hidden: tuple[WithheldPiece, ...] = ()
    """What the PM had and a worker may not see (`context.Background`)."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ChangedFile:
    """One file of a deliverable."""

    path: str
    status: Literal["added", "modified", "deleted"]
    text: str | None = None
    """Content; None: deleted, binary or not read."""
    diff: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class RelatedTask:
    """A task near this one in the task graph."""

    id: str
    title: str
    status: str
    distance: int
    """Edges away: 1 or 2."""
    relation: Literal["needs", "needed_by"]
    """This task needs it, or is needed by it."""


@dataclass(frozen=True, slots=True, kw_only=True)
class QCInput:
    """What the judge may know: the deliverable, not how it came about."""

    preamble: str
    task: Task
    attempt: int
    attempts: int
    answer: str
    artifact: str = ""
    """What `read_artifact` takes for the whole answer."""
    outcomes: tuple[CheckOutcome, ...] = ()
    changed: tuple[ChangedFile, ...] = ()
    cited: Mapping[int, str] | None = None
    """Calls of the worker that its answer cites and whose tree is the deliverable's: number → text. They may be quoted."""
    unsupported: tuple[str, ...] = ()
    required_fixes: tuple[str, ...] = ()
    """Of the attempt before, as the worker saw them."""
    related: tuple[RelatedTask, ...] = ()
    notes: tuple[str, ...] = ()
    """Findings of the engine: files left out of the deliverable, protected files that were changed …"""
    form: str = ""
    """How the verdict must look; closes the system message."""
    hidden: tuple[WithheldPiece, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class MemoryHit:
    """A node of the memory that speaks of something like the request."""

    id: str
    kind: str
    """Its label."""
    title: str
    text: str


@dataclass(frozen=True, slots=True, kw_only=True)
class PMInput:
    """What the planner may know: everything."""

    preamble: str
    request: str
    """The person's own words."""
    specification: str = ""
    """Ecko's; empty: the request is taken as it is."""
    repository: tuple[tuple[str, int], ...] = ()
    """(path, bytes), sorted."""
    files: tuple[FileView, ...] = ()
    """What is worth reading first: README and the like."""
    memory: tuple[MemoryHit, ...] = ()
    lessons: tuple[str, ...] = ()
    """Of failed tasks of earlier runs that were similar."""
    form: str = ""
    """How the plan must look; closes the system message."""
