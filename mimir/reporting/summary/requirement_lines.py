"""Lines of the report about the requirements that the user approved. Pure."""

from collections.abc import Iterator, Sequence
from typing import Literal, get_args

from mimir.domain.plan import Criterion, Plan
from mimir.domain.requirement import Requirement, find_named
from mimir.domain.task_states import TaskStatus
from mimir.domain.value_class import value_class
from mimir.domain.verdict import CriterionResult
from mimir.reporting.summary.task_lines import TaskLine

RequirementState = Literal["executed", "judged", "unverified", "failed"]
STATES: Sequence[RequirementState] = get_args(RequirementState)
"""From the best to the worst."""
UNVERIFIED: RequirementState = "unverified"


@value_class
class RequirementLine:
    """One requirement, with the criteria that name it."""

    id: str
    text: str
    """Of the specification; untrusted."""
    state: RequirementState
    criteria: tuple[str, ...]
    """Task and criterion of each."""


def requirement_lines(
    requirements: Sequence[Requirement],
    tasks: Sequence[TaskLine],
    plan: Plan | None,
    *,
    is_red: bool,
) -> tuple[RequirementLine, ...]:
    """Return the state of each requirement.

    It is no better than its weakest criterion. Only criteria of completed tasks count, and none while the final gate is red.
    A task without a verdict has the criteria of the plan.
    """
    known = {one.id: list[tuple[str, RequirementState]]() for one in requirements}
    planned = {one.id: one.criteria for one in plan.tasks} if plan else {}
    for task in tasks:
        counts = task.status == TaskStatus.COMPLETED.value and not is_red
        for one in task.criteria or planned.get(task.id, ()):
            state = UNVERIFIED if isinstance(one, Criterion) else _state(one, counts=counts)
            for id in find_named(one.text) & known.keys():
                known[id].append((f"{task.id}/{one.id}", state))
    return tuple(
        RequirementLine(
            id=one.id,
            text=one.text,
            state=_weakest([state for _, state in known[one.id]]),
            criteria=tuple(place for place, _ in known[one.id]),
        )
        for one in requirements
    )


def describe_requirements(lines: Sequence[RequirementLine]) -> Iterator[str]:
    """Yield how many requirements have each state, as words."""
    for state in STATES:
        if count := sum(one.state == state for one in lines):
            yield f"{count} {state}"


def _state(criterion: CriterionResult, *, counts: bool) -> RequirementState:
    # Also of an attempt that was rejected: it is the last that is known.
    if criterion.state == "failed":
        return "failed"
    return criterion.basis if counts and criterion.state == "passed" else UNVERIFIED


def _weakest(states: Sequence[RequirementState]) -> RequirementState:
    # A requirement without a criterion is decided by nothing.
    for state in reversed(STATES):
        if state in states:
            return state
    return UNVERIFIED
