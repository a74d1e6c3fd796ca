"""Tables and lines of the commands that only read."""

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING

from mimir.cli.console import clean_line
from mimir.cli.live.board import WORDS, number
from mimir.cli.live.line_output import clock, score_of
from mimir.cli.symbols import Symbols
from mimir.domain.json_value import as_object, as_objects, as_text, as_texts
from mimir.domain.run import RunResult

if TYPE_CHECKING:
    from mimir.orchestrator.runs.inspection import DoctorFinding
    from mimir.reporting.audit.verification import AuditResult

NAME_COLUMNS = 24
"""Widest column of task ids."""
CRITERIA = ("executed", "judged", "unverified", "failed")
"""States of a criterion, in the order of display."""
_NEXT = {
    "running": ("mimir status {run}",),
    "paused": ("mimir resume {run}",),
    "completed": ("mimir report {run}", "mimir verify {run}"),
    "completed_with_gaps": ("mimir report {run}", "mimir verify {run}"),
    "failed": ("mimir report {run}",),
    "cancelled": ("mimir report {run}",),
}


def status(shape: Mapping[str, object], glyphs: Symbols, width: int) -> list[str]:
    """Return the state of a run: its facts, a line for each task, the next steps."""
    run, state = as_text(shape.get("run")), as_text(shape.get("status"))
    tasks = as_objects(shape.get("tasks"))
    outcome = as_text(shape.get("outcome"))
    head = f"{run}  {state}" + (f" ({outcome})" if outcome and outcome != state else "")
    lines = [head, *_facts(shape)]
    column = min(NAME_COLUMNS, max((len(as_text(t.get("id"))) for t in tasks), default=0))
    if tasks:
        titles = (
            f"  {'task':<{column}}  {'phase':<9}  {'try':>3}  {'score':>5}  {'calls':>7}  criteria"
        )
        lines.append(_fit(titles, width))
    lines += [_fit(_task_line(task, column, glyphs), width) for task in tasks]
    if any(_criteria(task) for task in tasks):
        lines.append("criteria: x executed, j judged, u unverified, f failed")
    return lines + [f"next: {step.format(run=run)}" for step in _NEXT.get(state, ())]


def audit_table(found: "AuditResult") -> list[str]:
    """Return the result of recomputing the seals."""
    if found.ok:
        seal = f"seal: {found.seal}" if found.seal else "seal: none yet, the run has not ended"
        # Both may be given to `--seal`; the record covers the report and every stored node too.
        record = [f"record: {found.record}"] if found.record else []
        return [f"{found.run}: {found.records} records recomputed, all equal.", seal, *record]
    count = len(found.problems)
    head = f"{found.run}: {count} of {found.records} records differ from what was sealed:"
    return [head, *(f"  {clean_line(problem)}" for problem in found.problems)]


def doctor_table(found: "Sequence[DoctorFinding]", glyphs: Symbols) -> list[str]:
    """Return a line for each part that mimir needs; a broken part is followed by its fix."""
    lines: list[str] = []
    for one in found:
        lines.append(f"{glyphs.passed if one.ok else glyphs.failed} {one.what}: {one.detail}")
        if one.fix:
            lines.append(f"    {one.fix}")
    return lines


def apply_table(result: RunResult) -> list[str]:
    """Return the applied files, or the files that prevented it."""
    count = len(result.applied)
    if result.conflicts:
        head = "No file was applied: you changed these files since the run began."
    else:
        head = result.message or f"{count} file{'' if count == 1 else 's'} applied."
    lines = [head, *(f"  {path}" for path in result.conflicts or result.applied)]
    if result.marked:
        lines.append("Settle the conflicts in these files:")
        lines += [f"  {path}" for path in result.marked]
    return lines + ([f"next: {result.next_step}"] if result.next_step else [])


def orientation(shape: Mapping[str, object], *, has_store: bool) -> list[str]:
    """Return at most twelve lines: the state of the project and what to try."""
    model, plan = as_text(shape.get("model")), as_text(shape.get("plan"))
    run, outcome = as_text(shape.get("run")), as_text(shape.get("outcome"))
    lines = [
        "mimir turns a request into a proven result: planned, executed, checked, judged, sealed.",
        f"store: {as_text(shape.get('store'))}{'' if has_store else ' (not created yet)'}",
        f"model: {model or 'none; set MIMIR_MODEL, and OPENAI_API_KEY or OPENAI_BASE_URL'}",
    ]
    lines += [f"plan:  chains/{plan}"] if plan else []
    lines += [f"run:   {run} {outcome}"] if run else []
    lines.append("try:")
    if run:
        lines += [f"  {step.format(run=run)}" for step in _NEXT.get(outcome, ())]
    if plan and outcome not in ("running", "paused"):
        lines.append(f"  mimir execute {plan}")
    if model:
        lines.append('  mimir chain "REQUEST"')
    if not run:
        lines.append("  mimir demo        a whole run, offline, without a key")
    lines.append("  mimir --help      all commands")
    return lines


def _facts(shape: Mapping[str, object]) -> list[str]:
    """Return the known facts of the run as a whole."""
    elapsed = number(shape.get("elapsed_seconds"))
    used = [
        "" if elapsed is None else clock(elapsed),
        _count_line(shape.get("calls"), "model calls"),
        _count_line(shape.get("tokens"), "tokens"),
        _cost(shape),
    ]
    broken = [f"broken: {clean_line(text)}" for text in as_texts(shape.get("broken_checks"))]
    facts = (
        ("title", as_text(shape.get("title"))),
        ("plan", as_text(shape.get("plan"))),
        ("why", as_text(shape.get("message")) or as_text(shape.get("reason"))),
        ("used", ", ".join(part for part in used if part)),
    )
    return [*broken, *(f"{name}: {clean_line(value)}" for name, value in facts if value)]


def _cost(shape: Mapping[str, object]) -> str:
    cost, limit = as_text(shape.get("cost")), as_text(shape.get("max_cost"))
    if not cost:
        return ""
    more = " plus models without a price" if shape.get("unpriced") else ""
    return f"cost {cost}" + (f" of {limit}" if limit else "") + more


def _task_line(task: Mapping[str, object], column: int, glyphs: Symbols) -> str:
    id, state = clean_line(as_text(task.get("id"))), as_text(task.get("status"))
    name = id if len(id) <= column else f"{id[: column - 1]}{glyphs.cut}"
    limit, calls = task.get("limit"), task.get("tool_calls")
    used = f"{calls}/{limit}" if isinstance(limit, int) else str(calls or 0)
    blocker = as_text(task.get("blocked_by"))
    parts = [
        f"{_glyph(state, glyphs)} {name:<{column}}",
        f"{_WORDS[state] if state in _WORDS else clean_line(state):<9}",
        f"{task.get('attempts') or 0!s:>3}",
        f"{score_of(number(task.get('score'))):>5}",
        f"{used:>7}",
        f"{_criteria(task):<8}",
        clean_line(f"waited for {blocker}" if blocker else as_text(task.get("cause"))),
    ]
    return "  ".join(parts).rstrip()


_WORDS = {status.value: word for status, word in WORDS.items()}


def _criteria(task: Mapping[str, object]) -> str:
    """Return the counts in short: `3x 1j` means three executed and one judged."""
    counts = as_object(task.get("criteria"))
    named = [(counts.get(name), letter) for name, letter in zip(CRITERIA, "xjuf", strict=True)]
    return " ".join(f"{count}{letter}" for count, letter in named if count)


def _glyph(state: str, glyphs: Symbols) -> str:
    match state:
        case "completed":
            return glyphs.passed
        case "failed":
            return glyphs.failed
        case "blocked" | "cancelled":
            return glyphs.blocked
        case "pending":
            return glyphs.waiting
        case _:
            return glyphs.running


def _fit(line: str, width: int) -> str:
    return line if len(line) <= width else line[:width].rstrip()


def _count_line(value: object, what: str) -> str:
    count = number(value)
    return "" if count is None else f"{int(count):,} {what}"
