"""Rules for `Files`: tasks with checks name them, globs cover no test of others. Pure."""

import posixpath
import re
from collections.abc import Iterator
from itertools import islice

from mimir.domain.agent import WRITE_TOOLS
from mimir.domain.finding import Finding, quote_excerpt
from mimir.domain.globs import has_wildcard, matches
from mimir.domain.plan import Plan, Task
from mimir.planning.format.diagnostics import SourceMap, make_finding
from mimir.qc.scope.test_owners import named_tests

_MOST_COMPARED = 20_000
"""Pairs of a glob and a test; in a larger plan some findings are missing."""
_MOST_NAMED = 5
_TASK_0 = re.compile(r"(?:task[-_ ]?)?0+(?:\.\d+)*", re.IGNORECASE)
_WRITING = frozenset((*WRITE_TOOLS, "run"))


def is_task_0(id: str) -> bool:
    """Return whether an id is that of the task that validates the environment."""
    return _TASK_0.fullmatch(id) is not None


def check_files(plan: Plan, places: SourceMap) -> Iterator[Finding]:
    """Yield the findings of `Files`; the task that validates the environment needs none."""
    without = [
        number
        for number, task in enumerate(plan.tasks)
        if task.checks and not task.files and not is_task_0(task.id) and _may_write(task)
    ]
    if without:
        # One omission of the planner is one finding, however many tasks it concerns.
        ids = [plan.tasks[number].id for number in without]
        many = len(ids) > 1
        yield make_finding(
            "files-missing",
            f"{_list_tasks(ids)} {'have' if many else 'has'} checks and no files: {'they' if many else 'it'} "
            "may write any file that is not a test or a setting.",
            places.position_of(without[0]),
            "Add **Files:** with the files that each task writes, and each existing test by its own path.",
        )
    yield from _broad_globs(plan, places)


def _broad_globs(plan: Plan, places: SourceMap) -> Iterator[Finding]:
    """Yield globs that cover a test that a check of another task reads."""
    tests = [(path, task.id) for task in plan.tasks for path in dict.fromkeys(named_tests(task))]
    wild = (
        (number, item, glob)
        for number, task in enumerate(plan.tasks)
        for item, glob in enumerate(task.files)
        if has_wildcard(glob) or glob.endswith("/")
    )
    pairs = ((*one, *test) for one in wild for test in tests)
    seen: set[tuple[int, int]] = set()
    for number, item, glob, path, reader in islice(pairs, _MOST_COMPARED):
        task = plan.tasks[number]
        named = map(posixpath.normpath, task.files)
        if reader == task.id or (number, item) in seen or not matches(path, (glob,)):
            continue
        if path in named:
            continue
        seen.add((number, item))
        yield make_finding(
            "files-broad",
            f"Task {quote_excerpt(task.id)} has the glob {quote_excerpt(glob)}, which covers "
            f"{quote_excerpt(path)}: a check of task {quote_excerpt(reader)} reads it as a test.",
            places.position_of(number, "files", item),
            "Name the files that the task writes; a test that it is to change, by its own path.",
        )


def _may_write(task: Task) -> bool:
    return not task.tools or not _WRITING.isdisjoint(task.tools)


def _list_tasks(ids: list[str]) -> str:
    shown = ", ".join(map(quote_excerpt, ids[:_MOST_NAMED]))
    more = f" and {len(ids) - _MOST_NAMED} more" if len(ids) > _MOST_NAMED else ""
    return f"Task{'s' if len(ids) > 1 else ''} {shown}{more}"
