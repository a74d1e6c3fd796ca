"""Regression checks: a passed check must pass on every merged tree and on the final tree.

Only the owner of a test, and tasks whose `files` name a setting, can change it (`scope`). A task that began before the tests of another one
were there can still add tests, settings and modules that repair for these tests what it broke. So where that is possible, the
check runs once more without them.
"""

import contextlib
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import field, replace

from mimir.domain.evidence import CheckOutcome, CheckRun
from mimir.domain.globs import has_wildcard, matches
from mimir.domain.plan import Check, Task
from mimir.domain.test_results import TestResults
from mimir.domain.value_class import value_class
from mimir.errors import RecordingMiss
from mimir.qc.checks.check_execution import Phase
from mimir.qc.checks.earlier_tests import is_code
from mimir.qc.checks.journaled_checks import CheckExecutor
from mimir.qc.controls.control_case import ControlCase
from mimir.qc.integrity.check_files import CheckFiles, find_check_files, is_declared_file
from mimir.qc.results.comparison import adds_failures, confirm_results
from mimir.qc.scope.check_surface import is_config
from mimir.qc.scope.module_shadows import name_module
from mimir.store.schema import well_formed
from mimir.workspace.git.history import GitHistory


@value_class
class AcceptedTask:
    """A completed task with what its accepted verdict counted."""

    task: Task
    attempt: int
    answer: str
    """Closing answer, for its checks; empty: none."""
    passed: frozenset[str]
    """Ids of its checks that counted as passed."""
    changed: frozenset[str] = frozenset()
    """Paths that its deliverable changed, in stored form (`well_formed`)."""
    tree: str = ""
    """Tree on which it was accepted, merged with other work; empty: in another run."""
    results: Mapping[str, TestResults] = field(default_factory=dict[str, TestResults])
    """Results of single tests then, by check; only checks with a known test runner."""
    broken: Mapping[str, str] = field(default_factory=dict[str, str])
    """Its required checks that could not have worked, each with the reason."""


def accepted_results(outcomes: Iterable[CheckOutcome]) -> Mapping[str, TestResults]:
    """Return the results of the checks of a deliverable, as `AcceptedTask.results`."""
    found = {one.check: (one.again or one.after).results for one in outcomes}
    return {check: results for check, results in found.items() if results is not None}


class RegressionCheck:
    """Check of an accepted task on a merged or final tree, with work of others."""

    def __init__(
        self,
        execution: CheckExecutor,
        history: GitHistory,
        mine: AcceptedTask,
        check: Check,
        others: Sequence[AcceptedTask],
        phase: Phase,
        *,
        controlled: bool = False,
    ) -> None:
        """Bind the check.

        `others` are accepted too, or about to be. `controlled`: a green run of which only the exit code is known must also fail with
        changed expectations.
        """
        self._execution = execution
        self._history = history
        self._mine = mine
        self._check = check
        self._phase: Phase = phase
        self._authors: dict[str, list[Task]] = {}
        """Path that others changed → their tasks."""
        for other in others:
            for path in other.changed if other.task.id != mine.task.id else ():
                self._authors.setdefault(path, []).append(other.task)
        # Only the very name of a file lets another task remove tests that decided.
        self._named = [path for one in others for path in one.task.files if not has_wildcard(path)]
        self._is_controlled = controlled and bool(self._authors) and check.id in mine.passed

    async def run(self, tree: str) -> tuple[CheckRun, ...]:
        """Run the check on a tree; the last run decides."""
        first = await self._run(tree)
        # A check that decided nothing cannot become red, so one run is enough for the report.
        if not self._check.required or self._check.id not in self._mine.passed:
            return (first,)
        # Red means two failures on one tree.
        runs = [first] if first.green else [first, await self._run(tree, again=True)]
        earlier = await self._without_new_files(tree) if runs[-1].green else ""
        if earlier:
            older = await self._run(earlier)
            if not older.green and adds_failures(older, self._accepted) is False:
                return tuple(runs)
            more = [older] if older.green else [older, await self._run(earlier, again=True)]
            runs += [replace(one, stands_for=tree) for one in more]
        return tuple(runs)

    @property
    def _accepted(self) -> TestResults | None:
        return self._mine.results.get(self._check.id)

    async def _run(self, tree: str, *, again: bool = False) -> CheckRun:
        answer = self._mine.answer
        run = await self._execution.run(self._check, tree, self._phase, answer=answer, again=again)
        run = confirm_results(run, self._accepted, self._named)
        # Code of others that tests load may forge their report.
        is_reported = run.results is not None and not run.results.fallback
        may_forge = not is_reported or any(map(is_code, self._authors))
        if self._is_controlled and tree != self._mine.tree and run.green and may_forge:
            return await self._confirm_by_control(run)
        return run

    async def _confirm_by_control(self, run: CheckRun) -> CheckRun:
        """Return a green run, as cut short if its check cannot fail on this tree."""
        mine, theirs = self._mine, self._authors.keys()
        # A recording of an earlier version may not have the control.
        with contextlib.suppress(RecordingMiss):
            new = await self._history.diff_trees(mine.tree, run.tree) if mine.tree else ()
            changed = theirs & {well_formed(one.path) for one in new}
            case = ControlCase(
                check=self._check,
                kind=self._check.kind or "hold",
                before=run,
                after=run,
                base_tree=mine.tree or run.tree,
                changed=sorted(changed if mine.tree else theirs),
                answer=mine.answer,
            )
            control = (await self._execution.control(case)).control
            if control is not None and control.state == "insensitive":
                return replace(run, cut_short=True)
        return run

    async def _without_new_files(self, tree: str) -> str:
        """Return the tree without what others added; empty: they cannot have repaired anything."""
        mine, authors = self._mine, self._authors
        if not mine.tree or not authors:
            return ""
        found = find_check_files(self._check)
        names = Counter(map(name_module, authors))
        helpers = {
            path
            for path, tasks in authors.items()
            if _may_repair(found, path, names) and not any(_names(one, path) for one in tasks)
        }
        made = {path for path in mine.changed if not matches(path, found.tests)}
        # A task that leaves alone what this one made cannot have broken it.
        is_touched = bool(helpers) or not made.isdisjoint(authors)
        tests = {path for path in authors if is_touched and found.collects(path)}
        if not helpers and not tests:
            return ""
        new = {
            change.path
            for change in await self._history.diff_trees(mine.tree, tree)
            if change.status == "added" and well_formed(change.path) in helpers | tests
        }
        # A test that the check names by its path is what the check is about.
        if not new or any(path in found.tests for path in new):
            return ""
        return await self._history.with_files(tree, mine.tree, sorted(new))


def _may_repair(found: CheckFiles, path: str, names: Mapping[str, int]) -> bool:
    """True for settings, and for a module next to tests with the name of another changed one."""
    is_double = (
        name_module(path) != "" and names[name_module(path)] > 1 and matches(path, found.all_tests)
    )
    return is_config(path) or matches(path, found.tools) or is_double


def _names(task: Task, path: str) -> bool:
    return path in task.files or is_declared_file(path, task.files)
