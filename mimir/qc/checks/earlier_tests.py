"""Earlier tests: a check must pass with the tests as they were before the attempt. Pure.

Tests run in one process, so a new test can repair the work for the others while it is loaded. New data next to tests can replace the data of
others. A task that may change a test can also disarm it. In each case every test is reported as passed and its control is red; only a run with the
earlier tests shows the fault.
"""

import re
from collections.abc import Sequence
from difflib import SequenceMatcher

from mimir.domain.globs import matches
from mimir.domain.value_class import value_class
from mimir.qc.checks.check_target import CheckTarget
from mimir.qc.integrity.check_files import CheckFiles, is_named
from mimir.qc.mutations.lexed_tests import CODE

_IMPORT = re.compile(
    r"^(?:import|from|use)\b(?:[^\n({]|\([^)]*\)|\{[^}]*\})*$|^(?:const|let|var)\b[^\n=]*=\s*require\([^\n]*$",
    re.MULTILINE,
)
_WORD = re.compile(r"[\w./@-]+")
_TEST = re.compile(
    r"\s*(?:@\w*Test\b|#\[[\w:]*test\b|(?:async )?def test|func (?:Test|Fuzz|Example)|(?:it|test|describe)\b|class Test)"
)
_START = re.compile(rf"{_TEST.pattern}|\s*(?:@|#\[|//|/?\*|[\])}}]|fn |(?:public )?void )")
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
    """Return the new tests, and new data next to tests, that a runner loads with older ones.

    Data that the task's `files` name belongs to the task.
    """
    found = changes.found
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
    files = target.task.files
    return [*new, *(path for path in data if path not in new and not is_named(path, files))]


def loses_only_tests(old: bytes, new: bytes) -> bool:
    """Return whether a test file differs by whole tests and imports that it no longer has."""
    texts = [one.decode("utf-8", "replace") for one in (old, new)]
    was, now = [{*_WORD.findall(" ".join(_IMPORT.findall(one)))} for one in texts]
    if not now <= was:
        return False
    # Without imports and empty lines.
    lines, left = [[*filter(str.strip, _IMPORT.sub("", one).splitlines())] for one in texts]
    found = SequenceMatcher(None, lines, left, autojunk=False).get_opcodes()
    changed = [(i, j, k == m) for tag, i, j, k, m in found if tag != "equal"]
    return bool(changed) and all(gone and _holds_tests(lines, i, j) for i, j, gone in changed)


def _holds_tests(lines: Sequence[str], start: int, end: int) -> bool:
    """Return whether some lines are whole tests: the next line is outside of them."""
    # Equal lines before a difference may belong to it instead of those at its end.
    while start and not _START.match(lines[start]) and lines[start - 1] == lines[end - 1]:
        start, end = start - 1, end - 1
    depths = [len(line) - len(line.lstrip()) for line in lines[start : end + 1]]
    own, after = depths[: end - start], depths[end - start :]
    is_whole = bool(own) and min(own) == own[0] and all(depth <= own[0] for depth in after)
    heads = [line for line, depth in zip(lines[start:end], own, strict=True) if depth == own[0]]
    return is_whole and all(map(_START.match, heads)) and any(map(_TEST.match, heads))


def is_code(path: str) -> bool:
    """True if tests may load a file."""
    return path.rpartition(".")[2] in CODE


def describe_protected(changes: CheckChanges) -> tuple[str, ...]:
    """Return the finding about protected files."""
    if not changes.protected:
        return ()
    shown, more = ", ".join(changes.protected[:10]), len(changes.protected) - 10
    return (f"Protected and restored before the run: {shown}{f' and {more} more' * (more > 0)}.",)
