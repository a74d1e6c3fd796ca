"""Owned tests: tests that a task may not change, in words for briefs and users. Pure."""

import posixpath
from collections.abc import Callable, Iterable, Iterator, Sequence
from itertools import islice

from mimir.domain.globs import matches
from mimir.domain.plan import Plan, Task
from mimir.domain.value_class import value_class
from mimir.qc.scope.test_owners import FileOwners, find_test_owners, named_tests

_MOST_COMPARED = 20_000
"""Pairs of a glob and a test; in a larger plan some tasks are not listed."""
_PROJECT = "the project"


@value_class
class OwnedTest:
    """A test file with its owners."""

    path: str
    owners: tuple[str, ...]
    """Tasks; empty: it is a file of the base, and no task may change it."""
    others: tuple[str, ...]
    """Tasks that may not change it; a check of theirs reads it, or their `files` cover it."""


def list_owned_tests(
    plan: Plan, in_base: Callable[[str], bool], *, others: Sequence[Task] | None = None
) -> tuple[OwnedTest, ...]:
    """Return the tests that checks or `files` of a plan name, in the order of the plan.

    `others` are the tasks that may be listed in `OwnedTest.others`; None: all.
    """
    owners = find_test_owners(plan)
    tasks = plan.tasks if others is None else others
    readers: dict[str, list[str]] = {path: [] for path in owners.named}
    for task in tasks:
        for path in named_tests(task):
            readers[path].append(task.id)
    for task, path in islice(_pair_tasks(tasks, tuple(readers)), _MOST_COMPARED):
        if matches(path, task.files):
            readers[path].append(task.id)
    return tuple(_find_owners(owners, path, ids, in_base(path)) for path, ids in readers.items())


def describe_owners(tests: Iterable[OwnedTest], *, whom: str = "") -> tuple[str, ...]:
    """Return a sentence for each group of tests; `whom` replaces the other tasks."""
    groups: dict[tuple[tuple[str, ...], tuple[str, ...]], list[str]] = {}
    for one in tests:
        others = (whom,) if whom and one.others else one.others
        groups.setdefault((one.owners, others), []).append(one.path)
    return tuple(_sentence(*names, paths) for names, paths in groups.items())


def _sentence(owners: Sequence[str], others: Sequence[str], paths: Sequence[str]) -> str:
    verb = "own" if len(owners) > 1 else "owns"
    text = f"{' and '.join(owners) or _PROJECT} {verb} {', '.join(paths)}"
    it = "them" if len(paths) > 1 else "it"
    return f"{text}; {', '.join(others)} may not change {it}" if others else text


def _find_owners(owners: FileOwners, path: str, ids: Iterable[str], in_base: bool) -> OwnedTest:
    of = owners.owners_of(path, in_base=in_base)
    # A task before the owner may create the test.
    others = [id for id in ids if id not in of and (in_base or not owners.may_create(id, path))]
    return OwnedTest(path=path, owners=of, others=tuple(dict.fromkeys(others)))


def _pair_tasks(tasks: Iterable[Task], paths: Sequence[str]) -> Iterator[tuple[Task, str]]:
    for task in tasks:
        if task.files:
            names = frozenset(map(posixpath.normpath, task.files))
            yield from ((task, path) for path in paths if path not in names)
