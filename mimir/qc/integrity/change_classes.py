"""Classes of an attempt's changes by their role in one check. Pure."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from mimir.domain.globs import matches
from mimir.domain.plan import Task
from mimir.qc.integrity.check_files import (
    CheckFiles,
    find_config_changes,
    find_new_config,
    find_rules,
)


@dataclass(frozen=True, slots=True, kw_only=True)
class CheckTarget:
    """Subject of the checks of one attempt: its trees, answer and changes."""

    task: Task
    first_base: str
    own_base: str
    tree: str
    answer: str
    status: dict[str, str]
    """Path → `added`, `modified` or `deleted` by this attempt, against its own base."""
    green_runs: int = 1
    """How many green runs after the work a check needs."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ChangeClasses:
    """The changed paths that belong to one check."""

    found: CheckFiles
    """Files of the check."""
    protected: tuple[str, ...]
    tests: tuple[str, ...]
    steering: tuple[str, ...]
    planted: tuple[str, ...]
    """New settings of its runner: the work, or a bypass of existing tests."""
    reached: tuple[str, ...]
    """Tests that it may start besides its own; see `CheckFiles.reached`."""
    beside: tuple[str, ...]
    """Files next to its tests that were changed or deleted."""
    alone: tuple[str, ...]
    """Those of `steering` and `planted` that can bypass the check also without tests."""

    @property
    def all_tests(self) -> tuple[str, ...]:
        """Tests that the attempt changed, and files next to them."""
        return (*self.tests, *self.reached, *self.beside)

    @property
    def own(self) -> tuple[str, ...]:
        """Files of the check that the attempt wrote."""
        return (*self.all_tests, *self.steering)


def classify_changes(found: CheckFiles, work: CheckTarget) -> ChangeClasses:
    """Sort the changed paths by their role in a check."""
    protected = dict.fromkeys(_find_protected(work))
    free = [path for path in work.status if path not in protected]
    added = frozenset(path for path, status in work.status.items() if status == "added")
    # Settings first: a `conftest.py` in a test folder is both, and weighs more as a setting.
    steers = dict.fromkeys(find_config_changes(found, work.task, free, added))
    others = [path for path in free if path not in steers]
    tests = dict.fromkeys(path for path in others if matches(path, found.tests))
    others = [path for path in others if path not in tests]
    reached = dict.fromkeys(path for path in others if matches(path, found.reached))
    others = [path for path in others if path not in reached and path not in added]
    new = find_new_config(found, work.task, [path for path in free if path in added])
    return ChangeClasses(
        found=found,
        protected=tuple(protected),
        tests=tuple(tests),
        reached=tuple(reached),
        beside=tuple(path for path in others if matches(path, found.beside)),
        steering=tuple(steers),
        planted=new,
        alone=(
            *(path for path in new if matches(path, found.started_by)),
            *find_rules(found, (*steers, *new)),
        ),
    )


def _find_protected(work: CheckTarget) -> list[str]:
    """Return the changed, older paths that any check of the task protects."""
    globs = [glob for check in work.task.checks for glob in check.protect]
    return [p for p, status in work.status.items() if status != "added" and matches(p, globs)]


def describe_changes(parts: ChangeClasses) -> Iterator[str]:
    """Yield the findings about them, for users."""
    if parts.protected:
        yield f"Protected and restored before the run: {_format_paths(parts.protected)}."
    if changed := (*parts.steering, *parts.planted):
        yield f"The attempt changed what steers this check: {_format_paths(changed)}."


def _format_paths(paths: Sequence[str]) -> str:
    more = f" and {len(paths) - 10} more" if len(paths) > 10 else ""
    return ", ".join(paths[:10]) + more
