"""Table of reruns: a green check runs again if the attempt changed the check. Pure.

A rerun puts files back as they were before the work. If the check is then red, the rerun decides, with the finding of its row.
"""

from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass

from mimir.domain.evidence import CheckRun
from mimir.domain.plan import Check
from mimir.qc.integrity.change_classes import ChangeClasses, CheckTarget

Restorations = Sequence[Sequence[str]]
"""Alternative lists of paths to put back, until one run is green; empty: no rerun."""


@dataclass(frozen=True, slots=True, kw_only=True)
class RerunCase:
    """A green run of a check, and what is known of the attempt."""

    check: Check
    changes: ChangeClasses
    target: CheckTarget
    before: CheckRun
    """Run before the work, with the check's files of the deliverable."""
    was_green: Callable[[], Awaitable[bool]]
    """Whether the check passes on the first base as it is."""
    paths: Callable[[str, Sequence[str]], Awaitable[Sequence[str]]]
    """Lists the paths of a tree that globs match."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Rerun:
    """One row of the table."""

    restore: Callable[[RerunCase], Awaitable[Restorations]]
    finding: str
    """Recorded if the rerun is red."""
    is_alternative: bool = False
    """True: runs only if no rerun before it ran, and later steps do not build on it."""
    compares_output: bool = False
    """True: the output must also hold against the run before the work."""


async def _restore_check_files(case: RerunCase) -> Restorations:
    """Put back the check's own files that the attempt changed without being asked to."""
    changes, target = case.changes, case.target
    # A test that the task's `files` name is the work, unless it was deleted.
    named = [path for path in changes.all_tests if path in target.task.files]
    if case.before.green:
        old = [p for p in changes.own if p not in named or target.status[p] != "deleted"]
    else:
        old = [path for path in changes.all_tests if path not in named]
    # New tests leave what was there as it was, so they alone are not worth another run.
    is_weaker = any(target.status[path] != "added" for path in old)
    if not is_weaker and not (case.before.green and changes.steering):
        return ()
    was_green = await case.was_green()
    if case.before.green and not was_green:
        return ()
    if was_green and not case.before.green and case.check.kind != "hold":
        # A red test is the purpose of the work. A green one may change only if the check names that very file.
        tests = set(changes.found.tests)
        if tests == set(await case.paths(target.tree, changes.found.tests)):
            tests.update(changes.beside)
        old = [path for path in old if path not in tests]
        if all(target.status[path] == "added" for path in old):
            return ()
    return (old,)


async def _remove_new_tests(case: RerunCase) -> Restorations:
    """Remove tests added next to others: one may change what another sees."""
    found, target = case.changes.found, case.target
    new = [p for p in case.changes.all_tests if target.status[p] == "added" and found.collects(p)]
    # A test that the check names by its path is what the check is about.
    if not new or any(path in found.tests for path in new):
        return ()
    present = await case.paths(target.own_base, found.all_tests)
    if not found.are_tests(path for path in present if target.status.get(path) != "deleted"):
        return ()
    return (new,)


async def _restore_runner_files(case: RerunCase) -> Restorations:
    """Put back hooks and settings, and with them the tests: the old, or the new ones alone."""
    changes, target = case.changes, case.target
    found = changes.found
    steering: Sequence[str] = [*changes.steering, *changes.planted]
    if not steering:
        return ()
    old = [path for path in changes.all_tests if path not in target.task.files]
    new = [path for path in old if target.status[path] == "added"]
    present = await case.paths(target.own_base, found.all_tests)
    if any(path in found.tests for path in new) or not found.are_tests(present):
        # The attempt's own tests may need its settings; linters, and a Makefile that was there, judge without tests.
        steering, old, new = changes.alone, [], []
        if not steering or not await case.paths(target.own_base, found.judged):
            return ()
    return tuple([*steering, *tests] for tests in ((old, new) if old != new else (old,)))


RERUNS = (
    Rerun(
        restore=_restore_check_files,
        finding="As it was before the work, this check fails on the deliverable: the attempt changed or removed "
        "the check's own files. Tests, and data of tests, that are the work must be named in the task's files.",
    ),
    Rerun(
        restore=_remove_new_tests,
        finding="Without the tests that the attempt added, the earlier tests fail on the deliverable: "
        "they pass only together with the new ones.",
        is_alternative=True,
    ),
    Rerun(
        restore=_restore_runner_files,
        finding="With its tests and its runner's settings as they were before the work, this check fails on "
        "the deliverable. Settings that are the work must be named in the task's files.",
        compares_output=True,
    ),
)
"""In this order; the first red one decides."""
