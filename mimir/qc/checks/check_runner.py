"""Checks before and after the work: the trees they run on, and the order of the runs.

The run *before* sees the task's first base with the deliverable's files that make up the check. The run *after* sees the deliverable
with the task's protected files as they were; a pattern that matches nothing in the base protects nothing. `decide_check` decides what
the runs prove, `check_files` which files make up a check, and `earlier_tests` when the older tests must pass alone as well.
"""

import asyncio
import contextlib
import json
from collections.abc import Collection, Iterable, Sequence
from dataclasses import replace

from mimir.domain.actor import CURRENT_ACTOR
from mimir.domain.evidence import CheckOutcome, CheckRun
from mimir.domain.globs import has_wildcard, matches
from mimir.domain.plan import Check, Task
from mimir.errors import RecordingMiss
from mimir.qc.checks.check_execution import Phase
from mimir.qc.checks.check_target import CheckTarget
from mimir.qc.checks.decision_table import decide_check, kind_of, needs_second_run
from mimir.qc.checks.earlier_tests import (
    FINDING,
    CheckChanges,
    describe_protected,
    find_changed_tests,
    is_code,
    list_new_tests,
    list_weaker_tests,
    loses_only_tests,
)
from mimir.qc.checks.journaled_checks import CheckExecutor
from mimir.qc.checks.regression import AcceptedTask, RegressionCheck
from mimir.qc.controls.control_case import ControlCase
from mimir.qc.integrity.check_files import find_check_files, is_named, is_work, says_it_tests
from mimir.qc.results.comparison import adds_failures, complete_results, confirm_results
from mimir.qc.results.request import lists_tests
from mimir.qc.scope.test_owners import NO_PENDING_TESTS, PendingTests
from mimir.workspace.aio import await_all
from mimir.workspace.git.history import GitHistory


class CheckRunner:
    """Runner of the checks of a run's tasks."""

    def __init__(
        self,
        history: GitHistory,
        execution: CheckExecutor,
        *,
        is_replay: bool = False,
    ) -> None:
        """Bind the runner.

        Args:
            history: Reader of trees.
            execution: Executor of all runs that a decision uses.
            is_replay: True: the recording says which process made each run, so none is reused here.
        """
        self._history = history
        self._execution = execution
        self._is_replay = is_replay
        self._known: dict[str, CheckRun] = {}
        self._locks: dict[str, asyncio.Lock] = {}

    async def prepare(self, task: Task, base_tree: str) -> tuple[CheckRun, ...]:
        """Make the runs before the work whose files exist already, before the first model call.

        They are in the plan's order. A `missing` one names a program that this machine lacks.
        """

        async def run(check: Check) -> CheckRun | None:
            # Patterns are those of a runner: tests may stand elsewhere, as in Rust's sources.
            named = [path for path in find_check_files(check).tests if not has_wildcard(path)]
            if named and not await self._history.paths(base_tree, named):
                return None
            return await self._before(check, base_tree)

        runs = await await_all(run(check) for check in task.checks)
        return tuple(_correct_missing(run, task) for run in runs if run is not None)

    async def outcomes(self, target: CheckTarget) -> tuple[CheckOutcome, ...]:
        """Run every check of a task on a deliverable; one outcome a check, in the plan's order.

        Raises:
            Paused: The sandbox or the disk failed.
        """
        changes = await self._history.diff_trees(target.own_base, target.tree)
        found = {one.path: one.status for one in changes}
        target = replace(target, status={p: found[p] for p in target.changed if p in found})
        return tuple(await await_all(self._decided(one, target) for one in target.task.checks))

    async def _decided(self, check: Check, target: CheckTarget) -> CheckOutcome:
        """Return the outcome of a check; without pending tests, if these may be why it is red."""
        outcome = await self._outcome(check, target)
        pending = target.pending
        paths = [path for path in pending.paths if path not in target.status]
        if outcome.state == "passed" or not paths or outcome.kind == "flip":
            return outcome
        trees = (target.first_base, target.own_base, target.tree)
        first, own, tree = [await self._with(one, pending.base, paths) for one in trees]
        if tree == target.tree:
            return outcome
        hidden = replace(target, first_base=first, own_base=own, tree=tree)
        second = await self._outcome(check, hidden)
        return second if second.state == "passed" else outcome

    async def control(self, case: ControlCase) -> CheckRun:
        """Run the control of a passed check.

        Raises:
            Paused: The sandbox or the disk failed.
        """
        return await self._execution.control(case)

    async def on_tree(
        self,
        accepted: AcceptedTask,
        check: Check,
        tree: str,
        others: Iterable[AcceptedTask],
        *,
        phase: Phase,
        pending: PendingTests = NO_PENDING_TESTS,
        controlled: bool = False,
    ) -> tuple[CheckRun, ...]:
        """Run a check of an accepted task on a merged or final tree; the last run decides."""
        others = tuple(others)

        async def run(mine: AcceptedTask, on: str) -> tuple[CheckRun, ...]:
            place = (self._execution, self._history, mine, check, others, phase)
            return await RegressionCheck(*place, controlled=controlled).run(on)

        runs = await run(accepted, tree)
        if runs[-1].green or check.kind == "flip":
            return runs
        hidden = await self._with(tree, pending.base, pending.paths)
        if hidden == tree:
            return runs
        was = accepted.tree and await self._with(accepted.tree, pending.base, pending.paths)
        more = await run(replace(accepted, tree=was), hidden)
        return (*runs, *(replace(one, stands_for=tree) for one in more))

    async def _outcome(self, check: Check, target: CheckTarget) -> CheckOutcome:
        changes = find_changed_tests(find_check_files(check), target)
        after_tree = await self._with(target.tree, target.own_base, changes.protected)
        # A test that cannot fail passes here as well, and so proves nothing.
        before_tree = await self._before_tree(check, changes, target, after_tree)
        before = _correct_missing(await self._before(check, before_tree), target.task)
        if check.kind == "hold" and not before.green:
            before = await self._before_new_tests(check, target, before, ("added",))
        if check.kind == "flip" and before.green and changes.reached:
            # `make test` passes on the old project: it is to flip by the tests that come with the work.
            before = await self._before_reached(check, changes, target, (before_tree, after_tree))
        after = await self._execution.run(check, after_tree, "after", answer=target.answer)
        then = await self._complete_results(check, changes, target, before, after)
        after = _confirm(check, target, then, after)
        if check.kind == "hold" and not (before.green or after.green):
            # Only now: a test that an earlier task changed need not run under its old name.
            before = await self._before_new_tests(check, target, before, ("added", "modified"))
            # The attempt's own tests are red: that is a failure of the work, which may be corrected.
            base = await self._before(check, target.first_base)
            before = base if base.green or not adds_failures(after, base.results) else before
        notes = describe_protected(changes)
        if after.green and (kind_of(check, before) == "hold" or not before.green):
            earlier = await self._run_earlier_tests(check, changes, target, before, after)
            if earlier and not earlier.green:
                after, notes = earlier, (*notes, FINDING)
        again: CheckRun | None = None
        on_base = await self._is_base_run(check, target, before, after)
        if needs_second_run(check, before, after, on_base=on_base):
            again = await self._again(check, target, then, after.tree)
        for _ in range(1, target.green_runs if after.green else 0):
            again = await self._again(check, target, then, after.tree)
            if not again.green:
                break
        # `make test` starts many tests: those of the attempt count only if the check was red.
        is_new_evidence = changes.reached and not before.green and after.results is not None
        return decide_check(
            check,
            before,
            after,
            again,
            on_base=on_base,
            self_authored=bool(changes.tests or changes.beside or is_new_evidence),
            notes=notes,
        )

    async def _before_new_tests(
        self, check: Check, target: CheckTarget, before: CheckRun, made: Collection[str]
    ) -> CheckRun:
        """Return the run before without tests that earlier tasks made, if that is green.

        Those are red on purpose: they excuse no other test.
        """
        base = target.pending.base
        # A recording of an earlier version does not have the comparison.
        with contextlib.suppress(RecordingMiss):
            changes = await self._history.diff_trees(base, target.first_base) if base else ()
            new = [
                change.path
                for change in changes
                if change.status in made
                and says_it_tests(change.path)
                and change.path not in target.status
            ]
            if new:
                older = await self._before(check, await self._with(target.first_base, base, new))
                return older if older.green else before
        return before

    async def _run_earlier_tests(
        self,
        check: Check,
        changes: CheckChanges,
        target: CheckTarget,
        before: CheckRun,
        after: CheckRun,
    ) -> CheckRun | None:
        """Run a green check with the tests as they were; None: the attempt left them alone."""
        paths = list_weaker_tests(changes, target) if before.green else []
        paths = [path for path in paths if not await self._only_loses_tests(path, target)]
        if paths and not (await self._before(check, target.first_base)).green:
            paths = []
        trees = before.tree, after.tree
        if paths and not (await self._before_reached(check, changes, target, trees)).green:
            paths = []  # The changed tests ask for more than the old work does.
        if not paths and (paths := list_new_tests(changes, target)):
            older = await self._history.paths(target.own_base, changes.found.all_tests)
            if not any(
                changes.found.collects(p) and target.status.get(p) != "deleted" for p in older
            ):
                return None
        if not paths:
            return None
        tree = await self._with(after.tree, target.own_base, paths)
        earlier = await self._execution.run(check, tree, "after", answer=target.answer)
        found = earlier.results
        if found and not (found.problem or found.fallback or found.counted or earlier.green):
            # `go test -run TestNew` selects only new tests: without them it says nothing about the work.
            base = await self._before(check, target.own_base)
            if not (base.green or (base.results and base.results.counted)):
                return None
        if earlier.results and not earlier.green:
            base = await self._before(check, target.own_base)
            is_held = base.green and adds_failures(earlier, base.results) is False
            return None if is_held else earlier
        return earlier

    async def _only_loses_tests(self, path: str, target: CheckTarget) -> bool:
        """True if the task's `files` name a test file, and the attempt removes whole tests alone."""
        if not is_named(path, target.task.files):
            return False
        old, new = [await self._history.file(one, path) for one in (target.own_base, target.tree)]
        return is_code(path) and loses_only_tests(old or b"", new or b"")

    async def _before_reached(
        self, check: Check, changes: CheckChanges, target: CheckTarget, trees: tuple[str, str]
    ) -> CheckRun:
        """Return the run before with the tests of the deliverable that the command may start."""
        new = [path for path in changes.reached if target.status[path] != "deleted"]
        return await self._before(check, await self._with(*trees, new))

    async def _complete_results(
        self,
        check: Check,
        changes: CheckChanges,
        target: CheckTarget,
        before: CheckRun,
        after: CheckRun,
    ) -> CheckRun:
        """Return the run before with the states on the base of tests that it did not execute.

        New tests of the attempt cannot be loaded without its work, which ends that run before any test. Changed tests alone, which the
        task names, remain unexecuted if all of them pass after it: the work may rename what they import.
        """
        results = before.results
        if results is None or before.green or before.tree == target.first_base:
            return before
        if not (results.errored or results.problem):
            return before
        base = (await self._before(check, target.first_base)).results
        if base is None or base.fallback:
            return before
        tests = frozenset((*changes.tests, *changes.reached))
        files = target.task.files
        is_older = all(target.status[p] == "modified" and is_named(p, files) for p in tests)
        passed = after.results.passed if after.results and is_older else ()
        return replace(before, results=complete_results(results, base, tests, passed))

    async def _again(
        self, check: Check, target: CheckTarget, then: CheckRun, tree: str
    ) -> CheckRun:
        run = await self._execution.run(check, tree, "after", answer=target.answer, again=True)
        return _confirm(check, target, then, run)

    async def _is_base_run(
        self, check: Check, target: CheckTarget, before: CheckRun, after: CheckRun
    ) -> bool:
        """True if the attempt has no part in the run before, or in what it lacks."""
        if before.tree == target.first_base:
            return True
        if not (before.missing and after.missing):
            return False
        return (await self._before(check, target.first_base)).missing

    async def _before_tree(
        self, check: Check, changes: CheckChanges, target: CheckTarget, after_tree: str
    ) -> str:
        """Return the first base with the deliverable's tests of the check; none is removed.

        Data next to tests belongs to them if the task's `files` name it: an updated snapshot is red before the work.
        """
        # Without `files`, a command that only lists tests says that they are the work.
        files = target.task.files or (target.changed if lists_tests(check.argv) else ())
        if check.kind == "flip" and files and all(map(says_it_tests, files)):
            # The tests are the work: with them, the run is green without any work.
            return target.first_base
        changed = await self._history.diff_trees(target.first_base, after_tree)
        kept = [change.path for change in changed if change.status != "deleted"]
        tests = {path for path in kept if matches(path, changes.found.tests)}
        named = {path for path in changes.beside if is_named(path, target.task.files)}
        # Data alone is the work itself: it corrects an expected result.
        data = named if {change.path for change in changed} - tests - named else set[str]()
        return await self._with(
            target.first_base, after_tree, [path for path in kept if path in tests | data]
        )

    async def _before(self, check: Check, tree: str) -> CheckRun:
        """Return the run before the work, made once for each command and tree."""
        # The id of the check is no part of the key: equal commands share their run.
        # The run is: each run records all of its evidence, so that it can be replayed alone.
        actor = CURRENT_ACTOR.get()
        key = json.dumps([check.argv, check.timeout_seconds, tree, actor.run if actor else ""])
        # A second caller waits for the first one; if that is cancelled, the second runs the check itself.
        async with self._locks.setdefault(key, asyncio.Lock()):
            run = self._known.get(key)
            if run is None:
                run = await self._execution.run(check, tree, "before")
                if not self._is_replay:
                    self._known[key] = run
        return replace(run, check=check.id)

    async def _with(self, tree: str, from_tree: str, paths: Sequence[str]) -> str:
        return await self._history.with_files(tree, from_tree, paths) if paths else tree


def _confirm(check: Check, target: CheckTarget, then: CheckRun, run: CheckRun) -> CheckRun:
    """Return a run after the work; tests that ran in `then` and have not passed are a problem."""
    is_flip = kind_of(check, then) == "flip"
    run = confirm_results(run, then.results, target.task.files, is_flip=is_flip)
    return _correct_missing(run, target.task)


def _correct_missing(run: CheckRun, task: Task) -> CheckRun:
    """Count a missing module that the task is to write as unfinished work."""
    # `python -m pkg` fails with "No module named pkg" until the task has written it.
    return replace(run, missing=False) if run.missing and is_work(run.argv, task) else run
