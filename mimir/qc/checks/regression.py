"""Regression checks: a passed check must pass on every merged tree and on the final tree.

Only the owner of a test, and tasks whose `files` name a setting, can change it (`scope`). A task that began before the tests of another one
were there can still add tests, settings and modules that repair for these tests what it broke. So where that is possible, the
check runs once more without them.
"""

import contextlib
from collections import Counter
from collections.abc import Collection, Iterable, Mapping, Sequence
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


async def run_on_tree(
    execution: CheckExecutor,
    trees: GitHistory,
    mine: AcceptedTask,
    check: Check,
    tree: str,
    others: Iterable[AcceptedTask],
    phase: Phase,
    *,
    controlled: bool = False,
) -> tuple[CheckRun, ...]:
    """Run a check of an accepted task on a merged or final tree; the last run decides.

    `others` are accepted too, or about to be. `controlled`: a green run of which only the exit code is known must also fail with changed
    expectations, because work of others is in the tree.
    """

    async def run(on: str, *, again: bool = False) -> CheckRun:
        result = await execution.run(check, on, phase, answer=mine.answer, again=again)
        result = confirm_results(result, mine.results.get(check.id), named)
        if is_controlled and on != mine.tree and _may_forge(result, theirs):
            return await _confirm_by_control(execution, trees, check, result, mine, theirs)
        return result

    others = tuple(others)
    # Only the very name of a file lets another task remove tests that decided.
    named = [path for one in others for path in one.task.files if not has_wildcard(path)]
    theirs = {path for one in others if one.task.id != mine.task.id for path in one.changed}
    is_controlled = controlled and theirs and check.id in mine.passed
    first = await run(tree)
    # A check that decided nothing cannot become red, so one run is enough for the report.
    if not check.required or check.id not in mine.passed:
        return (first,)
    runs = [first]
    if not first.green:
        # Red means two failures on one tree.
        runs.append(await run(tree, again=True))
    if not runs[-1].green:
        return tuple(runs)
    earlier = await _without_new_files(trees, mine, check, tree, others)
    if earlier:
        older = replace(await run(earlier), stands_for=tree)
        if not older.green and adds_failures(older, mine.results.get(check.id)) is False:
            return tuple(runs)
        runs.append(older)
        if not older.green:
            runs.append(replace(await run(earlier, again=True), stands_for=tree))
    return tuple(runs)


def _may_forge(run: CheckRun, theirs: Collection[str]) -> bool:
    """True if work of others may be why a check is green.

    Code that tests load may forge their report.
    """
    is_reported = run.results is not None and not run.results.fallback
    return run.green and (not is_reported or any(map(is_code, theirs)))


async def _confirm_by_control(
    execution: CheckExecutor,
    trees: GitHistory,
    check: Check,
    run: CheckRun,
    mine: AcceptedTask,
    theirs: Collection[str],
) -> CheckRun:
    """Return a green run, as cut short if its check cannot fail on this tree."""
    # A recording of an earlier version may not have the control.
    with contextlib.suppress(RecordingMiss):
        new = await trees.diff_trees(mine.tree, run.tree) if mine.tree else ()
        changed = {well_formed(one.path) for one in new}.intersection(theirs)
        case = ControlCase(
            check=check,
            kind=check.kind or "hold",
            before=run,
            after=run,
            base_tree=mine.tree or run.tree,
            changed=sorted(changed if mine.tree else theirs),
            answer=mine.answer,
        )
        control = (await execution.control(case)).control
        if control is not None and control.state == "insensitive":
            return replace(run, cut_short=True)
    return run


async def _without_new_files(
    trees: GitHistory,
    mine: AcceptedTask,
    check: Check,
    tree: str,
    others: Sequence[AcceptedTask],
) -> str:
    """Return the tree without what others added; empty: they cannot have repaired anything."""
    authors: dict[str, list[Task]] = {}
    for other in others:
        if other.task.id != mine.task.id:
            for path in other.changed:
                authors.setdefault(path, []).append(other.task)
    if not mine.tree or not authors:
        return ""
    found = find_check_files(check)
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
        for change in await trees.diff_trees(mine.tree, tree)
        if change.status == "added" and well_formed(change.path) in helpers | tests
    }
    # A test that the check names by its path is what the check is about.
    if not new or any(path in found.tests for path in new):
        return ""
    return await trees.with_files(tree, mine.tree, sorted(new))


def _may_repair(found: CheckFiles, path: str, names: Mapping[str, int]) -> bool:
    """True for settings, and for a module next to tests with the name of another changed one."""
    is_double = (
        name_module(path) != "" and names[name_module(path)] > 1 and matches(path, found.all_tests)
    )
    return is_config(path) or matches(path, found.tools) or is_double


def _names(task: Task, path: str) -> bool:
    return path in task.files or is_declared_file(path, task.files)
