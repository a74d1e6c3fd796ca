"""Counts of criteria by outcome; executed and judged ones are never added. Pure."""

from collections.abc import Iterable
from dataclasses import asdict

from mimir.domain.value_class import value_class


@value_class
class CriteriaCounts:
    """Number of criteria by outcome and basis."""

    executed: int = 0
    """Passed, decided by checks that the engine ran."""
    judged: int = 0
    """Passed, decided by QC with a verified quote."""
    unverified: int = 0
    failed: int = 0

    def __add__(self, other: "CriteriaCounts") -> "CriteriaCounts":
        return CriteriaCounts(
            executed=self.executed + other.executed,
            judged=self.judged + other.judged,
            unverified=self.unverified + other.unverified,
            failed=self.failed + other.failed,
        )

    @property
    def open(self) -> int:
        """Failed or unverified criteria; any of them is a gap of the run."""
        return self.unverified + self.failed

    def as_json(self) -> dict[str, int]:
        """Return the counts as scripts read them."""
        return asdict(self)


NO_CRITERIA = CriteriaCounts()


def count_criteria(criteria: Iterable[tuple[str, str]]) -> CriteriaCounts:
    """Count criteria, each given as (state, basis); an unknown pair counts as unverified."""
    executed = judged = unverified = failed = 0
    for criterion in criteria:
        match criterion:
            case ("passed", "executed"):
                executed += 1
            case ("passed", "judged"):
                judged += 1
            # A failed criterion counts the same for each basis.
            case ("failed", _):
                failed += 1
            case _:
                unverified += 1
    return CriteriaCounts(executed=executed, judged=judged, unverified=unverified, failed=failed)
