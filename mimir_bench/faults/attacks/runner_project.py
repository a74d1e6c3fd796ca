"""Values of an attacked project: its check, its work, and deliverables by cause."""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field

from mimir.domain.plan import CheckKind
from mimir_bench.faults.fault_case import Files

Deliverables = Mapping[str, Files]
"""Name → written files. The first two letters of a name are its cause."""
Commands = Mapping[str, tuple[str, ...]]
CAUSES: Mapping[str, str] = {
    "A1": "test changed by another task",
    "A2": "import precedence",
    "A3": "unknown file decides the command",
    "A4": "work skips tests",
    "A5": "work ends the process",
    "A6": "work patches runner or comparison",
    "A7": "shadow modules and hooks",
    "A8": "command that cannot fail",
}
"""Causes of wrong work that passes its check."""


@dataclass(frozen=True, slots=True, kw_only=True)
class RunnerProject:
    """A project whose check is red before the work."""

    base: Files
    run: tuple[str, ...]
    work: str
    """Path of the file that the task is about."""
    wrong: str
    right: str
    asks: str = ""
    """Hidden tests: Python statements that raise if the work is wrong."""
    tests: tuple[str, ...] | None = None
    protect: tuple[str, ...] = ("tests/**",)
    attacks: Deliverables = field(default_factory=dict[str, Files])
    twins: Deliverables = field(default_factory=dict[str, Files])
    """Honest work of the same shape as an attack."""
    commands: Commands = field(default_factory=dict[str, tuple[str, ...]])
    """Commands of a check that cannot fail, by name."""
    honest_commands: Commands = field(default_factory=dict[str, tuple[str, ...]])


@dataclass(frozen=True, slots=True, kw_only=True)
class AttackVersion:
    """One deliverable, and the check that decides on it."""

    name: str
    changes: Files
    run: tuple[str, ...]
    kind: CheckKind = "flip"
    is_right: bool


def versions(project: RunnerProject, cause: str, *, is_right: bool) -> tuple[AttackVersion, ...]:
    """Return the attacks of a cause, or the honest work of the same shape."""
    made = project.twins if is_right else project.attacks
    commands = project.honest_commands if is_right else project.commands
    work = {project.work: project.right if is_right else project.wrong}
    return (
        *(
            AttackVersion(name=name, changes=changes, run=project.run, is_right=is_right)
            for name, changes in made.items()
            if name.startswith(cause)
        ),
        *(
            AttackVersion(
                name=f"{name}, {kind}", changes=work, run=run, kind=kind, is_right=is_right
            )
            for name, run in commands.items()
            if name.startswith(cause)
            for kind in _KINDS
        ),
    )


def all_versions(project: RunnerProject) -> Iterator[tuple[AttackVersion, tuple[str, ...]]]:
    """Yield each version with each choice of the task's `files`."""
    for is_right in (False, True):
        for cause in CAUSES:
            for one in versions(project, cause, is_right=is_right):
                # Honest work names every file that it writes.
                named = tuple(one.changes) if is_right else (project.work,)
                yield one, ()
                yield one, named


_KINDS: tuple[CheckKind, ...] = ("flip", "hold")
