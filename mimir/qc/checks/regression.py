"""Regression checks: a passed check must pass on every merged tree and on the final tree.

Later work may break the subject of a check and hide it, by a weaker test or by settings and hooks that skip the test. So where other
tasks changed the check files or what the task protects, the check runs once more with those files put back.

A file stays as it is now if its change was requested: the other task names the very file in its `files`, or, for a test, in a check of
its own. New tests are put back with settings and hooks, because they may need them. Tests that were changed on request may need
them too, so there the check passes if it passes with those tests as they were. Where others changed what the task made, the check must
pass without their new tests as well: one of them may repair it for the others.
"""

from collections.abc import Awaitable, Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import partial

from mimir.domain.evidence import CheckOutcome, CheckRun
from mimir.domain.globs import has_wildcard, matches
from mimir.domain.plan import Check, Task
from mimir.domain.test_results import TestResults
from mimir.qc.checks.check_execution import Phase, TreeReader
from mimir.qc.checks.journaled_checks import CheckExecutor
from mimir.qc.controls.control_runner import ControlCase
from mimir.qc.integrity.check_files import (
    CheckFiles,
    configures_runner,
    find_check_files,
    is_declared_file,
)
from mimir.qc.integrity.further_files import find_all_files
from mimir.qc.results.comparison import confirm_results
from mimir.store.schema import well_formed

RunBefore = Callable[[Check, str], Awaitable[CheckRun]]


@dataclass(frozen=True, slots=True, kw_only=True)
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
    trees: TreeReader,
    mine: AcceptedTask,
    check: Check,
    tree: str,
    others: Iterable[AcceptedTask],
    phase: Phase,
    before: RunBefore,
    *,
    controlled: bool = False,
) -> tuple[CheckRun, ...]:
    """Run a check of an accepted task on a merged or final tree; the last run decides.

    `others` are accepted too, or about to be. `before` runs a command on an unchanging tree, once. `controlled`: a green run of which only
    the exit code is known must also fail with changed expectations, because work of others is in the tree.
    """

    async def run(on: str, *, again: bool = False) -> CheckRun:
        result = await execution.run(check, on, phase, answer=mine.answer, again=again)
        result = confirm_results(result, mine.results.get(check.id), named)
        if controlled and theirs and check.id in mine.passed and on != mine.tree:
            return await _confirm_by_control(execution, check, result, mine, theirs)
        return result

    others = tuple(others)
    # Only the very name of a file lets another task remove tests that decided.
    named = [path for one in others for path in one.task.files if not has_wildcard(path)]
    theirs = {path for one in others if one.task.id != mine.task.id for path in one.changed}
    first = await run(tree)
    # A check that decided nothing cannot become red, so one run is enough for the report.
    if not check.required or check.id not in mine.passed:
        return (first,)
    runs = [first]
    if not first.green:
        # Red means two failures on one tree (`is_red`).
        runs.append(await run(tree, again=True))
    if not runs[-1].green:
        return tuple(runs)
    restored = await _restored_trees(before, trees, mine, check, tree, others)
    for one in restored:
        runs.append(replace(await run(one), stands_for=tree))
        if runs[-1].green:
            return tuple(runs)
    if restored:
        runs.append(replace(await run(restored[-1], again=True), stands_for=tree))
    return tuple(runs)


async def _confirm_by_control(
    execution: CheckExecutor,
    check: Check,
    run: CheckRun,
    mine: AcceptedTask,
    theirs: Collection[str],
) -> CheckRun:
    """Return a green run, as cut short if its check cannot fail on this tree."""
    if not run.green or (run.results is not None and not run.results.fallback):
        return run
    case = ControlCase(
        check=check,
        kind=check.kind or "hold",
        before=run,
        after=run,
        base_tree=mine.tree or run.tree,
        changed=sorted(theirs),
        answer=mine.answer,
    )
    control = (await execution.control(case)).control
    is_insensitive = control is not None and control.state == "insensitive"
    return replace(run, cut_short=True) if is_insensitive else run


async def _restored_trees(
    before: RunBefore,
    trees: TreeReader,
    mine: AcceptedTask,
    check: Check,
    tree: str,
    others: Sequence[AcceptedTask],
) -> list[str]:
    """Return trees with the check files put back, one of which must pass; empty: no need."""
    others = [one for one in others if one.task.id != mine.task.id]
    theirs = {path for one in others for path in one.changed}
    if not mine.tree or not theirs:
        return []
    found = await find_all_files(
        check, lambda one: before(one, mine.tree), theirs, partial(trees.paths, tree)
    )
    # Protected files are part of a check as its tests are.
    protect = [glob for one in mine.task.checks for glob in one.protect]
    found = replace(found, tests=(*found.all_tests, *protect))
    authors = _find_authors(found, others)
    if not authors:
        return []
    status = {
        change.path: change.status
        for change in await trees.diff_trees(mine.tree, tree)
        # Only files that other tasks changed: the task's own state of a file is accepted.
        if well_formed(change.path) in authors
    }
    undeclared, new_tests = _find_undeclared_changes(found, authors, status)
    made = {path for path in mine.changed if not matches(path, found.tests)}
    if not undeclared and not made.isdisjoint(theirs):
        # A runner loads new tests with the old ones, which may pass only together with them.
        new = {p for p in status if status[p] == "added" and found.collects(p)}
        undeclared = frozenset(() if any(path in found.tests for path in new) else new)
    wanted = [undeclared]
    if new_tests - undeclared:
        wanted.append(undeclared | new_tests)
    return [await trees.with_files(tree, mine.tree, sorted(paths)) for paths in wanted if paths]


def _find_authors(found: CheckFiles, others: Iterable[AcceptedTask]) -> Mapping[str, list[Task]]:
    """Return the tasks that changed files of a check, by path."""
    authors: dict[str, list[Task]] = {}
    for other in others:
        for path in other.changed:
            if matches(path, found.tests) or configures_runner(found, path):
                authors.setdefault(path, []).append(other.task)
    return authors


def _find_undeclared_changes(
    found: CheckFiles, authors: Mapping[str, list[Task]], status: Mapping[str, str]
) -> tuple[frozenset[str], frozenset[str]]:
    """Return the paths to put back, and those to add if these hold new tests or settings."""

    def is_undeclared(path: str, is_declared: Callable[[str, Task], bool]) -> bool:
        return not any(is_declared(path, task) for task in authors[well_formed(path)])

    new = {path for path, how in status.items() if how == "added"}
    steering = {path for path in status if configures_runner(found, path, is_new=path in new)}
    tests = {path for path in status if matches(path, found.tests)} - steering
    weaker = {path for path in tests - new if is_undeclared(path, _is_declared_test)}
    steering = {
        p
        for p in steering
        if is_undeclared(p, lambda path, task: is_declared_file(path, task.files))
    }
    if not weaker and not steering:
        return frozenset(), frozenset()
    return frozenset(weaker | steering | (tests & new)), frozenset(tests)


def _is_declared_test(path: str, task: Task) -> bool:
    """True if a task declares a test: its `files` or one of its checks name the file."""
    judged = (find_check_files(check).tests for check in task.checks)
    return path in task.files or any(path in tests for tests in judged)
