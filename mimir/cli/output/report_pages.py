"""The report on a terminal: a short page, or the whole document laid out."""

import re
from collections.abc import Iterable, Mapping

from mimir.cli.console import clean_line
from mimir.cli.layout import MIN_TEXT, columns_of, table, text_block, wrap, wrap_cells
from mimir.cli.live.cells import clock, number, score_of
from mimir.cli.output.tables import MAX_TASKS, glyph
from mimir.cli.symbols import Symbols
from mimir.domain.json_value import as_object, as_objects, as_text, as_texts

Shape = Mapping[str, object]
MAX_DECISIONS = 10
MAX_PATH = 6
"""Tasks of the critical path that are shown: its end."""
_CELL_END = r"(?<!\\)\|"


def short(shape: Shape, glyphs: Symbols, width: int, path: str) -> list[str]:
    """Return the report in short: outcome, proof, tasks, problems, next steps."""
    run, outcome = as_text(shape.get("run")), as_text(shape.get("outcome"))
    lines = wrap_cells([f"{outcome}:", clean_line(as_text(shape.get("title")))], width)
    for text in (as_text(shape.get("because")), as_text(shape.get("message")), _effort(shape)):
        lines += wrap(clean_line(text), width, rest="  ")
    lines += wrap(_schedule(shape, glyphs), width, first="lower bound: ", rest="  ")
    lines += wrap(_proof(shape), width, first="proof: ", rest="  ")
    lines += _tasks(shape, glyphs, width)
    lines += _section("failed", _failures(shape), width)
    lines += _section("decisions", _decisions(shape), width)
    lines += _section("warnings", as_texts(shape.get("warnings")), width)
    for step in as_objects(shape.get("next_steps"))[:2]:
        # The seal is on this page already.
        command = as_text(step.get("command")).partition(" --seal")[0]
        lines += wrap(command, width, first="next: ")
    lines += wrap(f"mimir report {run} --full", width, first="whole report: ")
    return [*lines, *wrap(path, width, first="file: ", rest="  ")]


def _effort(shape: Shape) -> str:
    totals = as_object(shape.get("totals"))
    seconds, cost = number(shape.get("elapsed_seconds")), as_text(totals.get("cost"))
    parts = [as_text(shape.get("run"))]
    parts += [clock(seconds)] if seconds is not None else []
    parts += [_count(totals, name) for name in ("tasks", "attempts", "model_calls", "tokens")]
    date = as_text(totals.get("prices_as_of"))
    dated = f" (prices of {date})" if date else ""
    return ", ".join([*parts, *([f"cost {cost}{dated}"] if cost else [])])


def _schedule(shape: Shape, glyphs: Symbols) -> str:
    """Return the lower bound, the end of the critical path and the loss; empty: not known."""
    schedule = as_object(shape.get("schedule"))
    bound, loss = number(schedule.get("bound_seconds")), number(schedule.get("loss_seconds"))
    if bound is None or loss is None:
        return ""
    path = [clean_line(id) for id in as_texts(schedule.get("critical_path"))]
    named = f" {glyphs.arrow} ".join(
        [*([glyphs.cut] if len(path) > MAX_PATH else []), *path[-MAX_PATH:]]
    )
    return f"{clock(bound)}, critical path {named}; loss {clock(loss)}"


def _count(totals: Shape, name: str) -> str:
    value = int(number(totals.get(name)) or 0)
    noun = name.replace("_", " ")
    return f"{value:,} {noun[:-1] if value == 1 else noun}"


def _proof(shape: Shape) -> str:
    totals, proof = as_object(shape.get("totals")), as_object(shape.get("proof"))
    criteria = as_object(totals.get("criteria"))
    named = (
        ("executed", "passed by execution"),
        ("judged", "passed by judgement"),
        ("unverified", "unverified"),
        ("failed", "failed"),
    )
    counts = [f"{count} {text}" for name, text in named if (count := criteria.get(name))]
    seal = as_text(proof.get("seal"))
    parts = [
        ", ".join(counts) or "no criterion was decided",
        f"{proof.get('records')} sealed records",
    ]
    return "; ".join([*parts, *([f"seal {seal[:12]}"] if seal else [])])


def _tasks(shape: Shape, glyphs: Symbols, width: int) -> list[str]:
    tasks = as_objects(shape.get("tasks"))
    shown = tasks
    if len(tasks) > MAX_TASKS:
        shown = [task for task in tasks if task.get("status") != "completed"][:MAX_TASKS]
    rows = [_task_row(task, glyphs) for task in shown]
    lines = table(
        [("  task", "score", "attempts", "title"), *rows] if rows else [], width, right=(1, 2)
    )
    hidden = len(tasks) - len(shown)
    return lines + (wrap(f"{hidden:,} further tasks: --full", width) if hidden else [])


def _task_row(task: Shape, glyphs: Symbols) -> tuple[str, ...]:
    status = as_text(task.get("status"))
    why = as_text(task.get("cause")).replace("_", " ") or ("" if status == "completed" else status)
    title = ": ".join(part for part in (why, as_text(task.get("title"))) if part)
    return (
        f"{glyph(status, glyphs)} {clean_line(as_text(task.get('id')))}",
        score_of(number(task.get("score"))),
        f"{task.get('attempts')} of {task.get('attempts_granted')}",
        clean_line(title),
    )


def _failures(shape: Shape) -> list[str]:
    return [
        f"{as_text(one.get('task'))}: {'; '.join(as_texts(one.get('root_causes'))[:2]) or as_text(one.get('cause'))}"
        for one in as_objects(shape.get("failures"))
    ]


def _decisions(shape: Shape) -> list[str]:
    found = [
        f"{as_text(one.get('task')) or 'the run'}: {as_text(one.get('text'))}"
        for one in as_objects(shape.get("decisions"))
    ]
    more = [f"{len(found) - MAX_DECISIONS} further ones: --full"]
    return found[:MAX_DECISIONS] + (more if len(found) > MAX_DECISIONS else [])


def _section(name: str, texts: Iterable[str], width: int) -> list[str]:
    lines = [
        line for text in texts for line in wrap(clean_line(text), width, first="  ", rest="    ")
    ]
    return [f"{name}:", *lines] if lines else []


def lay_out(markdown: str, width: int) -> list[str]:
    """Return the whole report for a terminal: tables aligned, paragraphs wrapped, no markup."""
    lines: list[str] = []
    rows: list[list[str]] = []
    fence = ""
    for line in markdown.split("\n"):
        if not fence and line.startswith("|"):
            rows.append(_cells(line))
            continue
        lines += _laid_table(rows, width)
        rows = []
        mark = re.match(r"`{3,}|~{3,}", line)
        if mark and (not fence or line.strip() == fence):
            fence = "" if fence else mark[0]
        elif fence:
            lines += text_block(line, width)
        else:
            lines += _paragraph(line, width)
    return [*lines, *_laid_table(rows, width)]


def _cells(line: str) -> list[str]:
    return [_plain(cell.strip()) for cell in re.split(_CELL_END, line)[1:-1]]


def _laid_table(rows: list[list[str]], width: int) -> list[str]:
    if len(rows) < 2:
        return []
    head, marks, *body = rows
    sizes = [max(map(columns_of, cells)) for cells in zip(head, *body, strict=True)]
    if sum(sizes[:-1]) + 2 * len(sizes) + MIN_TEXT > width:
        return [line for row in body for line in _stack_row(head, row, width)]
    right = [n for n, mark in enumerate(marks[:-1]) if mark.endswith(":")]
    return table([head, *body], width, right=right)


def _stack_row(head: list[str], row: list[str], width: int) -> list[str]:
    """Return a row that is too wide for a line: its first cell, then the named others."""
    named = "; ".join(
        f"{name} {cell}" for name, cell in zip(head[1:], row[1:], strict=True) if cell
    )
    return [*wrap(row[0], width), *wrap(named, width, first="  ", rest="    ")]


def _paragraph(line: str, width: int) -> list[str]:
    if not line.strip():
        return [""]
    heading = re.match(r"#+ (.*)", line)
    if heading:
        return wrap(_plain(heading[1]), width, first="== ", rest="   ")
    bullet = re.match(r"\s*- ", line)
    first = bullet[0] if bullet else ""
    return wrap(_plain(line[len(first) :]), width, first=first)


def _plain(text: str) -> str:
    return clean_line(text.replace("**", "").replace("`", "").replace("\\|", "|"))
