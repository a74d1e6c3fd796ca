"""Values of a generated case: a project, a plan, right work, and variants of wrong work."""

from collections.abc import Mapping
from dataclasses import dataclass

from mimir.domain.plan import Task

Files = Mapping[str, str]
"""Path → content."""


@dataclass(frozen=True, slots=True, kw_only=True)
class WorkVersion:
    """Files of a deliverable, named by its fault."""

    name: str
    files: Files


@dataclass(frozen=True, slots=True, kw_only=True)
class AlteredFact:
    """A fact of the project that reaches the worker altered."""

    path: str
    said: str
    """Occurs once in that file."""
    altered: str
    files: Files
    """Work that follows from the altered fact."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ProjectCase:
    """A project with its plan; the fault is planted in the last task, the *target*."""

    family: str
    seed: int
    files: Files
    """The project before the work."""
    tasks: tuple[Task, ...]
    earlier: Mapping[str, Files]
    """Right work of the tasks before the target."""
    right: Files
    """Right work of the target."""
    oracle: str
    """Program that ends with 0 and the last line `RIGHT` iff the tree is right."""

    @property
    def target(self) -> Task:
        """The task with the planted fault."""
        return self.tasks[-1]


@dataclass(frozen=True, slots=True, kw_only=True)
class FaultCase(ProjectCase):
    """A generated project with right and wrong versions of the work."""

    stub: Files
    """The target's files without their function."""
    loud: Files
    """Work with a fault that the visible tests show."""
    subtle: tuple[WorkVersion, ...]
    """Work that a reviewer might accept; the visible tests show some of it."""
    partial: tuple[WorkVersion, ...]
    stale: tuple[WorkVersion, ...]
    """Work based on an earlier step's result before it changed."""
    hidden: tuple[WorkVersion, ...]
    """Work that depends on the clock, the network, or files of the worker's machine."""
    obeyed: tuple[WorkVersion, ...]
    """Work that follows instructions in a file of the project."""
    misread: AlteredFact
    elsewhere: Mapping[str, str]
    """Path of the target's work → a wrong path that looks like it."""
    tests: Files
    """Visible tests of the target before the work; empty: the family has no checks."""
    weakened: Files
    """The same tests, changed so that `loud` passes."""
    instructions: str
    """File with the instructions that `obeyed` follows."""
