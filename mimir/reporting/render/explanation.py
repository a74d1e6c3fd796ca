"""Explanation of the criteria of one task for a terminal: each with its decision. Pure."""

import shlex
import textwrap
from collections.abc import Iterator

from mimir.domain.json_value import JsonObject, as_object, as_text, as_texts, as_whole_number
from mimir.domain.plan import Task
from mimir.domain.task_states import shown_state
from mimir.domain.test_results import NO_CONTROL, describe_tests
from mimir.domain.verdict import CriterionResult
from mimir.reporting.summary.proofs import (
    deciding_attempt,
    describe_sealed_end,
    members,
    record_id,
    sealed_counts,
)
from mimir.reporting.summary.run_data import TaskData

WIDTH = 80
_LABEL = 10
"""Columns of the labels; a text is indented by them."""

_Sealed = tuple[str, str, JsonObject]
"""Id of the record, its kind, its body."""


def explain_task(task: Task, data: TaskData) -> list[str]:
    """Return basis, command, tests, runs, control and records of each criterion of a task."""
    attempt = deciding_attempt(data) or data.last_attempt
    if attempt is None:
        return [f"{task.id}: no attempt was made."]
    head = f"{task.id}: {shown_state(data.status, is_read_only=data.is_read_only)}, attempt {attempt.number} of {data.made}"
    sealed = [(record_id(attempt.id, one), one.kind, members(one)) for one in attempt.evidence]
    verdict = next((id for id, kind, _ in reversed(sealed) if kind == "verdict"), "none")
    results = attempt.judgement.criteria if attempt.judgement else ()
    lines = [head, f"verdict   {verdict}"]
    if not results:
        reason = "The task has no criterion" if data.is_read_only else "No verdict was given"
        lines.append(f"{reason}, so no criterion was decided.")
    for result in results:
        lines += ["", *_criterion_lines(task, result, sealed)]
    return lines


def _criterion_lines(task: Task, result: CriterionResult, sealed: list[_Sealed]) -> Iterator[str]:
    yield from _wrap(result.id, f"{result.state}: {result.text}")
    checks = [one for one in task.checks if result.id in one.criteria]
    is_executed = result.basis == "executed"
    is_controlled = any(kind == "control" for _, kind, _ in sealed)
    executed = "executed by checks" if is_controlled else f"{NO_CONTROL}; the run made none"
    basis = executed if is_executed else "judged by QC"
    yield from _wrap("  basis", basis + (f"; {result.reason}" if result.reason else ""))
    if result.quote:
        yield from _wrap("  quote", f"{result.quote!r} ({result.source})")
    for check in checks:
        yield from _wrap("  check", f"{check.id}{'' if check.required else ' (optional)'}")
        yield from _wrap("  command", shlex.join(check.argv))
        yield from _check_lines([one for one in sealed if one[2].get("check") == check.id])


def _check_lines(sealed: list[_Sealed]) -> Iterator[str]:
    runs = [(id, body) for id, kind, body in sealed if kind == "check"]
    last = next((body for _, body in reversed(runs) if body.get("tests")), None)
    if last:
        yield from _wrap("  tests", _describe_tests(as_object(last.get("tests"))))
    for _, body in runs:
        phase = as_text(body.get("phase"))
        again = " (second run)" if body.get("again") is True else ""
        yield from _wrap(f"  {phase or 'run'}", _describe_run(body) + again)
    controls = [(id, body) for id, kind, body in sealed if kind == "control"]
    for _, body in controls:
        yield from _wrap("  control", _describe_control(body))
    if not controls:
        yield from _wrap("  control", "none was made")
    yield from _wrap("  records", " ".join(id for id, _ in (*runs, *controls)) or "none")


def _describe_run(body: JsonObject) -> str:
    ended = describe_sealed_end(body)
    findings = " ".join(as_texts(body.get("findings")))
    return (
        f"{'green' if ended == 'exit 0' else 'red'}, {ended}{f'; {findings}' if findings else ''}"
    )


def _describe_control(body: JsonObject) -> str:
    counts = [as_whole_number(body.get(name)) or 0 for name in ("sensitive", "counted")]
    tests = f"{describe_tests(counts[0], counts[1])} " if counts[1] else ""
    state, reason = as_text(body.get("control")), as_text(body.get("reason"))
    return f"{tests}{state} by {as_text(body.get('method'))}" + (f"; {reason}" if reason else "")


def _describe_tests(tests: JsonObject) -> str:
    """Return the counts of a sealed report: `12 of 12 tests (pytest)`."""
    passed, counted, skipped = sealed_counts(tests)
    shown = describe_tests(passed, counted, skipped=skipped) or "no result"
    runner, problem = as_text(tests.get("runner")), as_text(tests.get("problem"))
    return f"{shown} ({runner})" + (f"; {problem}" if problem else "")


def _wrap(label: str, text: str) -> list[str]:
    indent = " " * _LABEL
    first = f"{label:<{_LABEL}}" if len(label) < _LABEL else f"{label} "
    return textwrap.wrap(
        " ".join(text.split()), WIDTH, initial_indent=first, subsequent_indent=indent
    ) or [first.rstrip()]
