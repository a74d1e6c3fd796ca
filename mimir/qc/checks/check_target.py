"""Subject of the checks of an attempt. Pure."""

from collections.abc import Mapping, Sequence
from dataclasses import field

from mimir.domain.plan import Task
from mimir.domain.value_class import value_class
from mimir.qc.scope.test_owners import NO_PENDING_TESTS, PendingTests


@value_class
class CheckTarget:
    """Subject of the checks of one attempt: its trees, answer and changes."""

    task: Task
    first_base: str
    """Base of the task's first attempt."""
    own_base: str
    """Base of this attempt; it differs if the run branch moved since then."""
    tree: str
    changed: Sequence[str]
    """Paths that differ from its own base."""
    answer: str = ""
    pending: PendingTests = NO_PENDING_TESTS
    """Tests that a `hold` check does not see."""
    green_runs: int = 1
    """How many green runs in a row after the work a check needs; otherwise it is flaky."""
    status: Mapping[str, str] = field(default_factory=dict[str, str])
    """Path → `added`, `modified` or `deleted` by this attempt; found by the runner."""
