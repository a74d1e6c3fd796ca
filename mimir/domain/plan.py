"""The plan: tasks, criteria and checks as values; `planning` reads and checks them. Pure."""

import re
import shlex
from collections.abc import Iterable
from dataclasses import field
from fractions import Fraction
from typing import Literal

from mimir.domain.json_value import OMIT_EMPTY
from mimir.domain.value_class import value_class

CheckKind = Literal["flip", "hold"]

DEFAULT_MAX_RETRIES = 2
DEFAULT_TIME_LIMIT_MINUTES = 30
DEFAULT_TIMEOUT_SECONDS = 300.0

_SHELL_SYNTAX = frozenset("|&;<>()$`*?[]{}~#\n")
# First words that are no program: shell built-ins and assignments.
_SHELL_START = re.compile(
    r"\s*(?:!|:|\.|cd|exit|source|eval|export|set|type|ulimit|[A-Za-z_]\w*=\S*)(?:\s|$)"
)


NO_REVIEWER = "Reviewer of: "
"""Beginning of the role of a reviewer that the plan does not name."""


@value_class
class Criterion:
    """One statement that must be true of the deliverable."""

    id: str
    text: str
    points: Fraction | None = None
    """As written; None: not given. `weights` makes shares of them."""
    critical: bool = False
    """True: the task cannot pass while this one failed."""


@value_class
class Check:
    """A command that the engine runs to decide criteria."""

    id: str
    criteria: tuple[str, ...]
    """Ids of the criteria that it decides."""
    run: tuple[str, ...] | str
    """An argument vector, or a command line as written."""
    kind: CheckKind | None = None
    """None: inferred from the run before the work."""
    tests: tuple[str, ...] | None = None
    """Globs of the check files. None: the path arguments of `run`."""
    protect: tuple[str, ...] = ()
    """Globs of protected files; restored from the base before the check runs."""
    required: bool = True
    """False: shown, decides nothing."""
    timeout_seconds: float = DEFAULT_TIMEOUT_SECONDS

    @property
    def command_line(self) -> str:
        """The command as a shell line."""
        return self.run if isinstance(self.run, str) else shlex.join(self.run)

    @property
    def argv(self) -> tuple[str, ...]:
        """The argument vector; a string with shell syntax runs in bash with pipefail.

        Of several lines, each must succeed, as in continuous integration; a script that reads `$?` decides itself.
        """
        if not isinstance(self.run, str):
            return self.run
        if not _SHELL_SYNTAX & set(self.run) and not _SHELL_START.match(self.run):
            try:
                return tuple(shlex.split(self.run))
            except ValueError:  # An open quote: bash reports it, and the check is red.
                pass
        is_strict = "\n" in self.run.strip() and "$?" not in self.run
        return ("bash", "-o", "pipefail", "-c", f"set -e\n{self.run}" if is_strict else self.run)


@value_class
class Task:
    """One task of the task graph."""

    id: str
    title: str
    prompt: str
    """Byte for byte as the planner wrote it."""
    worker_role: str
    agent: str = field(default="", metadata=OMIT_EMPTY)
    """Address of the agent definition that works; empty: an agent of the role."""
    qc_role: str = ""
    """Empty: derived from the worker role."""
    criteria: tuple[Criterion, ...] = ()
    checks: tuple[Check, ...] = ()
    dependencies: tuple[str, ...] = ()
    files: tuple[str, ...] = ()
    """Globs that the task may write; empty: any."""
    context_files: tuple[str, ...] = ()
    tools: tuple[str, ...] = ()
    """Names; empty: all that the worker role grants."""
    tool_execution: str = ""
    """Text of "Tool-Based Execution"."""
    estimated_tool_calls: int | None = None
    estimated_minutes: float | None = None
    time_limit_minutes: float = DEFAULT_TIME_LIMIT_MINUTES
    max_retries: int = DEFAULT_MAX_RETRIES
    model: str = ""
    """Recommended model; empty or "default": the setting of the role."""
    parallel_group: str = ""
    """A hint only; never a barrier."""
    notes: str = ""
    """Unknown text of the section; kept by the renderer."""

    @property
    def is_read_only(self) -> bool:
        """Whether nothing decides the result, so that the task can only be answered."""
        return not (self.criteria or self.checks)

    @property
    def reviewer(self) -> str:
        """The QC role in force."""
        return self.qc_role or f"{NO_REVIEWER}{self.worker_role}"


@value_class
class Plan:
    """The checked or unchecked plan, in the planner's order."""

    title: str
    tasks: tuple[Task, ...]
    goal: str = ""
    request: str = ""
    reasoning: str = ""
    """PM only; never shown to workers or QC."""
    notes: str = ""
    """Unknown text outside of tasks; kept by the renderer."""

    @property
    def is_read_only(self) -> bool:
        """Whether every task can only be answered; only plans of invocations are so."""
        return bool(self.tasks) and all(task.is_read_only for task in self.tasks)

    def task(self, id: str) -> Task:
        """Return the task with this id; raise KeyError if there is none."""
        for task in self.tasks:
            if task.id == id:
                return task
        raise KeyError(id)


PreambleRole = tuple[Literal["worker", "qc"], str]
"""Kind and role of a preamble."""


def preamble_roles(tasks: Iterable[Task]) -> tuple[PreambleRole, ...]:
    """Return each distinct role that needs a preamble; a read-only task has no review."""
    named: list[PreambleRole] = []
    for task in tasks:
        named.append(("worker", task.worker_role))
        if not task.is_read_only:
            named.append(("qc", task.reviewer))
    return tuple(dict.fromkeys(named))


def weights(criteria: tuple[Criterion, ...]) -> dict[str, Fraction]:
    """Return each criterion's exact share of 100 points.

    Missing points are the mean of the given ones; the sum is scaled to 100.
    """
    given = [c.points for c in criteria if c.points is not None]
    default = sum(given, Fraction(0)) / len(given) if given else Fraction(1)
    raw = {c.id: c.points if c.points is not None else default for c in criteria}
    # Fractions: the shares must add up to exactly 100.
    total = sum(raw.values(), Fraction(0))
    if total == 0:
        return {id: Fraction(100, len(raw)) for id in raw}
    return {id: points * 100 / total for id, points in raw.items()}
