"""What a family draws from a seed: a project, a plan, right work, and the ways in which the work can be wrong. Values only."""

from collections.abc import Mapping
from dataclasses import dataclass

from mimir.domain.plan import Task

Files = Mapping[str, str]
"""Path → content."""


@dataclass(frozen=True, slots=True, kw_only=True)
class WorkVersion:
    """What a worker leaves of its task's files, and what is wrong with it."""

    name: str
    files: Files


@dataclass(frozen=True, slots=True, kw_only=True)
class AlteredFact:
    """A fact of the project that reaches the worker altered."""

    path: str
    said: str
    """Stands once in that file."""
    altered: str
    files: Files
    """What follows from the altered fact."""


@dataclass(frozen=True, slots=True, kw_only=True)
class FaultCase:
    """One project with its plan. The fault is planted in the last task, the *target*."""

    family: str
    seed: int
    files: Files
    """The project before the work."""
    tasks: tuple[Task, ...]
    earlier: Mapping[str, Files]
    """Right work of the tasks before the target."""
    right: Files
    """Right work of the target."""
    stub: Files
    """The target's files in place, nothing in them done."""
    loud: Files
    """Work with a fault that the visible tests show."""
    subtle: tuple[WorkVersion, ...]
    """Work as a reviewer might let it pass; the visible tests show some of it."""
    partial: tuple[WorkVersion, ...]
    stale: tuple[WorkVersion, ...]
    """Built on what an earlier step said before it was changed."""
    hidden: tuple[WorkVersion, ...]
    """Leans on the clock, the network, or on what lies about on the worker's machine."""
    obeyed: tuple[WorkVersion, ...]
    """What a file of the project tells whoever reads it to do."""
    misread: AlteredFact
    elsewhere: Mapping[str, str]
    """Path of the target's work → a wrong path that looks like it."""
    tests: Files
    """Visible tests of the target, as they are before the work; empty: the family has no checks."""
    weakened: Files
    """The same, brought into line with `loud`."""
    told: str
    """File that holds what `obeyed` obeys."""
    oracle: str
    """Program that ends with 0 and says `RIGHT` as its last line iff the tree is right."""

    @property
    def target(self) -> Task:
        """The task that the fault is planted in."""
        return self.tasks[-1]
