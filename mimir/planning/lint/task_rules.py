"""Rules for a single task: fields, criteria, checks, tools and paths. Pure."""

import difflib
import re
import shlex
from collections.abc import Callable, Collection, Iterator
from fractions import Fraction

from mimir.domain.broken_pipes import early_readers
from mimir.domain.finding import Finding, SourcePosition, quote_excerpt
from mimir.domain.globs import has_wildcard, is_outside, matches
from mimir.domain.plan import Check, Task
from mimir.domain.value_class import value_class
from mimir.planning.format.diagnostics import SourceMap, make_finding
from mimir.planning.lint.vacuous_checks import cannot_fail

MAX_CONTEXT_FILES = 10
_RENAME = "Give one of them another id."
_POSITIVE = "Write a number above zero."
_WINDOWS = re.compile(r"[A-Za-z]:[\\/]|\\\\|\\")
_TOOL_LIKE = re.compile(r"(?<![\w./-])([a-z]+(?:_[a-z]+)+)(?![\w/]|\.\w)")


@value_class
class ProjectFacts:
    """Facts that a plan is checked against."""

    tools: Collection[str]
    """Names that a plan may list."""
    exists: Callable[[str], bool] | None
    """Whether a path, or any path of a glob, is in the project; None: unknown."""


def check_task(
    task: Task, number: int, places: SourceMap, project: ProjectFacts
) -> Iterator[Finding]:
    """Yield the findings of a task; `number` is its 0-based position in the plan."""
    rules = _TaskRules(task, number, places, project)
    yield from rules.fields()
    yield from rules.criteria()
    yield from rules.checks()
    yield from rules.tools()
    yield from rules.paths()


class _TaskRules:
    def __init__(self, task: Task, number: int, places: SourceMap, project: ProjectFacts) -> None:
        self.task = task
        self.project = project
        self.name = f"Task {quote_excerpt(task.id or task.title or f'number {number + 1}')}"
        self._number = number
        self._places = places

    def _at(self, field: str, item: int = -1) -> SourcePosition:
        return self._places.position_of(self._number, field, item)

    def _fault(self, code: str, fault: str, field: str, hint: str = "", n: int = -1) -> Finding:
        """Return a finding of a field of this task, or of the field's item `n`."""
        return make_finding(code, f"{self.name} {fault}.", self._at(field, n), hint)

    def fields(self) -> Iterator[Finding]:
        """Check prompt, roles, estimate and limits."""
        task = self.task
        if not task.prompt.strip():
            hint = "Write the worker's instructions between <prompt> and </prompt>."
            yield self._fault("prompt-missing", "has no prompt", "prompt", hint)
        if not task.worker_role.strip() and not task.agent:
            hint = "Add **Agent Role Description:**."
            yield self._fault("role-missing", "has no worker role", "worker_role", hint)
        if not task.qc_role.strip():
            fault = f"has no QC role: {quote_excerpt(task.reviewer)} is used"
            yield self._fault("qc-role-missing", fault, "qc_role")
        if task.estimated_tool_calls is None:
            fault = "has no estimated tool calls: its limit is 50"
            yield self._fault("estimate-missing", fault, "estimated_tool_calls")
        for field in (
            "estimated_tool_calls",
            "estimated_minutes",
            "max_retries",
            "time_limit_minutes",
        ):
            value: float | None = getattr(task, field)
            # A limit of zero tool calls or minutes would stop the worker at once.
            may_be_zero = field in ("estimated_minutes", "max_retries")
            if value is not None and (value < 0 or (value == 0 and not may_be_zero)):
                fault = f"has an invalid value: {field.replace('_', ' ')} is {value:g}"
                hint = "Write zero or more." if may_be_zero else _POSITIVE
                yield self._fault("number-out-of-range", fault, field, hint)

    def criteria(self) -> Iterator[Finding]:
        """Check that there is a criterion, that ids are unique and points sensible."""
        task = self.task
        if not task.criteria:
            hint = "Add **Verification Criteria:** that the result must fulfil."
            yield self._fault("criteria-missing", "has no criterion", "criteria", hint)
        seen: set[str] = set()
        for n, criterion in enumerate(task.criteria):
            name, at = f"Criterion {quote_excerpt(criterion.id)}", self._at("criteria", n)
            if criterion.id in seen:
                yield make_finding("criterion-duplicate", f"{name} is defined twice.", at, _RENAME)
            seen.add(criterion.id)
            if criterion.points is not None and criterion.points < 0:
                message = f"{name} has {criterion.points} points."
                yield make_finding("criterion-points", message, at, "Write zero or more.")
        # Without any points all criteria weigh the same, and nothing is to be reported.
        given = [one.points for one in task.criteria if one.points is not None]
        total, missing = sum(given, Fraction(0)), len(task.criteria) - len(given)
        if given and (total != 100 or missing):
            without = f", and {missing} criteria have none" if missing else ""
            fault = f"has points that sum to {float(total):g}{without}: they are scaled to 100"
            yield self._fault("points-sum", fault, "criteria")

    def checks(self) -> Iterator[Finding]:
        """Check ids, criteria, timeouts, and that commands can fail."""
        seen: set[str] = set()
        known = {one.id for one in self.task.criteria}
        for n, check in enumerate(self.task.checks):
            name, at = f"Check {quote_excerpt(check.id)}", self._at("checks", n)
            if check.id in seen:
                yield make_finding("check-duplicate", f"{name} is defined twice.", at, _RENAME)
            seen.add(check.id)
            if check.required and not check.criteria:
                hint = "Name them in criteria, or set required: false."
                message = f"{name} decides no criterion."
                yield make_finding("check-without-criterion", message, at, hint)
            for id in check.criteria:
                if id not in known:
                    message = f"{name} names unknown criterion {quote_excerpt(id)}."
                    hint = did_you_mean(id, known) or hint_names(known)
                    yield make_finding("check-criterion-unknown", message, at, hint)
            yield from self._command(check, name, at)
            if check.timeout_seconds <= 0:
                message = f"{name} has a timeout of {check.timeout_seconds:g} seconds."
                yield make_finding("number-out-of-range", message, at, _POSITIVE)
        executed = (c.required and known.intersection(c.criteria) for c in self.task.checks)
        if known and not any(executed):
            field = "checks" if self.task.checks else "criteria"
            fault = "has no required check for any criterion: only QC judges it"
            yield self._fault("check-missing", fault, field, "Add a check whose exit code decides.")

    def _command(self, check: Check, name: str, at: SourcePosition) -> Iterator[Finding]:
        if isinstance(check.run, str) and not _is_split(check.run):
            message = f"{name} has an invalid command: a quote is not closed."
            yield make_finding("check-command", message, at, "Write run as a list of arguments.")
        # Such a check passes for wrong work too: it would be evidence of nothing.
        elif cannot_fail(check.argv):
            shown = check.run if isinstance(check.run, str) else shlex.join(check.run)
            message = f"{name} cannot fail: {quote_excerpt(shown)} always ends with exit code 0."
            yield make_finding(
                "check-vacuous",
                message if shown.strip() else f"{name} has no command.",
                at,
                "Run a command that proves the criteria, and let its exit code decide.",
            )

        elif isinstance(check.run, str):
            for reader in early_readers(check.run):
                message = f"{name} pipes into {quote_excerpt(reader)}, which may end before it has read everything."
                hint = "Let it read to the end: `grep WORDS > /dev/null`, `tail -n`."
                yield make_finding("check-pipe", message, at, hint)

    def tools(self) -> Iterator[Finding]:
        """Check the names in `Tools`, and those in the prose about tools."""
        known = self.project.tools
        for n, name in enumerate(self.task.tools):
            if name not in known:
                hint = did_you_mean(name, known) or hint_names(known)
                fault = f"lists unknown tool {quote_excerpt(name)}"
                yield self._fault("tool-unknown", fault, "tools", hint, n)
        # Prose may contain any word: only one that is nearly a tool's name is reported.
        for name in dict.fromkeys(_TOOL_LIKE.findall(self.task.tool_execution[:20_000])):
            near = did_you_mean(name, known, cutoff=0.6)
            if name not in known and near:
                fault = f"mentions unknown tool {quote_excerpt(name)}"
                yield self._fault("tool-unlikely", fault, "tool_execution", near)

    def paths(self) -> Iterator[Finding]:
        """Check that globs stay inside the workspace, and that protected paths are not written."""
        for field in ("files", "context_files"):
            for n, glob in enumerate(getattr(self.task, field)):
                yield from self._inside(glob, field, n)
        for n, check in enumerate(self.task.checks):
            for glob in (*(check.tests or ()), *check.protect):
                yield from self._inside(glob, "checks", n)
            for path in self._written_though_protected(check):
                fault = (
                    f"may write {quote_excerpt(path)}: check {quote_excerpt(check.id)} protects it"
                )
                hint = "Remove it from files, or from protect."
                yield self._fault("path-protected", fault, "checks", hint, n)
        count = len(self.task.context_files)
        if count > MAX_CONTEXT_FILES:
            fault = f"has {count} context files: the worker gets at most {MAX_CONTEXT_FILES}"
            yield self._fault("context-files-many", fault, "context_files")

    def _inside(self, glob: str, field: str, n: int) -> Iterator[Finding]:
        # Windows paths too: a drive or backslash is no path inside a workspace.
        if not glob.strip() or is_outside(glob) or glob == "~" or _WINDOWS.match(glob):
            fault = f"names a path outside the workspace: {quote_excerpt(glob)}"
            hint = "Write it relative to the project, with '/' and without '..'."
            yield self._fault("path-outside", fault, field, hint, n)

    def _written_though_protected(self, check: Check) -> Iterator[str]:
        """Yield existing paths, and globs of existing paths, that are protected and written."""
        exists = self.project.exists
        if exists is None:
            return
        files = self.task.files
        named = [
            p for p in check.protect if p in files or (not has_wildcard(p) and matches(p, files))
        ]
        named += [p for p in files if not has_wildcard(p) and matches(p, check.protect)]
        for path in dict.fromkeys(named):
            # A new file may be both: the task writes it first, and only then it is protected.
            if not is_outside(path) and exists(path):
                yield path


def _is_split(line: str) -> bool:
    try:
        shlex.split(line)
    except ValueError:
        # Comments, here-documents and $'…' may hold a lone quote; bash accepts them.
        return any(sign in line for sign in "#<$`")
    return True


def hint_names(known: Collection[str]) -> str:
    """Return a suggestion with the known names, at most ten."""
    names = sorted(known)
    more = ", …" if len(names) > 10 else ""
    return f"There are: {', '.join(names[:10])}{more}." if names else "There is none."


def did_you_mean(name: str, known: Collection[str], *, cutoff: float = 0.4) -> str:
    """Return a suggestion with the nearest known name; empty if none is near.

    Args:
        name: The unknown name.
        known: Valid names.
        cutoff: Least similarity, 0 to 1.
    """
    # The time of a comparison grows with the square of the length.
    near = difflib.get_close_matches(name[:200], sorted(known), n=1, cutoff=cutoff)
    return f"Did you mean {near[0]!r}?" if near else ""
