"""A check that was passed stands: on a merged and on the final tree it must pass, also with its own files as they were when it was passed.

Whoever comes later may break what a check looks at, and hide it: by a weaker test, or by settings and hooks that leave the test out. So
where other tasks changed what makes up a check (`find_check_files`) or what its task protects, it runs once more with those files put back.

They stay as they are now where it was asked for: a task that changed the file names that very file in its `files`; a test may also be
named by one of that task's own checks, which judged it. New tests go where settings and hooks go: they may need
them. Tests that were changed as asked may need them too, so there it is enough if the check passes with those tests as they were.
Where others changed what the task made, the check must pass without their new tests, too: one of them may mend it for the others.
"""

from collections.abc import Awaitable, Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Protocol

from mimir.domain.evidence import CheckOutcome, CheckRun
from mimir.domain.globs import matches
from mimir.domain.plan import Check, Task
from mimir.qc.checks.check_execution import Phase
from mimir.qc.checks.journaled_checks import CheckExecutor
from mimir.qc.integrity.check_files import (
    CheckFiles,
    configures_runner,
    find_check_files,
    is_declared_file,
)
from mimir.qc.integrity.recipes import expand_recipes
from mimir.qc.integrity.runner_output import compare_counts, count_tests
from mimir.qc.integrity.shadow_modules import add_shadow_modules
from mimir.qc.integrity.supervision import NOT_ENDED, may_be_ended, own_programs, with_shims
from mimir.qc.integrity.test_counts import TestCounts
from mimir.store.schema import well_formed


class Change(Protocol):
    """One file that differs between two trees."""

    @property
    def path(self) -> str:
        """Relative, as git writes it."""
        ...

    @property
    def status(self) -> str:
        """`added`, `modified` or `deleted`."""
        ...


class Trees(Protocol):
    """Trees, by their git ids."""

    async def diff_trees(self, a: str, b: str, /) -> Sequence[Change]:
        """Return the files that differ from `a` to `b`."""
        ...

    async def with_files(self, tree: str, from_tree: str, globs: Sequence[str], /) -> str:
        """Return `tree` with all paths that `globs` name as they are in `from_tree`, missing ones removed."""
        ...

    async def paths(self, tree: str, globs: Sequence[str], /) -> Sequence[str]:
        """Return the paths of `tree` that `globs` name."""
        ...


Before = Callable[[Check, str], Awaitable[CheckRun]]


@dataclass(frozen=True, slots=True, kw_only=True)
class AcceptedTask:
    """A completed task with what its accepted verdict counted."""

    task: Task
    attempt: int
    answer: str
    """For its checks; empty: it has none."""
    passed: frozenset[str]
    """Ids of its checks that were counted as passed."""
    changed: frozenset[str] = frozenset()
    """Paths that its deliverable changed, as the store keeps them (`well_formed`)."""
    tree: str = ""
    """On which it was accepted, merged with the work of others; empty: in another run."""
    told: Mapping[str, TestCounts] = field(default_factory=dict[str, TestCounts])
    """Check → the tests that its runner spoke of then; of those that count tests."""


def reported_counts(outcomes: Iterable[CheckOutcome]) -> Mapping[str, TestCounts]:
    """Return what the runners of an attempt's checks spoke of on its deliverable, as `AcceptedTask.told`."""
    found = {one.check: count_tests(one.again or one.after) for one in outcomes}
    return {check: one for check, one in found.items() if one is not None}


async def run_on_tree(
    execution: CheckExecutor,
    trees: Trees,
    mine: AcceptedTask,
    check: Check,
    tree: str,
    others: Iterable[AcceptedTask],
    phase: Phase,
    before: Before,
) -> tuple[CheckRun, ...]:
    """Run a check of an accepted task on a merged or final tree, made now; the last run decides.

    Args:
        execution: Runs it.
        trees: Where trees come from.
        mine: Whose check it is.
        check: A required one that is red runs twice: red means that it fails twice (`rule.red`).
        tree: The tree.
        others: Tasks that are accepted too, or are about to be.
        phase: Of the runs.
        before: Runs a command on a tree that nobody changes any more.
    """

    async def run(on: str, *, again: bool = False) -> CheckRun:
        ran = await execution.run(check, on, phase, answer=mine.answer, again=again)
        ran = compare_counts(ran, mine.told.get(check.id), was_green=True)
        return await confirm_completion(execution, check, ran, mine.answer, work, was=mine.tree)

    others = tuple(others)
    work = {path for one in (mine, *others) for path in one.changed}
    first = await run(tree)
    if not check.required:
        return (first,)
    runs = [first]
    if not first.green:
        runs.append(await run(tree, again=True))
    if not runs[-1].green or check.id not in mine.passed:
        return tuple(runs)
    put_back = await _restored_trees(before, trees, mine, check, tree, others)
    for kept in put_back:
        runs.append(replace(await run(kept), stands_for=tree))
        if runs[-1].green:
            return tuple(runs)
    if put_back:
        runs.append(replace(await run(put_back[-1], again=True), stands_for=tree))
    return tuple(runs)


async def confirm_completion(
    execution: CheckExecutor,
    check: Check,
    ran: CheckRun,
    answer: str,
    work: Iterable[str],
    *,
    was: str,
) -> CheckRun:
    """Return a green run as it is; as cut short, if a program of it was ended before it came to its end, and on the tree `was` it was not.

    Args:
        execution: Runs checks.
        check: Whose run it is.
        ran: The run.
        answer: Of whose work it is.
        work: Paths that were changed on its tree.
        was: Where the check was green before; empty: nowhere.
    """
    if not ran.green or ran.tree == was or not may_be_ended(check.argv):
        return ran
    own = own_programs(check, work)
    if not await _ends_early(execution, check, ran.tree, ran.phase, answer, own):
        return ran
    if was and await _ends_early(execution, check, was, "before", "", own):
        return ran
    return replace(ran, cut_short=True)


async def _ends_early(
    execution: CheckExecutor, check: Check, tree: str, phase: Phase, answer: str, own: Sequence[str]
) -> bool:
    """True if a program of a check does not come to its end: one that it names, or one that others start for it.

    The check is red twice with shims that watch, and green with shims that do not: else it cannot be told.
    """

    async def run(*, plain: bool = False, again: bool = False) -> CheckRun:
        seen = replace(
            check,
            run=with_shims(check.argv, own, plain=plain),
            timeout_seconds=check.timeout_seconds * _LONGER,
        )
        return await execution.run(seen, tree, phase, answer=answer, again=again)

    cannot_tell = (0, NOT_ENDED, None)
    return (
        (await run()).exit_code not in cannot_tell
        and (await run(plain=True)).green
        and (await run(again=True)).exit_code not in cannot_tell
    )


_LONGER = 3
"""Each Python starts twice, or three times, where there are shims."""


async def _restored_trees(
    before: Before,
    trees: Trees,
    mine: AcceptedTask,
    check: Check,
    tree: str,
    others: Sequence[AcceptedTask],
) -> list[str]:
    """Return the trees with the check's own files as they were, one of which must pass; none: nobody changed them unasked."""
    if not mine.tree or not any(one.changed for one in others if one.task.id != mine.task.id):
        return []
    found = await expand_recipes(check, lambda one: before(one, mine.tree))
    theirs = {path for one in others if one.task.id != mine.task.id for path in one.changed}
    found = await add_shadow_modules(found, theirs, tree, trees.paths)
    # What its task protects is as much part of it as its tests are.
    protect = [glob for one in mine.task.checks for glob in one.protect]
    found = replace(found, tests=(*found.all_tests, *protect))
    authors = _find_authors(mine, found, others)
    if not authors:
        return []
    status = {
        change.path: change.status
        for change in await trees.diff_trees(mine.tree, tree)
        if well_formed(change.path) in authors
    }
    back, more = _find_undeclared_changes(found, authors, status)
    if not back and _is_remade(mine, found, others):
        # A runner loads new tests with the old ones, which may pass only beside them.
        new = {p for p in status if status[p] == "added" and found.collects(p)}
        back = frozenset[str]() if any(path in found.tests for path in new) else frozenset(new)
    wanted = [back, *([back | more] if more - back else [])]
    return [await trees.with_files(tree, mine.tree, sorted(paths)) for paths in wanted if paths]


def _find_authors(
    mine: AcceptedTask, found: CheckFiles, others: Iterable[AcceptedTask]
) -> Mapping[str, list[Task]]:
    """Return who else changed files that may belong to a check, by path."""
    authors: dict[str, list[Task]] = {}
    for other in others:
        if other.task.id != mine.task.id:
            for path in other.changed:
                if matches(path, found.tests) or configures_runner(found, path):
                    authors.setdefault(path, []).append(other.task)
    return authors


def _is_remade(mine: AcceptedTask, found: CheckFiles, others: Iterable[AcceptedTask]) -> bool:
    """True if somebody else has changed what a task made, its tests left out."""
    made = {path for path in mine.changed if not matches(path, found.tests)}
    return any(
        not made.isdisjoint(other.changed) for other in others if other.task.id != mine.task.id
    )


def _find_undeclared_changes(
    found: CheckFiles, authors: Mapping[str, list[Task]], status: Mapping[str, str]
) -> tuple[frozenset[str], frozenset[str]]:
    """Return what has to be put back, and what else has to be where that holds new tests or settings."""

    def nobody(path: str, asked: Callable[[str, Task], bool]) -> bool:
        return not any(asked(path, task) for task in authors[well_formed(path)])

    new = {path for path, how in status.items() if how == "added"}
    steering = {path for path in status if configures_runner(found, path, is_new=path in new)}
    tests = {path for path in status if matches(path, found.tests)} - steering
    weaker = {path for path in tests - new if nobody(path, _is_declared_test)}
    steering = {
        p for p in steering if nobody(p, lambda path, task: is_declared_file(path, task.files))
    }
    if not weaker and not steering:
        return frozenset(), frozenset()
    return frozenset(weaker | steering | (tests & new)), frozenset(tests)


def _is_declared_test(path: str, task: Task) -> bool:
    """True if a task was to change a test: it names the file, or was judged by that very file."""
    judged = (find_check_files(check).tests for check in task.checks)
    return path in task.files or any(path in tests for tests in judged)
