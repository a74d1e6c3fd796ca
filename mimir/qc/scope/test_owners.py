"""Owners of a run's test files: one task, or the base. Pure.

The owner is the task whose `files` name the very file. Otherwise it is the task that creates the file: the first, in dependency order,
with a check that names it. A test file of the base that no `files` name belongs to the base. No other task can change a test file.
"""

import posixpath
from collections.abc import Iterable, Iterator, Mapping
from functools import lru_cache

from mimir.domain.globs import has_wildcard, matches
from mimir.domain.graph import TaskGraph
from mimir.domain.plan import Plan, Task
from mimir.domain.value_class import value_class
from mimir.qc.integrity.check_files import find_check_files


@value_class
class FileOwners:
    """Test files of a plan with their owners."""

    globs: tuple[str, ...]
    """Tests and protected files of all checks."""
    named: tuple[str, ...]
    """Those that checks name by their paths, then those that `files` name so."""
    declared: Mapping[str, tuple[str, ...]]
    """Path → tasks whose `files` name it without wildcards."""
    creators: Mapping[str, str]
    """Path → first task with a check that names it; only paths that no `files` name."""
    upstream: Mapping[str, frozenset[str]]
    """Creator → its direct and indirect dependencies."""

    def owners_of(self, path: str, *, in_base: bool) -> tuple[str, ...]:
        """Return the tasks that own a path; empty: the base, or no task yet."""
        if path in self.declared:
            return self.declared[path]
        return () if in_base or path not in self.creators else (self.creators[path],)

    def may_create(self, task: str, path: str) -> bool:
        """True if a task may create a path: no other task owns it, or waits for this one."""
        owners = self.owners_of(path, in_base=False)
        return not owners or any(
            task == owner or task in self.upstream.get(owner, ()) for owner in owners
        )


@lru_cache(maxsize=4)  # each attempt of a run needs it
def find_test_owners(plan: Plan) -> FileOwners:
    """Return the owners of the test files of a plan; a plan with a cycle has the plan's order."""
    graph = TaskGraph.from_plan(plan)
    order = graph.topological() if graph.cycle() is None else graph.ids
    tasks = {task.id: task for task in plan.tasks}
    declared: dict[str, tuple[str, ...]] = {}
    creators: dict[str, str] = {}
    for task in (tasks[id] for id in order):
        for path in filter(_is_path, task.files):
            name = posixpath.normpath(path)
            declared[name] = (*declared.get(name, ()), task.id)
    for task in (tasks[id] for id in order):
        for path in named_tests(task):
            if path not in declared:
                creators.setdefault(path, task.id)
    owners = {*creators.values(), *(id for ids in declared.values() for id in ids)}
    globs = tuple(dict.fromkeys(glob for task in plan.tasks for glob in list_test_globs(task)))
    named = dict.fromkeys(path for task in plan.tasks for path in named_tests(task))
    wild = [glob for glob in globs if not _is_path(glob)]
    return FileOwners(
        globs=globs,
        named=(*named, *(path for path in declared if path not in named and matches(path, wild))),
        declared=declared,
        creators=creators,
        upstream={id: graph.upstream(id) for id in owners},
    )


def list_test_globs(task: Task) -> Iterator[str]:
    """Yield the globs of the tests and protected files of a task's checks."""
    for check in task.checks:
        yield from find_check_files(check).tests
        yield from check.protect


@value_class
class PendingTests:
    """Tests that may be red on purpose: a `hold` check runs with them as they are in `base`."""

    paths: tuple[str, ...] = ()
    base: str = ""
    """Base tree of the run."""


NO_PENDING_TESTS = PendingTests()


def find_pending_tests(plan: Plan, task: Task, completed: Iterable[str], base: str) -> PendingTests:
    """Return the tests that tasks outside `completed`, a list of ids, are to make pass."""
    done = {*completed, task.id}
    own = {*named_tests(task), *task.files}
    waiting = (one for one in plan.tasks if one.id not in done)
    paths = {path for one in waiting for path in named_tests(one) if path not in own}
    return PendingTests(paths=tuple(sorted(paths)), base=base)


def named_tests(task: Task) -> Iterator[str]:
    """Yield the tests and protected files that a task's checks name by their paths."""
    for glob in list_test_globs(task):
        if _is_path(glob):
            yield posixpath.normpath(glob)


def _is_path(glob: str) -> bool:
    return not has_wildcard(glob) and not glob.endswith("/") and not matches(".", (glob,))
