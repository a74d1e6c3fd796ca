"""A plan's text becomes a plan: markdown in all its layouts, or JSON. Never raises on any text; what cannot be read is a finding."""

import contextlib
import gc
import re
from collections.abc import Generator, Mapping
from dataclasses import dataclass
from pathlib import Path

from mimir.domain.plan import Plan
from mimir.errors import Location, PlanError
from mimir.planning.format.diagnostics import PlanFinding, SourceMap, make_finding
from mimir.planning.format.located_tree import LocatedValue, LocatedValueError, parse_json
from mimir.planning.reader import json_plan, markdown
from mimir.planning.reader.block_text import fence_text
from mimir.planning.reader.line_syntax import fence_of, is_task_start
from mimir.planning.reader.markdown import RawPlan
from mimir.planning.reader.source import NESTING_INFO, SourceText
from mimir.planning.reader.task_reader import read_all

MAX_BYTES = 10_000_000
_LARGE = 200_000
"""Characters from which the garbage collector is felt."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ParsedPlan:
    """What a text says."""

    plan: Plan
    """As far as it could be read."""
    findings: tuple[PlanFinding, ...]
    """What could not be read."""
    places: SourceMap
    """Where each field of each task stands."""
    lines: Mapping[str, int]
    """Task id → its line, 1-based."""
    file: str


def parse_document(path: Path) -> ParsedPlan:
    """Return what a file says.

    Raises:
        PlanError: The file cannot be read, is too large, or is not UTF-8.
    """
    try:
        with path.open("rb") as file:
            data = file.read(MAX_BYTES + 1)
    except OSError as error:
        raise PlanError(
            f"The plan {str(path)!r} cannot be read: {error.strerror or error}.",
            at=Location(file=str(path), line=1),
            code="plan-unreadable",
            next_step="Give the path of a chain-output.md.",
        ) from None
    if len(data) > MAX_BYTES:
        raise PlanError(
            f"The plan is larger than {MAX_BYTES // 1_000_000} MB.",
            at=Location(file=str(path), line=1),
            code="plan-too-large",
            next_step="Split it into several plans.",
        )
    return parse_plan(_decoded(data, str(path)), file=str(path))


def _decoded(data: bytes, file: str) -> str:
    try:
        return data.decode("utf-8")
    except UnicodeDecodeError as error:
        line = data.count(b"\n", 0, error.start) + 1
        column = error.start - (data.rfind(b"\n", 0, error.start) + 1) + 1
        raise PlanError(
            f"The plan is not UTF-8: byte {error.start} is 0x{data[error.start]:02x}.",
            at=Location(file=file, line=line, column=column),
            code="plan-not-utf8",
            next_step="Save it as UTF-8.",
        ) from None


def parse_plan(text: str, *, file: str = "chain-output.md") -> ParsedPlan:
    """Return what `text` says; work grows linearly with its length.

    Args:
        text: The whole document. A byte order mark is ignored; prompts are kept byte for byte.
        file: Its name, for findings.
    """
    with _no_collection(len(text)):
        return _parse(text, file)


@contextlib.contextmanager
def _no_collection(length: int) -> Generator[None]:
    """Keep the garbage collector away while a large plan is read.

    Millions of values come and nearly all of them stay: to look through them over and over took a quarter of the time.
    """
    if length < _LARGE or not gc.isenabled():
        yield
        return
    gc.disable()
    try:
        yield
    finally:
        gc.enable()


def _parse(text: str, file: str) -> ParsedPlan:
    given = _given(text.removeprefix("\ufeff"))
    places = SourceMap()
    found = list(given.findings)
    tasks = read_all(given.tasks, places, found)
    values = given.values
    plan = Plan(
        title=values.get("title", ""),
        tasks=tasks,
        goal=values.get("goal", ""),
        request=values.get("request", ""),
        reasoning=values.get("reasoning", ""),
        notes="\n\n".join(given.notes),
    )
    lines: dict[str, int] = {}
    for number, task in enumerate(tasks):
        lines.setdefault(task.id, places.position_of(number).line)
    findings = tuple(sorted(found, key=lambda one: (one.line, one.column)))
    return ParsedPlan(plan=plan, findings=findings, places=places, lines=lines, file=file)


def _given(text: str) -> RawPlan:
    body, first_line = _unwrapped(text)
    failed: LocatedValueError | None = None
    if re.match(r"\s*(?:\{|\[\s*[{\]\"])", body):
        try:
            return _given_json(parse_json(body, first_line))
        except LocatedValueError as error:
            failed = error
    source = SourceText(body, first_line=first_line)
    given = markdown.read_markdown_plan(source)
    if given.tasks:
        return given
    inner = _in_fences(source) or _in_prose(source)
    if inner is not None:
        return inner
    if failed is not None:
        given.findings.append(
            make_finding(
                "json-unreadable",
                str(failed),
                failed.place,
                suggestion='Write {"tasks": […]} as strict JSON, or the plan as markdown.',
            )
        )
    return given


def _given_json(node: LocatedValue) -> RawPlan:
    if json_plan.is_plan(node) or node.kind == "list":
        return json_plan.read_json_plan(node)
    given = RawPlan()
    given.findings.append(
        make_finding(
            "json-shape",
            "This JSON has no list of tasks.",
            node.place,
            suggestion='Write {"tasks": […]}.',
        )
    )
    return given


def _unwrapped(text: str) -> tuple[str, int]:
    """Return the document without a fence around all of it, and the number of its first line."""
    lines = text.split("\n")
    first = next((n for n, line in enumerate(lines) if line.strip()), None)
    if first is None:
        return text, 1
    last = max(n for n, line in enumerate(lines) if line.strip())
    opening, closing = fence_of(lines[first]), fence_of(lines[last])
    if opening is None or closing is None or first == last or closing.info:
        return text, 1
    same = opening.sign == closing.sign and opening.length == closing.length
    if not same or opening.info not in (*NESTING_INFO, "json"):
        return text, 1
    return "\n".join(lines[first + 1 : last]), first + 2


def _in_fences(source: SourceText) -> RawPlan | None:
    """Return the plan that stands in a fence between other text."""
    for block in source.blocks.values():
        if block.kind != "fence" or block.info not in (*NESTING_INFO, "json"):
            continue
        text = fence_text(source, block)
        first_line = source.first_line + block.start + 1
        if text.lstrip()[:1] in ("{", "["):
            given = _json_or_nothing(text, first_line)
        else:
            has_tasks = any(is_task_start(line) for line in text.split("\n"))
            given = (
                markdown.read_markdown_plan(SourceText(text, first_line=first_line))
                if has_tasks
                else None
            )
        if given is not None and given.tasks:
            return given
    return None


def _in_prose(source: SourceText) -> RawPlan | None:
    """Return the JSON plan that stands between other text, without a fence."""
    inside = {n for b in source.blocks.values() if b.kind == "tag" for n in range(b.start, b.end)}
    free = [(n, line) for n, line in enumerate(source.lines) if n not in inside]
    opens = [n for n, line in free if line.lstrip()[:1] in ("{", "[")]
    closes = [n for n, line in free if line.rstrip()[-1:] in ("}", "]")]
    if not opens or not closes or closes[-1] < opens[0]:
        return None
    text = "\n".join(source.raw[opens[0] : closes[-1] + 1])
    given = _json_or_nothing(text, source.first_line + opens[0])
    return given if given is not None and given.tasks else None


def _json_or_nothing(text: str, first_line: int) -> RawPlan | None:
    """Return the plan of a JSON text; an unreadable one that speaks of tasks is a plan with a finding."""
    try:
        node = parse_json(text, first_line)
    except LocatedValueError:
        return None
    return json_plan.read_json_plan(node) if json_plan.is_plan(node) else None
