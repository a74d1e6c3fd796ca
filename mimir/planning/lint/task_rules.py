"""What is wrong with a task by itself: its fields, criteria, checks, tools and paths."""

import difflib
import re
import shlex
from collections.abc import Callable, Collection, Iterator
from dataclasses import dataclass
from fractions import Fraction

from mimir.domain.globs import has_wildcard, is_outside, matches
from mimir.domain.plan import Check, Task
from mimir.planning.format.diagnostics import (
    PlanFinding,
    SourceMap,
    SourcePosition,
    make_finding,
    quote_excerpt,
)
from mimir.planning.lint.vacuous_checks import cannot_fail

MAX_CONTEXT_FILES = 10
_RENAME = "Give one of them another id."
_WINDOWS = re.compile(r"[A-Za-z]:[\\/]|\\\\|\\")


@dataclass(frozen=True, slots=True, kw_only=True)
class ProjectFacts:
    """What the plan is checked against."""

    tools: Collection[str]
    """Names that a plan may list."""
    exists: Callable[[str], bool] | None
    """Says whether a path, or any path that a glob names, is in the project; None: not known."""


def check_task(
    task: Task, number: int, places: SourceMap, project: ProjectFacts
) -> Iterator[PlanFinding]:
    """Yield what is wrong with a task; `number` is its place in the plan."""
    judge = _TaskRules(task, number, places, project)
    yield from judge.fields()
    yield from judge.criteria()
    yield from judge.checks()
    yield from judge.tools()
    yield from judge.paths()


class _TaskRules:
    def __init__(self, task: Task, number: int, places: SourceMap, project: ProjectFacts) -> None:
        self.task = task
        self.project = project
        self.name = task.id or task.title or f"number {number + 1}"
        self._number = number
        self._places = places

    def _at(self, field: str, item: int = -1) -> SourcePosition:
        return self._places.position_of(self._number, field, item)

    def fields(self) -> Iterator[PlanFinding]:
        """Prompt, roles, estimate, limits."""
        task = self.task
        if not task.prompt.strip():
            yield make_finding(
                "prompt-missing",
                f"Task {self.name} has no prompt.",
                self._at("prompt"),
                suggestion="Write what the worker must do between <prompt> and </prompt>.",
            )
        if not task.worker_role.strip():
            message = f"Task {self.name} has no worker role."
            yield make_finding(
                "role-missing",
                message,
                self._at("worker_role"),
                suggestion="Add **Agent Role Description:**.",
            )
        if not task.qc_role.strip():
            message = f"Task {self.name} has no QC role; it is {quote_excerpt(task.reviewer)}."
            yield make_finding("qc-role-missing", message, self._at("qc_role"))
        if task.estimated_tool_calls is None:
            message = f"Task {self.name} has no estimated tool calls; its limit is 50."
            yield make_finding("estimate-missing", message, self._at("estimated_tool_calls"))
        yield from self._limits()

    def _limits(self) -> Iterator[PlanFinding]:
        task = self.task
        limits: tuple[tuple[str, float | None, bool], ...] = (
            ("estimated_tool_calls", task.estimated_tool_calls, task.estimated_tool_calls != 0),
            ("estimated_minutes", task.estimated_minutes, True),
            ("max_retries", task.max_retries, True),
            ("time_limit_minutes", task.time_limit_minutes, task.time_limit_minutes != 0),
        )
        for field, value, fits in limits:
            if value is not None and (value < 0 or not fits):
                yield make_finding(
                    "number-out-of-range",
                    f"Task {self.name}: {field.replace('_', ' ')} is {value:g}.",
                    self._at(field),
                    suggestion="It must be zero or more." if fits else "It must be more than zero.",
                )

    # Criteria.

    def criteria(self) -> Iterator[PlanFinding]:
        """At least one, ids once, points that make sense."""
        task = self.task
        if not task.criteria:
            yield make_finding(
                "criteria-missing",
                f"Task {self.name} has no criterion.",
                self._at("criteria"),
                suggestion="Add **Verification Criteria:** with what must be true of the result.",
            )
        seen: set[str] = set()
        for n, criterion in enumerate(task.criteria):
            if criterion.id in seen:
                message = f"Criterion {quote_excerpt(criterion.id)} is there twice."
                yield make_finding(
                    "criterion-duplicate", message, self._at("criteria", n), suggestion=_RENAME
                )
            seen.add(criterion.id)
            if criterion.points is not None and criterion.points < 0:
                message = f"Criterion {quote_excerpt(criterion.id)} has {criterion.points} points."
                yield make_finding(
                    "criterion-points",
                    message,
                    self._at("criteria", n),
                    suggestion="Write zero or more.",
                )
        yield from self._points()

    def _points(self) -> Iterator[PlanFinding]:
        given = [one.points for one in self.task.criteria if one.points is not None]
        total = sum(given, Fraction(0))
        if given and (total != 100 or len(given) < len(self.task.criteria)):
            missing = len(self.task.criteria) - len(given)
            message = f"The points of task {self.name} sum to {float(total):g}"
            message += f", and {missing} of its criteria have none; " if missing else "; "
            yield make_finding(
                "points-sum", message + "they are scaled to 100.", self._at("criteria")
            )

    # Checks.

    def checks(self) -> Iterator[PlanFinding]:
        """Ids once, known criteria, commands that can fail."""
        seen: set[str] = set()
        known = {one.id for one in self.task.criteria}
        for n, check in enumerate(self.task.checks):
            at = self._at("checks", n)
            if check.id in seen:
                message = f"Check {quote_excerpt(check.id)} is there twice."
                yield make_finding("check-duplicate", message, at, suggestion=_RENAME)
            seen.add(check.id)
            yield from self._check_criteria(check, known, at)
            yield from self._command(check, at)
            if check.timeout_seconds <= 0:
                message = f"Check {quote_excerpt(check.id)} has a timeout of {check.timeout_seconds:g} seconds."
                yield make_finding(
                    "number-out-of-range", message, at, suggestion="It must be more than zero."
                )
        if self.task.criteria and not self._has_executed_criterion(known):
            yield make_finding(
                "check-missing",
                f"No criterion of task {self.name} has a required check; QC alone judges it.",
                self._at("checks" if self.task.checks else "criteria"),
                suggestion="Add a check whose exit code decides.",
            )

    def _has_executed_criterion(self, known: set[str]) -> bool:
        return any(
            check.required and known.intersection(check.criteria) for check in self.task.checks
        )

    def _check_criteria(
        self, check: Check, known: set[str], at: SourcePosition
    ) -> Iterator[PlanFinding]:
        if check.required and not check.criteria:
            yield make_finding(
                "check-without-criterion",
                f"Check {quote_excerpt(check.id)} decides no criterion.",
                at,
                suggestion="Name them in criteria, or set required: false.",
            )
        for id in check.criteria:
            if id not in known:
                yield make_finding(
                    "check-criterion-unknown",
                    f"Check {quote_excerpt(check.id)} names the criterion {quote_excerpt(id)}, which task {self.name} does not have.",
                    at,
                    suggestion=did_you_mean(id, known) or hint_names(known),
                )

    def _command(self, check: Check, at: SourcePosition) -> Iterator[PlanFinding]:
        if isinstance(check.run, str) and not _is_split(check.run):
            yield make_finding(
                "check-command",
                f"The command of check {quote_excerpt(check.id)} cannot be split: a quote is not closed.",
                at,
                suggestion="Write run as a list of arguments.",
            )
            return
        if cannot_fail(check.argv):
            shown = check.run if isinstance(check.run, str) else shlex.join(check.run)
            empty = not shown.strip()
            yield make_finding(
                "check-vacuous",
                f"Check {quote_excerpt(check.id)} has no command."
                if empty
                else f"Check {quote_excerpt(check.id)} cannot fail: {quote_excerpt(shown)} always ends with exit code 0.",
                at,
                suggestion="Run what proves the criteria, and let its own exit code decide.",
            )

    # Tools.

    def tools(self) -> Iterator[PlanFinding]:
        """Names in `Tools`, and in the prose about tools."""
        for n, name in enumerate(self.task.tools):
            if name not in self.project.tools:
                yield make_finding(
                    "tool-unknown",
                    f"Task {self.name} lists the tool {quote_excerpt(name)}, which there is not.",
                    self._at("tools", n),
                    suggestion=did_you_mean(name, self.project.tools)
                    or hint_names(self.project.tools),
                )
        for name in dict.fromkeys(_TOOL_LIKE.findall(self.task.tool_execution[:20_000])):
            near = did_you_mean(name, self.project.tools, cutoff=0.6)
            if name not in self.project.tools and near:
                yield make_finding(
                    "tool-unlikely",
                    f"Task {self.name} speaks of the tool {quote_excerpt(name)}, which there is not.",
                    self._at("tool_execution"),
                    suggestion=near,
                )

    # Paths.

    def paths(self) -> Iterator[PlanFinding]:
        """Globs inside the workspace; protected paths are not written."""
        for field in ("files", "context_files"):
            for n, glob in enumerate(getattr(self.task, field)):
                yield from self._inside(glob, self._at(field, n))
        for n, check in enumerate(self.task.checks):
            for glob in (*(check.tests or ()), *check.protect):
                yield from self._inside(glob, self._at("checks", n))
            for path in self._written_though_protected(check):
                yield make_finding(
                    "path-protected",
                    f"Task {self.name} may write {quote_excerpt(path)}, which check {quote_excerpt(check.id)} protects.",
                    self._at("checks", n),
                    suggestion="Take it out of files, or out of protect.",
                )
        if len(self.task.context_files) > MAX_CONTEXT_FILES:
            count = len(self.task.context_files)
            message = f"Task {self.name} has {count} context files; more than {MAX_CONTEXT_FILES} are not given."
            yield make_finding("context-files-many", message, self._at("context_files"))

    def _inside(self, glob: str, at: SourcePosition) -> Iterator[PlanFinding]:
        if not glob.strip() or is_outside(glob) or glob == "~" or _WINDOWS.match(glob):
            yield make_finding(
                "path-outside",
                f"Task {self.name}: {quote_excerpt(glob)} is no path inside the workspace.",
                at,
                suggestion="Write it relative to the project, with '/' and without '..'.",
            )

    def _written_though_protected(self, check: Check) -> Iterator[str]:
        """Yield existing paths, or equal globs of some, that are both protected and written."""
        exists = self.project.exists
        if exists is None:
            return
        files = self.task.files
        named = [
            p for p in check.protect if p in files or (not has_wildcard(p) and matches(p, files))
        ]
        named += [p for p in files if not has_wildcard(p) and matches(p, check.protect)]
        for path in dict.fromkeys(named):
            if not is_outside(path) and exists(path):
                yield path


_TOOL_LIKE = re.compile(r"(?<![\w./-])([a-z]+(?:_[a-z]+)+)(?![\w/]|\.\w)")


def _is_split(line: str) -> bool:
    try:
        shlex.split(line)
    except ValueError:
        # Comments, here-documents and $'…' may hold a lone quote; bash knows.
        return any(sign in line for sign in "#<$`")
    return True


def hint_names(known: Collection[str]) -> str:
    """Return a hint at what there is, at most ten names."""
    names = sorted(known)
    more = ", …" if len(names) > 10 else ""
    return f"There are: {', '.join(names[:10])}{more}." if names else "There is none."


def did_you_mean(name: str, known: Collection[str], *, cutoff: float = 0.4) -> str:
    """Return a hint at the nearest known name; empty if none is near.

    Args:
        name: What was written.
        known: What it may be.
        cutoff: How near it must be, 0 to 1.
    """
    near = difflib.get_close_matches(name[:200], sorted(known), n=1, cutoff=cutoff)
    return f"Did you mean {near[0]!r}?" if near else ""
