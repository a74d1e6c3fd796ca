"""Split of a machine-readable document into machine values, prose and derived values, and the golden file of each part.

- *machine*: members, their order, types, codes, ids, and the JSON formatting of each line.
- *prose*: each string of three words or more, and each value of a member in `PROSE_MEMBERS`. The machine part has `<prose>` there.
- *derived*: hashes and token counts. They follow from the prose, so the machine part has `<hash-N>` and `<tokens>` there.
  Equal hashes have equal numbers. Only a document of a new run is split so; other documents keep these values.

A document of a new run also has volatile values, which no golden file holds: times of day, the run id, process owners, durations,
the process number, absolute paths, and hashes that differ between two runs because a time or a duration is part of them.
"""

import json
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import cast

PROSE_MEMBERS = ("because", "feedback", "message", "narrative", "qcFeedback", "suggestion")
VOLATILE_MEMBERS = (
    "bound_seconds",
    "busySeconds",
    "elapsed_seconds",
    "heldSeconds",
    "host",
    "longest",
    "loss_seconds",
    "met",
    "process",
    "samples",
    "seconds",
    "seconds_at_work",
    "seconds_there",
    "servedSeconds",
    "value",
    "workerDuration",
    "worker_seconds",
)
"""Members whose numbers (or, for `host` and `samples`, texts) differ between two equal runs."""

TOKENS = re.compile(r"(?i)tokens|^(given|available|usage|input|output|reserved|cached|reduction)$")
FORMS = tuple(
    (separators, ascii) for separators in ((", ", ": "), (",", ":")) for ascii in (True, False)
)
HASH = re.compile(r"\b(?:[0-9a-f]{64}|[0-9a-f]{40})\b")
VOLATILE_TEXT = (
    (re.compile(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d(?:\.\d+)?Z"), "<time>"),
    (re.compile(r"\brun-\d{4}-\d{4}-[0-9a-f]{6}\b"), "<run>"),
    (re.compile(r"\b[\w.-]+?-\d+-[0-9a-f]{4}(?=$|[\s\"'/-])"), "<owner>"),
)
VOLATILE_PROSE = (
    (HASH, "<hash>"),
    (re.compile(r"\b[0-9a-f]{12}\b"), "<hash>"),
    (re.compile(r"\b\d{4}-\d\d-\d\d\b"), "<date>"),
    (re.compile(r"\b\d\d:\d\d:\d\d\b"), "<time>"),
    (re.compile(r"\b\d+(?:\.\d+)? (?:s|seconds|ms)\b"), "<duration>"),
    (re.compile(r"\b\d+\.\d+\b(?!\.)"), "<number>"),
    # A busy machine misses this goal.
    (re.compile(r"(?<=\| < 5 % \| )(?:reached|outside the goal)(?= \|)"), "<verdict>"),
)
"""Also replaced in the prose of a new run: the recording holds its report."""
PROJECT_PATH = re.compile(r"/[^\s\"']*?/project/\.mimir/")


@dataclass(kw_only=True)
class Parts:
    """The parts of one document."""

    machine: list[str] = field(default_factory=list[str])
    prose: list[tuple[str, str]] = field(default_factory=list[tuple[str, str]])
    """Place (`line/member/…`) and text."""
    hashes: list[str] = field(default_factory=list[str])
    """By the number that the machine part has, from 1."""
    tokens: list[tuple[str, object]] = field(default_factory=list[tuple[str, object]])
    """Place and count."""

    def sort_key(self) -> tuple[str, list[tuple[str, str]]]:
        """Return the parts that are equal in two equal runs."""
        return "".join(self.machine), self.prose

    def prose_text(self) -> str:
        """Return the golden text of the prose; a text that was there before is only referred to."""
        first: dict[str, str] = {}
        rows: list[str] = []
        for place, text in self.prose:
            known = first.setdefault(text, place)
            row = [place, text] if known == place else [place, None, known]
            rows.append(json.dumps(row, ensure_ascii=False))
        return "".join(f"{row}\n" for row in rows)


def without_paths(text: str) -> str:
    """Replace the absolute path of the project: golden files name no directory of a machine."""
    return PROJECT_PATH.sub("<project>/.mimir/", text)


def split(document: str, *, is_new_run: bool = False, in_any_order: bool = False) -> Parts:
    """Split a document of JSON lines.

    Args:
        document: One JSON value a line.
        is_new_run: Replace derived and volatile values too.
        in_any_order: Sort the lines by their stable parts, and keep only the last line of each attempt: a recording has
            them in the order of completion, and an attempt's line again at each of its events.

    Raises:
        AssertionError: A line has none of the JSON formats that scripts know.
    """
    lines = without_paths(document).splitlines()
    if in_any_order:
        lines = list({_attempt_of(line): line for line in lines}.values())
        lines.sort(key=lambda line: split(line, is_new_run=is_new_run).sort_key())
    splitter = _Splitter(is_new_run=is_new_run)
    for number, line in enumerate(lines, start=1):
        form = form_of(line)
        assert form is not None, f"line {number} has an unknown JSON format: {line[:200]}"
        splitter.parts.machine.append(_dump(splitter.walk(json.loads(line), str(number)), form))
    return splitter.parts


def _attempt_of(line: str) -> object:
    """Return the attempt that a line of a recording describes; for another line, the line."""
    value = json.loads(line)
    is_attempt = value.get("kind") == "attempt"
    return (value["run"], value["task"], value["attempt"]) if is_attempt else line


def form_of(text: str) -> tuple[tuple[str, str], bool] | None:
    """Return the JSON format that gives exactly this text. None: it is not JSON of a known format."""
    try:
        value = json.loads(text)
    except ValueError:
        return None
    return next((form for form in FORMS if _dump(value, form) == text), None)


def _dump(value: object, form: tuple[tuple[str, str], bool]) -> str:
    separators, ascii = form
    return json.dumps(value, separators=separators, ensure_ascii=ascii)


@dataclass(kw_only=True)
class _Splitter:
    is_new_run: bool
    parts: Parts = field(default_factory=Parts)

    def walk(self, value: object, place: str, member: str = "") -> object:
        """Return the machine part of a value; the rest is noted."""
        if self.is_new_run and member in VOLATILE_MEMBERS and _is_volatile(value):
            return f"<{type(value).__name__}>"
        if self.is_new_run and TOKENS.search(member) and type(value) in (int, float):
            self.parts.tokens.append((place, value))
            return "<tokens>"
        match value:
            case dict():
                items = cast("Mapping[str, object]", value).items()
                return {
                    self._stable(name): self.walk(one, f"{place}/{self._stable(name)}", name)
                    for name, one in items
                }
            case list():
                numbered = enumerate(cast("Sequence[object]", value))
                name = member if TOKENS.search(member) else ""
                return [self.walk(one, f"{place}/{n}", name) for n, one in numbered]
            case str():
                return self._text(value, place, member)
            case _:
                return value

    def _text(self, text: str, place: str, member: str) -> object:
        # Digests of all stored nodes in one text; they contain times.
        if member == "marks" and self.is_new_run:
            return "<digests>"
        form = form_of(text) if text[:1] in ("{", "[") else None
        if form is not None:
            style = "compact" if form[0][0] == "," else "spaced"
            return {f"<json, {style}>": self.walk(json.loads(text), place)}
        if text and (member in PROSE_MEMBERS or len(text.split()) > 2):
            self.parts.prose.append((place, self._stable_prose(text)))
            return "<prose>"
        return self._stable(text)

    def _stable(self, text: str, *, alias: bool = True) -> str:
        if not self.is_new_run:
            return text
        for pattern, placeholder in VOLATILE_TEXT:
            text = pattern.sub(placeholder, text)
        return HASH.sub(self._alias, text) if alias else text

    def _stable_prose(self, text: str) -> str:
        text = self._stable(text, alias=False)
        for pattern, placeholder in VOLATILE_PROSE if self.is_new_run else ():
            text = pattern.sub(placeholder, text)
        return text

    def _alias(self, found: re.Match[str]) -> str:
        if found[0] not in self.parts.hashes:
            self.parts.hashes.append(found[0])
        return f"<hash-{self.parts.hashes.index(found[0]) + 1}>"


def _is_volatile(value: object) -> bool:
    return type(value) in (int, float, bool, str, list)


def compare(golden: Path, text: str, *, write: bool) -> None:
    """Compare a text with its golden file, or write that.

    Raises:
        AssertionError: They differ; the message names the first line.
    """
    if write:
        golden.parent.mkdir(exist_ok=True)
        golden.write_text(text, encoding="utf-8")
        return
    kept, now = golden.read_text(encoding="utf-8").splitlines(), text.splitlines()
    for number, (old, new) in enumerate(zip(kept, now, strict=False), start=1):
        if old != new:
            at = next((n for n, (a, b) in enumerate(zip(old, new, strict=False)) if a != b), 0)
            window = slice(max(0, at - 100), at + 100)
            raise AssertionError(
                f"{golden.name}, line {number}, column {at + 1}:\n"
                f"  golden: {old[window]}\n  now:    {new[window]}"
            )
    assert len(kept) == len(now), f"{golden.name}: {len(kept)} lines, now {len(now)}"
