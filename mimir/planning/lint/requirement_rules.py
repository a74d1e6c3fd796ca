"""Findings of a plan whose specification the user approved. Pure."""

from collections.abc import Sequence

from mimir.domain.finding import Finding
from mimir.domain.plan import Plan
from mimir.domain.requirement import Requirement, find_lost
from mimir.planning.format.diagnostics import make_finding


def check_requirements(plan: Plan, requirements: Sequence[Requirement]) -> list[Finding]:
    """Return a finding for each requirement that no criterion names."""
    criteria = [one.text for task in plan.tasks for one in task.criteria]
    return [
        make_finding(
            "requirement-lost",
            f"No criterion names {one.id}: {one.text[:200]}",
            suggestion=f"Begin a criterion of the task that fulfils it with '{one.id}: '.",
        )
        for one in find_lost(requirements, criteria)
    ]
