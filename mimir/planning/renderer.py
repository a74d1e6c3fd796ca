"""Renderer of plans: canonical markdown that the parser reads back unchanged. Pure.

A value is written in the plainest form that the reader's own functions read back unchanged;
otherwise in a block: `<text>`, a JSON array or a YAML list.
"""

import json
import re
from decimal import Decimal

from mimir.domain.finding import START
from mimir.domain.plan import DEFAULT_TIMEOUT_SECONDS, Check, Criterion, Plan, Task
from mimir.planning.format.labels import (
    BY_KEY,
    PLAN_LABELS,
    TASKS_HEADING,
    Key,
    LabelMatch,
    PlanKey,
)
from mimir.planning.reader import criteria, values
from mimir.planning.reader.line_normalization import normalize_line
from mimir.planning.reader.line_syntax import heading_of
from mimir.planning.reader.loss_audit import names_task
from mimir.planning.reader.values import RawField


def render(plan: Plan) -> str:
    """Return the plan as the text of `chain-output.md`."""
    parts = [_head(plan)]
    if plan.reasoning:
        parts.append(f"## {PLAN_LABELS['reasoning'][0]}\n{_reasoning_text(plan.reasoning)}\n")
    parts.append(f"## {TASKS_HEADING}\n")
    parts += [_task(task) for task in plan.tasks]
    if plan.notes:
        parts.append(f"## {PLAN_LABELS['notes'][0]}\n{_block('text', plan.notes)}\n")
    return "\n".join(parts)


def _head(plan: Plan) -> str:
    simple = _is_plain(plan.title) and "#" not in plan.title and "*" not in plan.title
    # The parser strips emphasis and signs at the ends of a heading.
    simple = simple and plan.title[:1].isalnum() and not plan.title.endswith(("_", "`"))
    lines = [f"# Plan: {plan.title}" if simple else "# Plan"]
    title = "" if simple else plan.title
    texts: dict[PlanKey, str] = {"title": title, "request": plan.request, "goal": plan.goal}
    for key, text in texts.items():
        if text:
            is_line = " ".join(text.split()) == text
            lines.append(_labelled_line(PLAN_LABELS[key][0], text, is_line))
    return "\n".join(lines) + "\n"


def _reasoning_text(text: str) -> str:
    lines = text.split("\n")
    # Reasoning is model text: any mark of a block or task would be read as structure.
    marks = any(sign in text for sign in ("```", "~~~", "<", "\r"))
    plain = not marks and text == text.strip() and not any(map(names_task, lines))
    plain = plain and not any(heading_of(line) or line.lstrip()[:1] in ("{", "[") for line in lines)
    return text if plain else _block("reasoning", text)


def _task(task: Task) -> str:
    # The heading is for readers; id and title are read from their own fields below it.
    lines = [f"### {' '.join(f'{task.id}: {task.title}'.split())}".rstrip(": ")]
    lines.append(_field("id", task.id, task.id == values.strip_markup(task.id)))
    title = _field("title", task.title, " ".join(task.title.split()) == task.title)
    # Without an empty title field the parser would take the title from the heading.
    lines.append(title if task.title else f"**{BY_KEY['title'].label}:**")
    lines += _texts(task, "worker_role", "agent", "model")
    lines += [f"**{BY_KEY['prompt'].label}:**", _block("prompt", task.prompt)]
    lines += [_names("tools", task.tools)] if task.tools else []
    lines += [_field("tool_execution", task.tool_execution)] if task.tool_execution else []
    lines += [_names("context_files", task.context_files)] if task.context_files else []
    lines += [_names("files", task.files)] if task.files else []
    dependencies = _names("dependencies", task.dependencies)
    # "None" is explicit: no line could also mean that the planner forgot it.
    lines.append(dependencies if task.dependencies else "**Dependencies:** None")
    if task.estimated_minutes is not None:
        lines.append(_field("estimated_minutes", f"{_number(task.estimated_minutes)} minutes"))
    lines.append(_field("time_limit_minutes", f"{_number(task.time_limit_minutes)} minutes"))
    if task.estimated_tool_calls is not None:
        lines.append(_field("estimated_tool_calls", str(task.estimated_tool_calls)))
    lines += _texts(task, "parallel_group", "qc_role")
    if task.criteria:
        lines.append(_criteria(task.criteria, task.checks))
    if task.checks:
        checks = "\n".join(_check(check) for check in task.checks)
        lines.append(f"**{BY_KEY['checks'].label}:**\n```yaml\n{checks}\n```")
    lines.append(f"**{BY_KEY['max_retries'].label}:** {task.max_retries}")
    if task.notes:
        lines.append(f"**{BY_KEY['notes'].label}:**\n{_block('text', task.notes)}")
    return "\n".join(lines) + "\n"


# Texts.


def _is_plain(text: str) -> bool:
    """Return whether a text can follow a label on its line."""
    # The reader replaces special spaces and the like outside of blocks.
    is_line = "\n" not in text and text == text.strip() and normalize_line(text) == text
    return bool(text) and is_line and not text.startswith("<")


def _labelled_line(label: str, text: str, plain: bool) -> str:
    if plain and _is_plain(text):
        return f"**{label}:** {text}"
    return f"**{label}:**\n{_block('text', text)}"


def _field(key: Key, text: str, plain: bool = True) -> str:
    return _labelled_line(BY_KEY[key].label, text, plain)


def _texts(task: Task, *keys: Key) -> list[str]:
    lines: list[str] = []
    for key in keys:
        text = str(getattr(task, key))
        plain = values.strip_markup(text) == text and values.without_aside(text) == text
        if key == "parallel_group":
            # The reader drops a word "Group" before the name.
            plain = plain and not values.is_none(text) and not text.casefold().startswith("group")
        if text:
            lines.append(_field(key, text, plain or key in ("worker_role", "qc_role")))
    return lines


def _block(tag: str, text: str) -> str:
    """Return a text between tags; the tags get a number if the text contains them."""
    name, number = tag, 1
    # Tags are matched without case, therefore also the text that could close the block.
    folded = text.casefold()
    while f"<{name}>" in folded or f"</{name}>" in folded:
        number += 1
        name = f"{tag}-{number}"
    inner = f"{text}\n" if text else ""
    return f"<{name}>\n{inner}</{name}>"


# Lists and numbers.


def _names(key: Key, items: tuple[str, ...]) -> str:
    text = ", ".join(items)
    raw = RawField(found=LabelMatch(field=BY_KEY[key]), name="", text=text)
    # The reader itself decides whether the plain form survives; its rules are not repeated here.
    read = [item.text for item in values.names(raw, [])]
    # The reader takes these words in `Tools` as "all tools of the role".
    special = text.casefold() in ("all", "any", "default", "n/a")
    plain = read == list(items) and not special and values.array_of(text) is None
    plain = plain and _is_plain(text)
    return f"**{BY_KEY[key].label}:** {text if plain else json.dumps(list(items))}"


def _number(value: float) -> str:
    """Return a number that is read back as an equal float."""
    if isinstance(value, int) or value.is_integer():
        return str(int(value))
    # repr() may use an exponent, which a duration in the plan does not allow.
    return format(Decimal(repr(value)), "f")


# Criteria and checks.


def _criteria(given: tuple[Criterion, ...], checks: tuple[Check, ...]) -> str:
    lines = [_criterion(one) for one in given]
    # A word before a colon is an id only if a check names it; otherwise it is text.
    named = {id for check in checks for id in check.criteria}
    label = f"**{BY_KEY['criteria'].label}:**\n"
    if all(_reads_back(line, one, named) for line, one in zip(lines, given, strict=True)):
        return label + "\n".join(f"- [ ] {line}" for line in lines)
    maps = "\n".join(_criterion_map(one) for one in given)
    return f"{label}```yaml\n{maps}\n```"


def _criterion(one: Criterion) -> str:
    points = f"({one.points} pts) " if one.points is not None else ""
    return f"{points}{'[critical] ' if one.critical else ''}{one.id}: {one.text}"


def _reads_back(line: str, one: Criterion, named: set[str]) -> bool:
    if "\n" in one.text or one.text != one.text.strip() or not one.text:
        return False
    if normalize_line(line) != line:
        return False
    read = criteria.parse(line, START, named)
    return one == Criterion(id=read.id, text=read.text, points=read.points, critical=read.critical)


def _criterion_map(one: Criterion) -> str:
    lines = [f"- id: {_scalar(one.id)}", f"  text: {_scalar(one.text)}"]
    if one.points is not None:
        lines.append(f"  points: {one.points}")
    if one.critical:
        lines.append("  critical: true")
    return "\n".join(lines)


def _check(check: Check) -> str:
    run = _scalar(check.run) if isinstance(check.run, str) else _sequence(check.run)
    lines = [
        f"- id: {_scalar(check.id)}",
        f"  criteria: {_sequence(check.criteria)}",
        f"  run: {run}",
    ]
    if check.kind is not None:
        lines.append(f"  kind: {check.kind}")
    if check.tests is not None:
        lines.append(f"  tests: {_sequence(check.tests)}")
    if check.protect:
        lines.append(f"  protect: {_sequence(check.protect)}")
    if not check.required:
        lines.append("  required: false")
    if check.timeout_seconds != DEFAULT_TIMEOUT_SECONDS:
        lines.append(f"  timeout_seconds: {_number(check.timeout_seconds)}")
    return "\n".join(lines)


_PLAIN_SCALAR = re.compile(r"[A-Za-z0-9_./-][A-Za-z0-9_./=+@%^~-]*(?: [A-Za-z0-9_./=+@%^~-]+)*")
# YAML 1.1 and 1.2 readers disagree about these words: unquoted, some read a bool or a number.
_TYPED = re.compile(
    r"(?i)~|null|true|false|yes|no|on|off|y|n|[-+.]?[\d_.:]+(?:e[-+]?\d+)?|[-+]?0[xo][\da-f]+|---.*|\.\.\..*|\.(?:inf|nan)"
)


def _scalar(text: str) -> str:
    """Return a YAML scalar that every reader reads as this text."""
    plain = (
        _PLAIN_SCALAR.fullmatch(text) and not _TYPED.fullmatch(text) and not text.startswith("-")
    )
    # An option such as --quiet is safe unquoted, a single dash or "- x" would begin a list.
    if plain or (text.startswith("-") and re.fullmatch(r"--?[a-zA-Z][\w=./-]*", text)):
        return text
    return '"' + "".join(_escape(sign) for sign in text) + '"'


def _escape(sign: str) -> str:
    if sign in '"\\':
        return f"\\{sign}"
    # A raw line break in a quoted scalar would be folded to a space.
    if sign == "\n":
        return "\\n"
    # PyYAML refuses a byte order mark and non-characters inside a text.
    if sign.isprintable() and ord(sign) not in (0xFEFF, 0xFFFE, 0xFFFF):
        return sign
    return f"\\U{ord(sign):08x}"


def _sequence(items: tuple[str, ...]) -> str:
    return f"[{', '.join(_scalar(item) for item in items)}]"
