"""Parser of plans: markdown in all its layouts, or JSON. Pure.

No text raises an error: each unreadable part is a finding. Only `parse_document` opens a file.
"""

import contextlib
import gc
import re
from collections.abc import Generator, Mapping
from pathlib import Path

from mimir.domain.finding import Finding
from mimir.domain.located_tree import LocatedValue, LocatedValueError, parse_json, parse_yaml
from mimir.domain.plan import Plan
from mimir.domain.thinking import blank_thinking
from mimir.domain.value_class import value_class
from mimir.errors import Location, PlanError
from mimir.planning.format.diagnostics import SourceMap, make_finding
from mimir.planning.reader import json_plan, markdown
from mimir.planning.reader.block_text import fence_text
from mimir.planning.reader.line_syntax import fence_of, is_task_start
from mimir.planning.reader.loss_audit import LossAudit
from mimir.planning.reader.markdown import RawPlan
from mimir.planning.reader.other_formats import find_other_format
from mimir.planning.reader.source import NESTING_INFO, SourceText
from mimir.planning.reader.task_reader import read_all

MAX_BYTES = 10_000_000
# Characters from which garbage collection is paused while parsing.
_LARGE = 200_000
_YAML_TASKS = re.compile(r"^tasks:[ \t]*$", re.MULTILINE)
_JSON_HINT = 'Write {"tasks": […]}'


@value_class
class ParsedPlan:
    """Result of parsing a text."""

    plan: Plan
    """The readable part."""
    findings: tuple[Finding, ...]
    """Faults of reading."""
    places: SourceMap
    """Positions of the tasks' fields."""
    lines: Mapping[str, int]
    """Task id → 1-based line."""
    file: str


def parse_document(path: Path) -> ParsedPlan:
    """Read and parse a file.

    Raises:
        PlanError: The file cannot be read, is too large, or is not UTF-8.
    """

    def fault(code: str, message: str, next_step: str, line: int = 1, column: int = 1) -> PlanError:
        at = Location(file=str(path), line=line, column=column)
        return PlanError(message, at=at, code=code, next_step=next_step)

    try:
        with path.open("rb") as file:
            # One byte above the limit shows that the file is too large, without reading it all.
            data = file.read(MAX_BYTES + 1)
    except OSError as error:
        message = f"The plan {str(path)!r} cannot be read: {error.strerror or error}."
        hint = "Give the path of a chain-output.md."
        raise fault("plan-unreadable", message, hint) from None
    if len(data) > MAX_BYTES:
        message = f"The plan is larger than {MAX_BYTES // 1_000_000} MB."
        raise fault("plan-too-large", message, "Split it into several plans.")
    try:
        text = data.decode("utf-8")
    except UnicodeDecodeError as error:
        line = data.count(b"\n", 0, error.start) + 1
        # In bytes: the line has no characters to count before it is decoded.
        column = error.start - (data.rfind(b"\n", 0, error.start) + 1) + 1
        message = f"The plan is not UTF-8: byte {error.start} is 0x{data[error.start]:02x}."
        raise fault("plan-not-utf8", message, "Save it as UTF-8.", line, column) from None
    return parse_plan(text, file=str(path))


def parse_plan(text: str, *, file: str = "chain-output.md") -> ParsedPlan:
    """Parse a text in time linear in its length.

    Args:
        text: The whole document. A byte order mark is ignored; prompts are kept byte for byte.
        file: Its name, for findings.
    """
    with _paused_collection(len(text)):
        raw = _read(blank_thinking(text.removeprefix("\ufeff")))
        places = SourceMap()
        found = list(raw.findings)
        tasks = read_all(raw.tasks, places, found)
        if raw.document is not None and tasks:
            found += LossAudit(raw.document, tasks).find()
        other = find_other_format(text, tasks)
        if other is not None:
            tasks, found = (), [other]
    lines: dict[str, int] = {}
    for number, task in enumerate(tasks):
        # Of two tasks with one id, the first one has the line: the second is a finding.
        lines.setdefault(task.id, places.position_of(number).line)
    return ParsedPlan(
        plan=Plan(
            title=raw.values.get("title", ""),
            tasks=tasks,
            goal=raw.values.get("goal", ""),
            request=raw.values.get("request", ""),
            reasoning=raw.values.get("reasoning", ""),
            notes="\n\n".join(raw.notes),
        ),
        findings=tuple(sorted(found, key=lambda one: (one.line, one.column))),
        places=places,
        lines=lines,
        file=file,
    )


@contextlib.contextmanager
def _paused_collection(length: int) -> Generator[None]:
    """Pause garbage collection while a large plan is parsed."""
    # Nearly all of the many values stay, so that the collector walks over them without effect:
    # 1.0 MB took 2.4 s of CPU instead of 3.1 s (2026-11-26, six alternating runs).
    if length < _LARGE or not gc.isenabled():
        yield
        return
    gc.disable()
    try:
        yield
    finally:
        gc.enable()


def _read(text: str) -> RawPlan:
    body, first_line = _strip_fence(text)
    failed: LocatedValueError | None = None
    # A markdown document may begin with "[" too, as in a link; a JSON list of tasks begins "[{".
    if re.match(r"\s*(?:\{|\[\s*[{\]\"])", body):
        try:
            # No second try as markdown: valid JSON is never a markdown plan.
            return _read_json(parse_json(body, first_line))
        except LocatedValueError as error:
            failed = error
    plan = _yaml_plan(body, first_line)
    if plan is not None:
        return plan
    # Broken JSON is read as markdown too: a plan may only begin like JSON.
    source = SourceText(body, first_line=first_line)
    raw = markdown.read_markdown_plan(source)
    if raw.tasks:
        return raw
    inner = _find_in_fences(source) or _find_in_prose(source)
    if inner is not None:
        return inner
    if failed is not None:
        hint = f"{_JSON_HINT} as strict JSON, or the plan as markdown."
        raw.findings.append(make_finding("json-unreadable", str(failed), failed.place, hint))
    return raw


def _read_json(node: LocatedValue) -> RawPlan:
    if json_plan.is_plan(node) or node.kind == "list":
        return json_plan.read_json_plan(node)
    message = "The JSON has no list of tasks."
    return RawPlan(findings=[make_finding("json-shape", message, node.place, f"{_JSON_HINT}.")])


def _strip_fence(text: str) -> tuple[str, int]:
    """Return the document without a fence around all of it, and the number of its first line."""
    lines = text.split("\n")
    filled = [n for n, line in enumerate(lines) if line.strip()]
    first, last = (filled[0], filled[-1]) if filled else (0, 0)
    opening, closing = fence_of(lines[first]), fence_of(lines[last])
    # Models often put the whole answer into a fence, although the instructions forbid it.
    if opening is None or closing is None or first == last or closing.info:
        return text, 1
    same = opening.sign == closing.sign and opening.length == closing.length
    if not same or opening.info not in (*NESTING_INFO, "json"):
        return text, 1
    return "\n".join(lines[first + 1 : last]), first + 2


def _find_in_fences(source: SourceText) -> RawPlan | None:
    """Return the plan in a fence between other text."""
    for block in source.blocks.values():
        if block.kind != "fence" or block.info not in (*NESTING_INFO, "json"):
            continue
        text = fence_text(source, block)
        first_line = source.first_line + block.start + 1
        raw = None
        if text.lstrip()[:1] in ("{", "["):
            raw = _json_plan(text, first_line)
        elif any(is_task_start(line) for line in text.split("\n")):
            raw = markdown.read_markdown_plan(SourceText(text, first_line=first_line))
        if raw is not None and raw.tasks:
            return raw
    return None


def _find_in_prose(source: SourceText) -> RawPlan | None:
    """Return the JSON plan between other text, without a fence."""
    # Braces inside a prompt are content of the prompt, not the plan.
    inside = {n for b in source.blocks.values() if b.kind == "tag" for n in range(b.start, b.end)}
    free = [(n, line) for n, line in enumerate(source.lines) if n not in inside]
    opens = [n for n, line in free if line.lstrip()[:1] in ("{", "[")]
    closes = [n for n, line in free if line.rstrip()[-1:] in ("}", "]")]
    if not opens or not closes or closes[-1] < opens[0]:
        return None
    text = "\n".join(source.raw[opens[0] : closes[-1] + 1])
    raw = _json_plan(text, source.first_line + opens[0])
    return raw if raw is not None and raw.tasks else None


def _yaml_plan(text: str, first_line: int) -> RawPlan | None:
    """Return the plan of a YAML text, alone or in a fence; None for other texts."""
    if not _YAML_TASKS.search(text):
        return None
    lines = text.split("\n")
    fences = [(n, fence) for n, line in enumerate(lines) if (fence := fence_of(line))]
    # Its prompts may hold fences, so that the last one is the end.
    start = next((n for n, fence in fences if fence.info in ("yaml", "yml")), len(lines))
    spans = [(0, len(lines))]
    # A task outside of the fence makes it a part of that plan, such as a Taskfile in a prompt.
    if not any(is_task_start(line) for line in lines[:start]) and start < len(lines):
        spans.append((start + 1, fences[-1][0]))
    for start, end in spans:
        try:
            node = parse_yaml("\n".join(lines[start:end]), first_line + start)
        except LocatedValueError:
            continue
        if json_plan.is_plan(node):
            return json_plan.read_json_plan(node)
    return None


def _json_plan(text: str, first_line: int) -> RawPlan | None:
    """Return the plan of a JSON text; None for other JSON and for other texts."""
    try:
        node = parse_json(text, first_line)
    except LocatedValueError:
        return None
    # Prose may quote other JSON, such as a configuration.
    return json_plan.read_json_plan(node) if json_plan.is_plan(node) else None
