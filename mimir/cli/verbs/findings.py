"""What is wrong with a plan, as `mimir check` says it: lines for people and editors, JSON for scripts. Pure."""

from collections.abc import Mapping, Sequence
from fractions import Fraction
from typing import cast

from mimir.cli.console import clean_line
from mimir.domain.plan import Plan, Task
from mimir.domain.plan_json import plan_to_json
from mimir.planning.diagnostics import Finding

SCHEMA = 1


def is_error(finding: Finding) -> bool:
    """True if a plan with this finding cannot run."""
    return finding.severity == "error"


def as_lines(findings: Sequence[Finding], file: str) -> list[str]:
    """Return `file:line:column: severity CODE: message`, in the file's order, each with its suggestion on a line of its own."""
    lines: list[str] = []
    for one in sorted(findings, key=lambda f: (f.line, f.column)):
        place = f"{clean_line(file)}:{one.line}:{one.column}"
        lines.append(f"{place}: {one.severity} {one.code}: {clean_line(one.message)}")
        if one.suggestion:
            lines.append(f"    {clean_line(one.suggestion)}")
    return lines


def summary(findings: Sequence[Finding], tasks: int, file: str) -> str:
    """Return the last line: how many of what."""
    errors = sum(map(is_error, findings))
    counts = [_counted(tasks, "task")]
    counts += [_counted(errors, "error")] if errors else []
    counts += [_counted(len(findings) - errors, "warning")] if len(findings) > errors else []
    verdict = "cannot run" if errors else "can run"
    return f"{clean_line(file)} {verdict}: {', '.join(counts)}."


def as_json(plan: Plan | None, findings: Sequence[Finding]) -> dict[str, object]:
    """Return the shape of `check --json`; it is the same where there are errors. None: the file could not be read."""
    return {
        "schema": SCHEMA,
        "tasks": _tasks(plan) if plan else [],
        "findings": [
            {
                "code": one.code,
                "severity": one.severity,
                "line": one.line,
                "column": one.column,
                "message": one.message,
                "suggestion": one.suggestion,
            }
            for one in findings
        ],
    }


def _tasks(plan: Plan) -> list[dict[str, object]]:
    written = cast("list[dict[str, object]]", plan_to_json(plan)["tasks"])
    return [_task(task, values) for task, values in zip(plan.tasks, written, strict=True)]


def _task(task: Task, values: Mapping[str, object]) -> dict[str, object]:
    """Return a task with its roles in force and with points as numbers."""
    criteria = cast("list[dict[str, object]]", values["criteria"])
    points = [
        {**item, "points": _number(c.points)}
        for item, c in zip(criteria, task.criteria, strict=True)
    ]
    return {**values, "qc_role": task.reviewer, "criteria": points}


def _number(points: Fraction | None) -> int | float | None:
    if points is None:
        return None
    return points.numerator if points.denominator == 1 else float(points)


def _counted(count: int, what: str) -> str:
    return f"{count} {what}{'' if count == 1 else 's'}"
