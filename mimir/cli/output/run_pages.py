"""Pages of `mimir runs` and `mimir show`: lists, tasks, attempts, calls and outputs."""

import shlex
from collections.abc import Mapping, Sequence

from mimir.cli.console import clean, clean_line
from mimir.cli.layout import table, text_block, wrap, wrap_cells
from mimir.cli.symbols import Symbols
from mimir.domain.json_value import as_number, as_objects, as_text, as_texts
from mimir.domain.quoted_text import count_noun

_WORDS = {
    "pending": "waiting",
    "worker_executing": "working",
    "worker_completed": "checking",
    "qc_executing": "judging",
    "qc_passed": "merging",
    "qc_failed": "rejected",
    "preparing_retry": "rejected",
}
"""Status of a task or an attempt → displayed word. A retry follows a rejected attempt."""
SHOWN_RUNS = 20
"""Runs of a list without `--all`."""
ANSWER_CHARS = 2_000
"""Most characters of an answer or a prompt on a page; the JSON has all."""

Shape = Mapping[str, object]
_AGES = ((86_400 * 2, 86_400, "d"), (3_600 * 2, 3_600, "h"), (120, 60, "min"))


def run_list(runs: Sequence[Shape], width: int, *, every: bool) -> list[str]:
    """Return a line for each run, newest first."""
    if not runs:
        return ["This project has no run yet.", 'next: mimir execute "REQUEST"']
    shown = runs if every else runs[:SHOWN_RUNS]
    rows = [("run", "state", "done", "cost", "age", "title"), *map(_run_row, shown)]
    lines = table(rows, width, right=(2, 3, 4))
    if len(shown) < len(runs):
        lines.append(f"{len(runs) - len(shown)} older runs: mimir runs --all")
    return [*lines, f"next: mimir show {as_text(shown[0].get('run'))}"]


def _run_row(run: Shape) -> tuple[str, ...]:
    is_plan = run.get("kind") == "plan"
    return (
        clean_line(as_text(run.get("run"))),
        _run_state(run),
        "plan" if is_plan else f"{run.get('completed')}/{run.get('tasks')}",
        as_text(run.get("cost")) or "?",
        age(as_number(run.get("age_seconds")) or 0),
        clean_line(as_text(run.get("title"))),
    )


def _run_state(run: Shape) -> str:
    state, asked = clean_line(as_text(run.get("status"))), run.get("open_questions")
    return f"{state}, {count_noun(asked, 'question')}" if isinstance(asked, int) else state


def age(seconds: float) -> str:
    """Return an age in its largest useful unit."""
    for least, unit, name in _AGES:
        if seconds >= least:
            return f"{int(seconds // unit)} {name}"
    return f"{int(seconds)} s"


def task_page(task: Shape, glyphs: Symbols, width: int) -> list[str]:
    """Return a task: its state, criteria, checks, attempts and answer."""
    run, id = as_text(task.get("run")), as_text(task.get("task"))
    lines = [*_title(task, width), *wrap(_state(task), width)]
    lines += _fact("cause", as_text(task.get("cause")).replace("_", " "), width)
    for name in ("blocked_by", "worker_role", "qc_role"):
        lines += _fact(name.replace("_", " "), as_text(task.get(name)), width)
    lines += _fact("needs", ", ".join(as_texts(task.get("dependencies"))), width)
    lines += _fact("changed", ", ".join(as_texts(task.get("changed"))), width)
    lines += _block("prompt", as_text(task.get("prompt")), width)
    lines += _criteria(task, glyphs, width) + _checks(task, glyphs, width)
    attempts = as_objects(task.get("attempts"))
    lines += ["attempts:"] if attempts else ["attempts: none yet"]
    for one in attempts:
        first = f"  {one.get('attempt')}  "
        lines += wrap(f"{_state(one)} {_effort(one)}".strip(), width, first=first)
        for issue in as_texts(one.get("issues"))[:3]:
            lines += wrap(clean_line(issue), width, first="     ")
    lines += _block("answer", as_text(task.get("answer")), width)
    steps = [f"mimir show {run}/{id}/{attempts[-1].get('attempt')}"] if attempts else []
    steps += [f"mimir show {run}/{id} --diff"] if as_texts(task.get("changed")) else []
    return [*lines, *(line for step in steps for line in wrap(step, width, first="next: "))]


def attempt_page(one: Shape, glyphs: Symbols, width: int) -> list[str]:
    """Return an attempt: its state, findings, criteria, checks and answer."""
    lines = [*_title(one, width), *wrap(f"{_state(one)} {_effort(one)}".strip(), width)]
    for name in ("tripped", "changed", "left_out", "protected", "unsupported"):
        value = one.get(name)
        text = value if isinstance(value, str) else ", ".join(as_texts(value))
        lines += _fact(name.replace("_", " "), text, width)
    for name in ("issues", "required_fixes"):
        texts = as_texts(one.get(name))
        lines += [f"{name.replace('_', ' ')}:"] if texts else []
        lines += [line for text in texts for line in wrap(clean_line(text), width, first="  - ")]
    lines += _criteria(one, glyphs, width) + _checks(one, glyphs, width)
    return lines + _block("answer", as_text(one.get("answer")), width)


def call_table(calls: Sequence[Shape], width: int) -> list[str]:
    """Return a line for each call of a model or a tool."""
    if not calls:
        return ["calls: none yet"]
    rows = [("attempt", "role", "call", "seconds", "tokens", "title"), *map(_call_row, calls)]
    return table(rows, width, right=(2, 3, 4))


def _call_row(call: Shape) -> tuple[str, ...]:
    parts = [
        number
        for name in ("input_tokens", "output_tokens")
        if (number := as_number(call.get(name)))
    ]
    seconds = as_number(call.get("seconds"))
    tool, title = as_text(call.get("tool")), as_text(call.get("title"))
    named = title if title.startswith(tool) else f"{tool} {title}"
    return (
        clean_line(f"{as_text(call.get('task'))}/{call.get('attempt')}"),
        clean_line(as_text(call.get("role"))),
        str(call.get("call")),
        "" if seconds is None else f"{seconds:.1f}",
        f"{int(sum(parts)):,}" if parts else "",
        clean_line(named) + ("" if call.get("done") else " (no outcome yet)"),
    )


def output_pages(outputs: Sequence[Shape], width: int) -> list[str]:
    """Return each run of a check with the kept end of its output, byte for byte."""
    lines: list[str] = []
    for one in outputs:
        command = clean_line(shlex.join(as_texts(one.get("command"))))
        place = as_text(one.get("place")).strip()
        head = f"{as_text(one.get('check'))} {as_text(one.get('phase'))}: {as_text(one.get('end'))}"
        lines += wrap(clean_line(f"== {head}{f' ({place})' if place else ''}"), width)
        lines += wrap(f"$ {command}", width, rest="  ")
        lines += clean(as_text(one.get("output"))).rstrip("\n").split("\n")
    return lines


def _title(one: Shape, width: int) -> list[str]:
    place = [as_text(one.get("run")), as_text(one.get("task"))]
    # A task has a list of attempts, an attempt has its place.
    place += [str(one["attempt"])] if isinstance(one.get("attempt"), int) else []
    cells = [clean_line("/".join(place)), clean_line(as_text(one.get("title")))]
    return wrap_cells(cells, width)


def _state(one: Shape) -> str:
    score, cause = as_number(one.get("score")), as_text(one.get("cause"))
    words = [_WORDS.get(as_text(one.get("status")), as_text(one.get("status")))]
    words += [f"score {score:.0f}"] if score is not None else []
    words += [cause.replace("_", " ")] if cause and "attempt" in one else []
    return clean_line(", ".join(words))


def _effort(one: Shape) -> str:
    seconds, tokens = as_number(one.get("seconds")), as_number(one.get("tokens"))
    calls, files = one.get("tool_calls"), as_texts(one.get("changed"))
    parts = [f"{seconds:.1f} s"] if seconds is not None else []
    parts += [count_noun(calls, "tool call")] if isinstance(calls, int) else []
    parts += [f"{int(tokens):,} tokens"] if tokens else []
    parts += [f"{count_noun(len(files), 'file')} changed"] if files else []
    return f"({', '.join(parts)})" if parts else ""


def _fact(name: str, value: str, width: int) -> list[str]:
    return wrap(clean_line(value), width, first=f"{name}: ", rest="  ")


def _block(name: str, text: str, width: int) -> list[str]:
    if not text.strip():
        return []
    cut = clean(text.strip()[:ANSWER_CHARS])
    more = [f"  ({len(text.strip()) - ANSWER_CHARS:,} more characters: --json)"]
    return [
        f"{name}:",
        *text_block(cut, width),
        *(more if len(text.strip()) > ANSWER_CHARS else []),
    ]


def _criteria(one: Shape, glyphs: Symbols, width: int) -> list[str]:
    found = as_objects(one.get("criteria"))
    lines = ["criteria:"] if found else []
    for item in found:
        state, basis = as_text(item.get("state")), as_text(item.get("basis"))
        mark = {"passed": glyphs.passed, "failed": glyphs.failed}.get(state, glyphs.waiting)
        points = as_number(item.get("points")) or 0
        worth = f"{points:.0f} points, {basis}{', critical' if item.get('critical') else ''}"
        text = f"{as_text(item.get('id'))} {state} ({worth}): {as_text(item.get('text'))}"
        lines += wrap(clean_line(text), width, first=f"  {mark} ")
        lines += wrap(clean_line(as_text(item.get("reason"))), width, first="    ")
    return lines


def _checks(one: Shape, glyphs: Symbols, width: int) -> list[str]:
    found = as_objects(one.get("checks"))
    lines = ["checks:"] if found else []
    for item in found:
        state = as_text(item.get("state"))
        mark = {"passed": glyphs.passed, "failed": glyphs.failed}.get(state, glyphs.waiting)
        ends = f"before: {as_text(item.get('before'))}, after: {as_text(item.get('after'))}"
        flaky = ", flaky" if item.get("flaky") else ""
        head = f"{as_text(item.get('id'))} {state} ({ends}{flaky})"
        lines += wrap(clean_line(head), width, first=f"  {mark} ")
        command = clean_line(shlex.join(as_texts(item.get("command"))))
        lines += wrap(command, width, first="    $ ")
        for finding in as_texts(item.get("findings")):
            lines += wrap(clean_line(finding), width, first="    ")
    return lines
