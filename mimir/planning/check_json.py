"""JSON output of `mimir check --json`: a documented interface for scripts."""

from collections.abc import Mapping, Sequence
from dataclasses import fields
from fractions import Fraction

from mimir.domain.estimates import LearnedEstimate
from mimir.domain.finding import Finding
from mimir.domain.plan import Check, Criterion, Plan, Task
from mimir.qc.scope.owned_tests import OwnedTest

# Raised only if a member is removed or changes its meaning: scripts compare it.
SCHEMA = 1
# Members of a task that come first; the others follow in the order of the fields of `Task`.
_FIRST_MEMBERS = ("id", "title", "dependencies", "worker_role", "qc_role", "prompt")


def json_shape(
    plan: Plan | None,
    findings: Sequence[Finding],
    learned: Mapping[str, LearnedEstimate] | None = None,
    owners: Sequence[OwnedTest] = (),
) -> dict[str, object]:
    """Return `{schema, tasks, findings, learned, owners}`, always with all members.

    Args:
        plan: None: the file could not be read.
        findings: In the order of output.
        learned: Estimates by worker role, from finished runs; None or empty: none.
        owners: Tests with their owners.
    """
    known = learned or {}
    tasks = plan.tasks if plan is not None else ()
    return {
        "schema": SCHEMA,
        "tasks": [_task(task) for task in tasks],
        "findings": _plain(tuple(findings)),
        "learned": [_estimate(t, known[t.worker_role]) for t in tasks if t.worker_role in known],
        "owners": [
            {"test": one.path, "tasks": list(one.owners), "not": list(one.others)} for one in owners
        ],
    }


def _task(task: Task) -> dict[str, object]:
    names = dict.fromkeys([*_FIRST_MEMBERS, *(field.name for field in fields(task))])
    # The role in force: a task without a QC role has a derived one.
    found = {name: _plain(getattr(task, name)) for name in names if name != "agent" or task.agent}
    return found | {"qc_role": task.reviewer}


def _estimate(task: Task, known: LearnedEstimate) -> dict[str, object]:
    return {
        "task": task.id,
        "estimated_minutes": task.estimated_minutes,
        "minutes": known.minutes,
        "estimated_tool_calls": task.estimated_tool_calls,
        "tool_calls": known.tool_calls,
        "from_tasks": known.tasks,
    }


def _plain(value: object) -> object:
    match value:
        case Criterion() | Check() | Finding():
            return {field.name: _plain(getattr(value, field.name)) for field in fields(value)}
        case tuple():
            items: tuple[object, ...] = value  # pyright: ignore[reportUnknownVariableType]  from the pattern alone
            return [_plain(item) for item in items]
        case Fraction():
            # JSON has no fractions; whole points stay integers, as the plan wrote them.
            return int(value) if value.denominator == 1 else float(value)
        case _:
            return value
