"""Earlier tests: a check must pass with the tests as they were before the attempt. Pure.

Tests run in one process, so a new test can repair the work for the others while it is loaded. New data beside tests can replace the data of
others. A task that may change a test can also disarm it. In each case every test is reported as passed and its control is red; only a run with the
earlier tests shows the fault.
"""

import ast
import posixpath
from collections.abc import Iterable, Iterator

from mimir.domain.globs import matches
from mimir.domain.python_syntax import parse_module
from mimir.domain.value_class import value_class
from mimir.qc.checks.check_target import CheckTarget
from mimir.qc.integrity.check_files import CheckFiles
from mimir.qc.mutations.lexed_tests import LANGUAGES

FINDING = (
    "With the tests as they were before the work, this check fails on the deliverable: it passes only together with the new ones or "
    "new data beside them, or because older ones are weaker now."
)


@value_class
class CheckChanges:
    """The changed paths that belong to one check."""

    found: CheckFiles
    """Files of the check."""
    protected: tuple[str, ...]
    """Older files that a check of the task protects."""
    tests: tuple[str, ...]
    reached: tuple[str, ...]
    """Tests that it may start besides its own; see `CheckFiles.reached`."""
    beside: tuple[str, ...]
    """Older files next to its tests."""


def find_changed_tests(found: CheckFiles, target: CheckTarget) -> CheckChanges:
    """Sort the changed paths by their role in a check."""
    status = target.status
    protect = [glob for check in target.task.checks for glob in check.protect]
    protected = [path for path, how in status.items() if how != "added" and matches(path, protect)]
    free = [path for path in status if path not in protected]
    tests = [path for path in free if matches(path, found.tests)]
    others = [path for path in free if path not in tests]
    reached = [path for path in others if matches(path, found.reached)]
    older = [path for path in others if path not in reached and status[path] != "added"]
    return CheckChanges(
        found=found,
        protected=tuple(protected),
        tests=tuple(tests),
        reached=tuple(reached),
        beside=tuple(path for path in older if matches(path, found.beside)),
    )


def list_weaker_tests(changes: CheckChanges, target: CheckTarget) -> list[str]:
    """Return the tests to put back if the check passed before the work, too."""
    # A test that its task deletes is no longer wanted: the write scope lets no other task do it.
    own = (*changes.tests, *changes.reached, *changes.beside)
    left = [path for path in own if target.status[path] != "deleted"]
    # New tests leave what was there as it was, so they alone are not worth another run.
    return left if any(target.status[path] == "modified" for path in left) else []


def list_new_tests(changes: CheckChanges, target: CheckTarget) -> list[str]:
    """Return the new tests, and new data beside tests, that a runner loads with older ones.

    Data that the task's `files` name belongs to the task.
    """
    found = changes.found
    named = {*map(posixpath.normpath, target.task.files)}
    new = [
        path
        for path in (*changes.tests, *changes.reached)
        if target.status[path] == "added" and found.collects(path)
    ]
    # A golden file may decide what an older test expects; a helper that it imports may be the work.
    data = [
        path
        for path, how in target.status.items()
        if how == "added" and matches(path, (*found.beside, *found.reached)) and not is_code(path)
    ]
    # A test that the check names by its path is what the check is about.
    if any(path in found.tests for path in new):
        return []
    # An older test that the task may extend reads the new data.
    if any(target.status[path] == "modified" for path in (*changes.tests, *changes.reached)):
        return new
    return [*new, *(path for path in data if path not in new and path not in named)]


def loses_only_tests(old: bytes, new: bytes) -> bool:
    """Return whether a test file of Python differs by tests and imports that it no longer has."""
    trees = [parse_module(one.decode("utf-8", "replace")) for one in (old, new)]
    was, now = [set(_parts(tree.body if tree else ())) for tree in trees]
    return now < was and all(part.startswith(("import ", "test ")) for part in was - now)


def _parts(body: Iterable[ast.stmt], scope: str = "") -> Iterator[str]:
    for one in body:
        match one:
            case ast.Import() | ast.ImportFrom():
                source = ast.dump(one).partition("names=")[0] + scope
                yield from (f"import {source} {ast.dump(name)}" for name in one.names)
            case ast.ClassDef():
                yield from _parts(one.body, f"{scope} {one.name} {list(map(ast.dump, one.bases))}")
            case ast.FunctionDef() | ast.AsyncFunctionDef() if one.name.startswith("test"):
                yield f"test {scope} {ast.dump(one)}"
            case _:
                yield f"{scope} {ast.dump(one)}"


def is_code(path: str) -> bool:
    """True if tests may load a file."""
    suffix = path.rpartition(".")[2]
    return suffix == "py" or suffix in LANGUAGES


def describe_protected(changes: CheckChanges) -> tuple[str, ...]:
    """Return the finding about protected files."""
    if not changes.protected:
        return ()
    shown, more = ", ".join(changes.protected[:10]), len(changes.protected) - 10
    return (f"Protected and restored before the run: {shown}{f' and {more} more' * (more > 0)}.",)
