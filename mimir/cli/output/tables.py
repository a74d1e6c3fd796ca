"""Tables and lines of the commands that only read."""

from collections import Counter
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING

from mimir.cli.console import clean_line
from mimir.cli.layout import table, wrap, wrap_cells
from mimir.cli.live.cells import ASKING, WORDS, clock, number, score_of
from mimir.cli.symbols import Symbols
from mimir.domain.json_value import as_object, as_objects, as_text, as_texts
from mimir.domain.quoted_text import count_noun
from mimir.domain.run import RunResult
from mimir.domain.task_states import ANSWERED

if TYPE_CHECKING:
    from mimir.bootstrap.doctor import DoctorFinding
    from mimir.reporting.audit.verification import AuditResult

MAX_TASKS = 40
"""A run with more tasks is folded."""
CRITERIA = ("executed", "judged", "unverified", "failed")
"""States of a criterion, in the order of display."""
_NEXT = {
    "running": ("mimir status {run}",),
    "paused": ("mimir resume {run}",),
    "completed": ("mimir report {run}", "mimir verify {run}"),
    ANSWERED: ("mimir report {run}", "mimir verify {run}"),
    "completed_with_gaps": ("mimir report {run}", "mimir verify {run}"),
    "failed": ("mimir report {run}",),
    "cancelled": ("mimir report {run}",),
}


def status(
    shape: Mapping[str, object], glyphs: Symbols, width: int, *, every: bool = False
) -> list[str]:
    """Return the state of a run: its facts, a line for each task, the next steps.

    With many tasks, the lines of waiting and completed ones are only counted, unless `every`.
    """
    run, state = as_text(shape.get("run")), as_text(shape.get("status"))
    tasks = as_objects(shape.get("tasks"))
    outcome = as_text(shape.get("outcome"))
    ending = f" ({outcome})" if outcome and outcome != state else ""
    lines = [*wrap_cells([run, state + ending], width), *_facts(shape, width)]
    shown = tasks if every or len(tasks) <= MAX_TASKS else _select_lines(tasks)
    if tasks:
        rows = [_COLUMNS, *(_task_row(task, glyphs) for task in shown)]
        lines += table(rows if shown else [], width, right=(2, 3, 4))
        lines += wrap(_count_hidden(tasks, shown, run), width)
    for task in shown:
        id = clean_line(as_text(task.get("id")))
        checks = [f"{id}, {clean_line(text)}" for text in as_texts(task.get("checks"))]
        lines += [line for text in checks for line in wrap(text, width, first="check ")]
    if any(_criteria(task) for task in shown):
        lines += wrap("criteria: x executed, j judged, u unverified, f failed", width)
    # Actions of the user come before actions of mimir.
    is_open = [one for one in as_objects(shape.get("questions")) if one.get("state") == "open"]
    for one in is_open:
        title = f"{as_text(one.get('id'))}, {as_text(one.get('task'))}: {as_text(one.get('title'))}"
        lines += wrap(clean_line(title), width, first="question ")
    steps = ["mimir inbox"] if is_open else [one.format(run=run) for one in _NEXT.get(state, ())]
    return lines + next_lines(steps, width)


def next_lines(commands: Sequence[str], width: int) -> list[str]:
    """Return commands as `next:` lines."""
    return [line for one in commands for line in wrap(one, width, first="next: ")]


def _select_lines(tasks: Sequence[Mapping[str, object]]) -> Sequence[Mapping[str, object]]:
    """Return the tasks of a large run that a user must see: those under way or in trouble."""
    quiet = ("pending", "completed")
    return [task for task in tasks if as_text(task.get("status")) not in quiet][:MAX_TASKS]


def _count_hidden(
    tasks: Sequence[Mapping[str, object]], shown: Sequence[Mapping[str, object]], run: str
) -> str:
    if len(shown) == len(tasks):
        return ""
    hidden = Counter(as_text(task.get("status")) for task in tasks)
    hidden.subtract(as_text(task.get("status")) for task in shown)
    counts = ", ".join(f"{n:,} {_WORDS.get(state, state)}" for state, n in hidden.items() if n)
    return f"not shown: {counts}; all tasks: mimir show {run}"


def audit_table(found: "AuditResult") -> list[str]:
    """Return the result of recomputing the seals."""
    if found.ok:
        seal = f"seal: {found.seal}" if found.seal else "seal: none yet, the run has not ended"
        # Both may be given to `--seal`; the record covers the report and every stored node too.
        record = [f"record: {found.record}"] if found.record else []
        return [f"{found.run}: {found.records} records recomputed, all equal.", seal, *record]
    count = len(found.problems)
    head = f"{found.run}: {count} of {found.records} records differ from their sealed values:"
    return [head, *(f"  {clean_line(problem)}" for problem in found.problems)]


def doctor_table(found: "Sequence[DoctorFinding]", glyphs: Symbols, width: int) -> list[str]:
    """Return a line for each part that mimir needs; a broken part is followed by its fix."""
    lines: list[str] = []
    for one in found:
        mark = glyphs.passed if one.ok else glyphs.failed
        lines += wrap(f"{one.subject}: {clean_line(one.detail)}", width, first=f"{mark} ")
        lines += wrap(clean_line(one.fix), width, first="    ")
    return lines


def apply_table(result: RunResult) -> list[str]:
    """Return the applied files, or the files that prevented it."""
    count = len(result.applied)
    if result.conflicts:
        head = "No file was applied: you changed these files since the run began."
    else:
        head = result.message or f"{count_noun(count, 'file')} applied."
    lines = [head, *(f"  {path}" for path in result.conflicts or result.applied)]
    if result.marked:
        lines.append("Settle the conflicts in these files:")
        lines += [f"  {path}" for path in result.marked]
    return lines + ([f"next: {result.next_step}"] if result.next_step else [])


def orientation(
    shape: Mapping[str, object], width: int, *, has_store: bool, handoff: str = ""
) -> list[str]:
    """Return about twelve lines: the state of the project and commands to try."""
    model, plan = as_text(shape.get("model")), as_text(shape.get("plan"))
    run, outcome = as_text(shape.get("run")), as_text(shape.get("outcome"))
    lines = [
        "mimir turns a request into a proven result: planned, executed, checked, judged, sealed.",
        f"store: {as_text(shape.get('store'))}{'' if has_store else ' (not created yet)'}",
        f"model: {model or 'none yet; mimir init chooses one, or set MIMIR_MODEL'}",
    ]
    lines += [f"plan:  chains/{plan}"] if plan else []
    lines += [f"run:   {run} {outcome}"] if run else []
    lines += wrap(f"Resuming from: {handoff}", width) if handoff else []
    lines.append("try:")
    if run:
        lines += [f"  {step.format(run=run)}" for step in _NEXT.get(outcome, ())]
    if plan and model and outcome not in ("running", "paused"):
        lines.append(f"  mimir execute {plan}")
    lines.append(
        '  mimir chain "REQUEST"'
        if model
        else "  mimir init        choose a model, by four questions"
    )
    if not run:
        lines.append("  mimir demo        a whole run, offline, without a key")
    lines.append("  mimir --help      all commands")
    return lines


def _facts(shape: Mapping[str, object], width: int) -> list[str]:
    """Return the known facts of the run as a whole."""
    elapsed = number(shape.get("elapsed_seconds"))
    used = [
        "" if elapsed is None else clock(elapsed),
        _count_line(shape.get("calls"), "model calls"),
        _count_line(shape.get("tokens"), "tokens"),
        _cost(shape),
    ]
    facts = (
        *(("broken", text) for text in as_texts(shape.get("broken_checks"))),
        ("title", as_text(shape.get("title"))),
        ("plan", as_text(shape.get("plan"))),
        ("why", as_text(shape.get("message")) or as_text(shape.get("reason"))),
        ("used", ", ".join(part for part in used if part)),
    )
    return [
        line
        for name, value in facts
        if value
        for line in wrap(clean_line(value), width, first=f"{name}: ", rest="  ")
    ]


def _cost(shape: Mapping[str, object]) -> str:
    cost, limit = as_text(shape.get("cost")), as_text(shape.get("max_cost"))
    if not cost:
        return ""
    more = " plus models without a price" if shape.get("unpriced") else ""
    date = as_text(shape.get("prices_as_of"))
    dated = f" (prices of {date})" if date else ""
    return f"cost {cost}" + (f" of {limit}" if limit else "") + dated + more


_COLUMNS = ("  task", "phase", "try", "score", "calls", "criteria", "title")


def _task_row(task: Mapping[str, object], glyphs: Symbols) -> tuple[str, ...]:
    id, state = clean_line(as_text(task.get("id"))), as_text(task.get("status"))
    limit, calls = task.get("limit"), task.get("tool_calls")
    used = f"{calls}/{limit}" if isinstance(limit, int) else str(calls or 0)
    blocker = as_text(task.get("blocked_by"))
    reason = f"waited for {blocker}" if blocker else as_text(task.get("cause")).replace("_", " ")
    return (
        f"{glyph(state, glyphs)} {id}",
        phase_of(task),
        str(task.get("attempts") or 0),
        score_of(number(task.get("score"))),
        used,
        _criteria(task),
        clean_line(": ".join(part for part in (reason, as_text(task.get("title"))) if part)),
    )


_WORDS = {status.value: word for status, word in WORDS.items()}


def phase_of(task: Mapping[str, object]) -> str:
    """Return the displayed word of a task's state."""
    state = as_text(task.get("status"))
    return ASKING if task.get("question") else _WORDS.get(state, clean_line(state))


def _criteria(task: Mapping[str, object]) -> str:
    """Return the counts in short: `3x 1j` means three executed and one judged."""
    counts = as_object(task.get("criteria"))
    named = [(counts.get(name), letter) for name, letter in zip(CRITERIA, "xjuf", strict=True)]
    return " ".join(f"{count}{letter}" for count, letter in named if count)


def glyph(state: str, glyphs: Symbols) -> str:
    """Return the symbol of a task's status."""
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


def _count_line(value: object, noun: str) -> str:
    count = number(value)
    return "" if count is None else f"{int(count):,} {noun}"
