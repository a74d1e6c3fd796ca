"""The JSON that `mimir check --json` prints: tasks and findings, a documented shape that scripts rely on."""

from collections.abc import Mapping, Sequence
from fractions import Fraction

from mimir.domain.estimates import LearnedEstimate
from mimir.domain.plan import Check, Criterion, Plan, Task
from mimir.planning.format.diagnostics import PlanFinding

SCHEMA = 1


def json_shape(
    plan: Plan | None,
    findings: Sequence[PlanFinding],
    learned: Mapping[str, LearnedEstimate] | None = None,
) -> dict[str, object]:
    """Return `{schema, tasks: […], findings: […], learned: […]}`, the same where there are errors; roles are those in force.

    Args:
        plan: None: the file could not be read at all.
        findings: In the order in which they are printed.
        learned: Worker role → what its tasks took in finished runs; None or empty: nothing is known.
    """
    known = learned or {}
    tasks = plan.tasks if plan is not None else ()
    return {
        "schema": SCHEMA,
        "tasks": [_task(task) for task in tasks],
        "findings": [finding_shape(one) for one in findings],
        "learned": [_learned(t, known[t.worker_role]) for t in tasks if t.worker_role in known],
    }


def finding_shape(one: PlanFinding) -> dict[str, object]:
    """Return `{code, severity, line, column, message, suggestion}`."""
    return {
        "code": one.code,
        "severity": one.severity,
        "line": one.line,
        "column": one.column,
        "message": one.message,
        "suggestion": one.suggestion,
    }


def _task(task: Task) -> dict[str, object]:
    return {
        "id": task.id,
        "title": task.title,
        "dependencies": list(task.dependencies),
        "worker_role": task.worker_role,
        "qc_role": task.reviewer,
        "prompt": task.prompt,
        "criteria": [_criterion(one) for one in task.criteria],
        "checks": [_check(one) for one in task.checks],
        "files": list(task.files),
        "context_files": list(task.context_files),
        "tools": list(task.tools),
        "tool_execution": task.tool_execution,
        "estimated_tool_calls": task.estimated_tool_calls,
        "estimated_minutes": task.estimated_minutes,
        "time_limit_minutes": task.time_limit_minutes,
        "max_retries": task.max_retries,
        "model": task.model,
        "parallel_group": task.parallel_group,
        "notes": task.notes,
    }


def _learned(task: Task, known: LearnedEstimate) -> dict[str, object]:
    return {
        "task": task.id,
        "estimated_minutes": task.estimated_minutes,
        "minutes": known.minutes,
        "estimated_tool_calls": task.estimated_tool_calls,
        "tool_calls": known.tool_calls,
        "from_tasks": known.tasks,
    }


def _criterion(one: Criterion) -> dict[str, object]:
    return {"id": one.id, "text": one.text, "points": _number(one.points), "critical": one.critical}


def _number(value: Fraction | None) -> float | None:
    if value is None:
        return None
    return int(value) if value.denominator == 1 else float(value)


def _check(one: Check) -> dict[str, object]:
    return {
        "id": one.id,
        "criteria": list(one.criteria),
        "run": one.run if isinstance(one.run, str) else list(one.run),
        "kind": one.kind,
        "tests": None if one.tests is None else list(one.tests),
        "protect": list(one.protect),
        "required": one.required,
        "timeout_seconds": one.timeout_seconds,
    }
