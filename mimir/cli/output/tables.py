"""What the looking commands print, as lines. Pure."""

from collections.abc import Mapping, Sequence

from mimir.cli.console import clean_line
from mimir.cli.facade import Diagnosis, Verified
from mimir.cli.live.board import WORDS, items, members, number, text
from mimir.cli.live.line_output import clock, score_of
from mimir.cli.symbols import Symbols
from mimir.domain.run import RunResult

NAME_COLUMNS = 24
"""Widest column of task ids."""
_CRITERIA = ("executed", "judged", "unverified", "failed")
_LETTERS = "xjuf"
_WORDS = {status.value: word for status, word in WORDS.items()}
_ADVICE = {
    "running": ("mimir status {run}",),
    "paused": ("mimir resume {run}",),
    "completed": ("mimir report {run}", "mimir verify {run}"),
    "completed_with_gaps": ("mimir report {run}", "mimir verify {run}"),
    "failed": ("mimir report {run}",),
    "cancelled": ("mimir report {run}",),
}


def status(shape: Mapping[str, object], glyphs: Symbols, width: int) -> list[str]:
    """Return where a run stands: a line for it, one a task, and what to do next."""
    run, state = text(shape.get("run")), text(shape.get("status"))
    tasks = items(shape.get("tasks"))
    outcome = text(shape.get("outcome"))
    head = f"{run}  {state}" + (f" ({outcome})" if outcome and outcome != state else "")
    lines = [head, *_facts(shape)]
    column = min(NAME_COLUMNS, max((len(text(t.get("id"))) for t in tasks), default=0))
    if tasks:
        lines.append(_fit(_titles(column), width))
    lines += [_fit(_task(task, column, glyphs), width) for task in tasks]
    if any(_criteria(task) for task in tasks):
        lines.append("criteria: x executed, j judged, u unverified, f failed")
    return lines + [f"next: {step.format(run=run)}" for step in _ADVICE.get(state, ())]


def audit_table(found: Verified) -> list[str]:
    """Return what recomputing the seals showed."""
    if found.ok:
        seal = f"seal: {found.seal}" if found.seal else "seal: none yet, the run has not ended"
        return [f"{found.run}: {found.records} records, each is the one that was sealed.", seal]
    head = f"{found.run}: {len(found.problems)} of {found.records} records are not what was sealed:"
    return [head, *(f"  {clean_line(problem)}" for problem in found.problems)]


def doctor_table(found: Sequence[Diagnosis], glyphs: Symbols) -> list[str]:
    """Return what was looked at, a line each; what is wrong has its remedy below."""
    lines: list[str] = []
    for one in found:
        lines.append(f"{glyphs.passed if one.ok else glyphs.failed} {one.what}: {one.detail}")
        if one.fix:
            lines.append(f"    {one.fix}")
    return lines


def apply_table(ending: RunResult) -> list[str]:
    """Return what came into the person's files, or why nothing did."""
    if ending.conflicts:
        head = "Nothing was applied: you changed these files meanwhile."
    else:
        head = ending.message or f"{len(ending.applied)} files applied."
    return [head, *(f"  {path}" for path in ending.conflicts or ending.applied)]


def orientation(shape: Mapping[str, object], *, has_store: bool) -> list[str]:
    """Return at most twelve lines: what there is here, and what to try."""
    model, plan = text(shape.get("model")), text(shape.get("plan"))
    run, outcome = text(shape.get("run")), text(shape.get("outcome"))
    lines = [
        "mimir turns a request into a proven result: planned, worked, checked, judged, sealed.",
        f"store: {text(shape.get('store'))}{'' if has_store else ' (not made yet)'}",
        f"model: {model or 'none; set MIMIR_MODEL, and OPENAI_API_KEY or OPENAI_BASE_URL'}",
    ]
    lines += [f"plan:  chains/{plan}"] if plan else []
    lines += [f"run:   {run} {outcome}"] if run else []
    lines.append("try:")
    if run:
        lines += [f"  {step.format(run=run)}" for step in _ADVICE.get(outcome, ())]
    if plan and outcome not in ("running", "paused"):
        lines.append(f"  mimir execute {plan}")
    if model:
        lines.append('  mimir chain "what you want"')
    if not run:
        lines.append("  mimir demo        a whole run, offline, no key needed")
    lines.append("  mimir --help      all commands")
    return lines


def _cost(shape: Mapping[str, object]) -> str:
    """Say what a run has cost where prices are known."""
    cost, most = text(shape.get("cost")), text(shape.get("max_cost"))
    if not cost:
        return ""
    more = " and what models without a price cost" if shape.get("unpriced") else ""
    return f"cost {cost}" + (f" of {most}" if most else "") + more


def _facts(shape: Mapping[str, object]) -> list[str]:
    """Return what is known of the run as a whole; what is not known is left out."""
    elapsed = number(shape.get("elapsed_seconds"))
    used = [
        "" if elapsed is None else clock(elapsed),
        _counted(shape.get("calls"), "model calls"),
        _counted(shape.get("tokens"), "tokens"),
        _cost(shape),
    ]
    facts = (
        ("title", text(shape.get("title"))),
        ("plan", text(shape.get("plan"))),
        ("why", text(shape.get("message")) or text(shape.get("reason"))),
        ("used", ", ".join(part for part in used if part)),
    )
    return [f"{name}: {clean_line(value)}" for name, value in facts if value]


def _titles(column: int) -> str:
    return f"  {'task':<{column}}  {'phase':<9}  {'try':>3}  {'score':>5}  {'calls':>7}  criteria"


def _task(task: Mapping[str, object], column: int, glyphs: Symbols) -> str:
    id, state = clean_line(text(task.get("id"))), text(task.get("status"))
    limit, calls = task.get("limit"), task.get("tool_calls")
    used = f"{calls}/{limit}" if isinstance(limit, int) else str(calls or 0)
    score = score_of(number(task.get("score")))
    parts = [
        f"{_glyph(state, glyphs)} {_cut(id, column, glyphs):<{column}}",
        f"{_word(state):<9}",
        f"{task.get('attempts') or 0!s:>3}",
        f"{score:>5}",
        f"{used:>7}",
        f"{_criteria(task):<8}",
        _note(task),
    ]
    return "  ".join(parts).rstrip()


def _criteria(task: Mapping[str, object]) -> str:
    """Return the counts in short: `3x 1j` is three executed, one judged."""
    counts = members(task.get("criteria"))
    if not any(counts.values()):
        return ""
    named = [(counts.get(name), letter) for name, letter in zip(_CRITERIA, _LETTERS, strict=True)]
    return " ".join(f"{count}{letter}" for count, letter in named if count)


def _note(task: Mapping[str, object]) -> str:
    """Return why it is not completed, in a few words."""
    blocker, cause = text(task.get("blocked_by")), text(task.get("cause"))
    return clean_line(f"waited for {blocker}" if blocker else cause) if blocker or cause else ""


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


def _word(state: str) -> str:
    return _WORDS[state] if state in _WORDS else clean_line(state)


def _cut(name: str, column: int, glyphs: Symbols) -> str:
    return name if len(name) <= column else f"{name[: column - 1]}{glyphs.cut}"


def _fit(line: str, width: int) -> str:
    return line if len(line) <= width else line[:width].rstrip()


def _counted(value: object, what: str) -> str:
    count = number(value)
    return "" if count is None else f"{int(count):,} {what}"
