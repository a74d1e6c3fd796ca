"""Checks before and after the work, on clean checkouts: which trees they run on, and in which order.

*Before* is the task's first base with the deliverable's files that make up the check; *after* is the deliverable with the files that a
check of the task protects as they were (a pattern that names nothing in the base protects nothing). `decide_check` decides what the runs prove,
`find_check_files` which files make up a check, `execution` runs one.

One thing is added to the table: a check that is to hold and whose own files the attempt changed or deleted must hold as it was before
the work, too, and so must a check that is to flip, unless the task's `files` name the test (or, where it was green, the check names that
very file). Otherwise the test that stands in the way of a wrong change could be weakened or removed; or left out, by settings and hooks:
where there were tests, they must pass with what steered their runner before.
"""

import asyncio
import json
from collections.abc import Coroutine, Iterable, MutableMapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Protocol, TypeVar

from mimir.domain.evidence import CheckOutcome, CheckRun
from mimir.domain.globs import matches
from mimir.domain.plan import Check, Task
from mimir.qc.checks.check_execution import Phase
from mimir.qc.checks.decision_table import decide_check, kind_of, needs_second_run
from mimir.qc.checks.journaled_checks import CheckExecutor
from mimir.qc.checks.regression import AcceptedTask, Trees, confirm_completion, run_on_tree
from mimir.qc.integrity.change_classes import (
    ChangeClasses,
    CheckTarget,
    classify_changes,
    describe_changes,
)
from mimir.qc.integrity.check_files import find_check_files, is_work
from mimir.qc.integrity.recipes import expand_recipes
from mimir.qc.integrity.runner_output import confirm_by_output
from mimir.qc.integrity.shadow_modules import add_shadow_modules

T = TypeVar("T")


class TreeReader(Trees, Protocol):
    """Trees, by their git ids."""

    async def checkout(self, tree: str, where: Path, /) -> None:
        """Make the new directory `where` exactly `tree`."""
        ...


class CheckRunner:
    """The checks of a run's tasks."""

    def __init__(
        self,
        history: TreeReader,
        execution: CheckExecutor,
        known: MutableMapping[str, CheckRun] | None = None,
    ) -> None:
        """Bind them to their services.

        Args:
            history: Where trees come from.
            execution: Runs one check.
            known: Runs before the work that were made already, by check and tree; filled here. None: none yet.
        """
        self._history = history
        self._execution = execution
        self._known: MutableMapping[str, CheckRun] = {} if known is None else known
        self._under_way: dict[str, asyncio.Lock] = {}

    async def prepare(self, task: Task, base_tree: str) -> tuple[CheckRun, ...]:
        """Make the runs before the work whose files are there already; for before the first model call.

        Returns:
            Them, in the plan's order; one that is `missing` tells that the plan names a program that is not on this machine.
        """

        async def one(check: Check) -> CheckRun | None:
            tests = find_check_files(check).tests
            if tests and not await self._history.paths(base_tree, tests):
                return None
            return await self._before(check, base_tree)

        runs = await _gather_all(one(check) for check in task.checks)
        return tuple(_correct_missing(run, task) for run in runs if run is not None)

    async def outcomes(
        self,
        task: Task,
        *,
        base_tree: str,
        tree: str,
        changed: Sequence[str],
        answer: str,
        own_base: str = "",
    ) -> tuple[CheckOutcome, ...]:
        """Run every check of a task on a deliverable.

        Args:
            task: Whose checks.
            base_tree: Base of the task's first attempt.
            tree: The deliverable.
            changed: What this attempt changed of its own base.
            answer: Its closing answer.
            own_base: Base of this attempt, where the line has moved since the first one. Empty: `base_tree`.

        Returns:
            One outcome a check, in the plan's order.

        Raises:
            Paused: The sandbox or the disk is gone.
        """
        base = own_base or base_tree
        status = {
            change.path: change.status for change in await self._history.diff_trees(base, tree)
        }
        work = CheckTarget(
            task=task,
            first_base=base_tree,
            own_base=base,
            tree=tree,
            answer=answer,
            status={path: status[path] for path in changed if path in status},
        )
        return tuple(await _gather_all(self._outcome(check, work) for check in task.checks))

    async def on_tree(
        self,
        accepted: AcceptedTask,
        check: Check,
        tree: str,
        others: Iterable[AcceptedTask],
        *,
        phase: Phase,
    ) -> tuple[CheckRun, ...]:
        """Run a check of an accepted task on a merged or final tree; the last run decides. See `standing`."""
        return await run_on_tree(
            *(self._execution, self._history, accepted, check, tree, others, phase), self._before
        )

    async def _outcome(self, check: Check, work: CheckTarget) -> CheckOutcome:
        found = await expand_recipes(check, lambda one: self._before(one, work.first_base))
        new = [path for path, status in work.status.items() if status == "added"]
        found = await add_shadow_modules(found, new, work.tree, self._history.paths)
        parts = classify_changes(found, work)
        if parts.beside and not await self._history.paths(work.own_base, parts.found.tests):
            # It lay with other tests: of this check's there were none.
            parts = replace(parts, beside=())
        after_tree = await self._with(work.tree, work.own_base, parts.protected)
        before_tree = await self._before_tree(check, parts, work, after_tree)
        before = _correct_missing(await self._before(check, before_tree), work.task)
        if check.kind == "flip" and before.green and parts.reached:
            # `make test` on the project as it was: it is to flip by tests that came with the work.
            new = [path for path in parts.reached if work.status[path] != "deleted"]
            before = await self._before(check, await self._with(before_tree, after_tree, new))
        after = await self._execution.run(check, after_tree, "after", answer=work.answer)
        after = _correct_missing(after, work.task)
        if not parts.steering and not parts.planted:
            after = confirm_by_output(after, before)
        notes = list(describe_changes(parts))
        disarmed = check.kind is None and before.green and await self._was_red(check, parts, work)
        if disarmed:
            check = replace(check, kind="flip")
            notes.append(_DISARMED)
        if after.green and (kind_of(check, before) == "hold" or not before.green):
            after, more = await self._tried_harder(check, parts, work, before, after)
            notes += more
        again = None
        if needs_second_run(check, before, after):
            again = await self._execution.run(
                check, after.tree, "after", answer=work.answer, again=True
            )
            if after.cut_short:
                again = await self._watch(check, work, before, confirm_by_output(again, before))
        outcome = decide_check(
            check,
            before,
            after,
            again,
            self_authored=bool(parts.tests or parts.beside or (parts.reached and not before.green)),
            notes=tuple(notes),
        )
        return replace(outcome, inferred=True) if disarmed else outcome

    async def _tried_harder(
        self,
        check: Check,
        parts: ChangeClasses,
        work: CheckTarget,
        before: CheckRun,
        after: CheckRun,
    ) -> tuple[CheckRun, tuple[str, ...]]:
        """Try a green run again: as the check was, without what the attempt would steer it by, and watched.

        Returns:
            The run that decides, and what there is to say of it.
        """
        kept = await self._as_it_was(check, parts, work, after.tree, before)
        if kept is not None and not kept.green:
            return kept, (_WEAKENED,)
        alone = None if kept else await self._without_new_tests(check, parts, work, after.tree)
        if alone is not None and not alone.green:
            return alone, (_LEANING,)
        bare = await self._unsteered(check, parts, work, after.tree, kept)
        bare = bare and confirm_by_output(bare, before)
        if bare is not None and not bare.green:
            return bare, (_STEERED,)
        seen = await self._watch(check, work, before, bare or kept or after)
        return (after, ()) if seen.green else (seen, (_ENDED_EARLY,))

    async def _watch(
        self, check: Check, work: CheckTarget, before: CheckRun, ran: CheckRun
    ) -> CheckRun:
        """Watch a green run, where what it executes may be the work's: see `confirm_completion`."""
        if not any(path.endswith(_OF_PYTHON) for path in work.status):
            return ran
        changed = await self._history.diff_trees(work.own_base, ran.tree)
        return await confirm_completion(
            *(self._execution, check, ran, work.answer, [change.path for change in changed]),
            was=before.tree if before.green else "",
        )

    async def _before_tree(
        self, check: Check, parts: ChangeClasses, work: CheckTarget, after_tree: str
    ) -> str:
        """Return the first base with the files of the check as the deliverable has them; none is taken away from it."""
        unasked = [path for path in parts.beside if path not in work.task.files]
        if unasked and not (await self._before(check, work.first_base)).green:
            unasked = []  # what was red is what the work is for, and must pass by what was expected then
        judging = frozenset((*parts.steering, *unasked))
        added = [
            change.path
            for change in await self._history.diff_trees(work.first_base, after_tree)
            if change.status != "deleted"
            and (change.path in judging or matches(change.path, parts.found.tests))
        ]
        return await self._with(work.first_base, after_tree, added)

    async def _was_red(self, check: Check, parts: ChangeClasses, work: CheckTarget) -> bool:
        """True if the attempt changed what was there of the check, unasked, and as it was it fails before the work."""
        changed = any(work.status[p] != "added" and p not in work.task.files for p in parts.own)
        return changed and not (await self._before(check, work.first_base)).green

    async def _as_it_was(
        self,
        check: Check,
        parts: ChangeClasses,
        work: CheckTarget,
        after_tree: str,
        before: CheckRun,
    ) -> CheckRun | None:
        """Run a check on the deliverable with its own files as they were before the work.

        Returns:
            None: the attempt changed none that were there, or only what the plan or the check names, or the check was not green before
            the work.
        """
        named = [path for path in parts.all_tests if path in work.task.files]
        if before.green:
            old = [p for p in parts.own if p not in named or work.status[p] != "deleted"]
            weaker = parts.steering or any(work.status[path] != "added" for path in old)
        else:
            old = [path for path in parts.all_tests if path not in named]
            weaker = any(work.status[path] != "added" for path in old)
        # New tests beside old ones change nothing of what was there: only then is the second run worth its time.
        if not weaker:
            return None
        was_green = (await self._before(check, work.first_base)).green
        if before.green and not was_green:
            return None
        if was_green and not before.green and check.kind != "hold":
            # A red test is what the work is for. A green one may change with what it tests only if the check is about that very file.
            named = set(parts.found.tests)
            if named == set(await self._history.paths(work.tree, parts.found.tests)):
                named.update(parts.beside)
            old = [path for path in old if path not in named]
            if all(work.status[path] == "added" for path in old):
                return None
        tree = await self._with(after_tree, work.own_base, old)
        return await self._execution.run(check, tree, "after", answer=work.answer)

    async def _without_new_tests(
        self, check: Check, parts: ChangeClasses, work: CheckTarget, after_tree: str
    ) -> CheckRun | None:
        """Run a check on the deliverable without the tests that the attempt has added beside others: a runner loads them all, and one may change what another looks at.

        Returns:
            None: it added none, or there were no others, or the check names one of them.
        """
        found = parts.found
        new = [p for p in parts.all_tests if work.status[p] == "added" and found.collects(p)]
        if not new or any(path in found.tests for path in new):
            return None
        there = await self._history.paths(work.own_base, found.all_tests)
        if not found.are_tests(path for path in there if work.status.get(path) != "deleted"):
            return None
        tree = await self._with(after_tree, work.own_base, new)
        return await self._execution.run(check, tree, "after", answer=work.answer)

    async def _unsteered(
        self,
        check: Check,
        parts: ChangeClasses,
        work: CheckTarget,
        after_tree: str,
        kept: CheckRun | None,
    ) -> CheckRun | None:
        """Run a check on the deliverable with its tests, and what steers their runner, as they were before the work.

        Returns:
            `kept`, the run as the check was, if that was on the same tree. None: the attempt changed nothing that steers it, or there was no test: what it has written itself may need its settings.
        """
        steering: Sequence[str] = [*parts.steering, *parts.planted]
        if not steering:
            return None
        old = [path for path in parts.all_tests if path not in work.task.files]
        new = [path for path in old if work.status[path] == "added"]
        found = parts.found
        there = await self._history.paths(work.own_base, found.all_tests)
        if any(path in found.tests for path in new) or not found.are_tests(there):
            # What the attempt has written itself may need its settings; linters, and a Makefile that was there, judge without tests.
            steering, old, new = parts.alone, [], []
            if not steering or not await self._history.paths(work.own_base, found.judged):
                return None
        for put_back in (old, new) if old != new else (old,):
            tree = await self._with(after_tree, work.own_base, [*steering, *put_back])
            if kept is None or kept.tree != tree:
                kept = await self._execution.run(check, tree, "after", answer=work.answer)
            if kept.green:
                break
        return kept

    async def _before(self, check: Check, tree: str) -> CheckRun:
        """Return the run before the work, made once for each command and tree."""
        key = json.dumps([check.argv, check.timeout_seconds, tree])
        # Whoever comes second waits for the first; if that one is cancelled, it runs the check itself.
        async with self._under_way.setdefault(key, asyncio.Lock()):
            run = self._known.get(key)
            if run is None:
                run = await self._execution.run(check, tree, "before")
                self._known[key] = run
        return replace(run, check=check.id)

    async def _with(self, tree: str, from_tree: str, paths: Sequence[str]) -> str:
        return await self._history.with_files(tree, from_tree, paths) if paths else tree


_WEAKENED = (
    "As it was before the work, this check fails on the deliverable: the attempt changed or removed "
    "the check's own files. Tests, and data of tests, that are the work must be named in the task's files."
)


_LEANING = "Without the tests that the attempt has added, those that were there fail on the deliverable: they pass only beside the new ones."

_STEERED = (
    "With its tests, and what steers their runner, as they were before the work, this check fails on "
    "the deliverable. Settings that are the work must be named in the task's files."
)

_ENDED_EARLY = (
    "Watched on the same files, the program of this check did not come to its end: what it imports ends it, or hides that "
    "it failed. What it calls must return or raise an error; only the program itself may end itself."
)

_OF_PYTHON = (".py", ".pth")

_DISARMED = "The plan gives no kind; taken as 'flip', since as it was, it fails before the work."


def _correct_missing(run: CheckRun, task: Task) -> CheckRun:
    """Take a module that the task is to write for what it is: work that is not done, not a program that is missing."""
    return replace(run, missing=False) if run.missing and is_work(run.argv, task) else run


async def _gather_all(jobs: Iterable[Coroutine[object, object, T]]) -> list[T]:
    """Do jobs at once; the first error ends the others and is raised as it is."""
    tasks = [asyncio.ensure_future(job) for job in jobs]
    try:
        return list(await asyncio.gather(*tasks))
    finally:
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)
