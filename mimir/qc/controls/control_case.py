"""Input of a control: a check that passed on a deliverable."""

from collections.abc import Sequence

from mimir.domain.evidence import CheckRun
from mimir.domain.plan import Check, CheckKind
from mimir.domain.value_class import value_class
from mimir.qc.scope.test_owners import NO_PENDING_TESTS, PendingTests


@value_class
class ControlCase:
    """A passed check of a deliverable."""

    check: Check
    kind: CheckKind
    before: CheckRun
    after: CheckRun
    """The green run that decided."""
    base_tree: str
    """Base of the attempt, or of the check without new tests that cannot be loaded there."""
    changed: Sequence[str]
    """Paths that the attempt changed."""
    answer: str = ""
    new_tests: PendingTests = NO_PENDING_TESTS
    """Tests that the task is to make pass."""
