"""The scripted QC's judgement: a verdict whose quotes are taken from its own prompt. Pure.

The prompt lists criteria as lines `- [<id>] (<points> …) <text>`, required fixes of the attempt before as lines `<n>. <text>` under the
heading `## Required fixes`, and sources as blocks: a line `=== source <name> ===`, then a fence, or lines up to the next `=== `.
The task's own prompt (`<task>` … `</task>`) and what stands within a block are never read as criteria.
"""

import json
import re
from collections import deque
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction

from mimir.errors import ModelError
from mimir.llm.scripted.script import Json

_CRITERION = re.compile(r"^\s*- \[([^\]\s]+)\] \(([0-9]+(?:[./][0-9]+)?)[^)]*\)\s*(.*)$")
_FIX = re.compile(r"^([0-9]{1,3})\. ")
_FIXES = "## Required fixes"
_SOURCE = re.compile(r"^=== source (\S.*?) ===\s*$")
_FENCE = re.compile(r"^(`{3,})")
_GOOD_NEWS = re.compile(r"\bpassed\b|\bok\b|exit code:? 0", re.IGNORECASE)
_FEWEST_CHARACTERS = 12
"""Characters that are not white space; a shorter quote proves nothing."""
_LONGEST_QUOTE = 200
_PASSING = 80


@dataclass(frozen=True, slots=True, kw_only=True)
class ReviewPrompt:
    """What a QC prompt lists."""

    criteria: Mapping[str, Fraction]
    """Id → points, in order."""
    fixes: tuple[int, ...]
    sources: Mapping[str, tuple[str, ...]]
    """Name → lines, in order."""


def parse_review_prompt(text: str) -> ReviewPrompt:
    """Read criteria, fixes and sources of a QC prompt."""
    criteria: dict[str, Fraction] = {}
    fixes: list[int] = []
    sources: dict[str, tuple[str, ...]] = {}
    heading, rows = "", deque(text.split("\n"))
    while rows:
        line = rows.popleft()
        if line.startswith("## "):
            heading = line.rstrip()
        elif line == "<task>":
            _until(rows, "</task>")
        elif line.startswith("=== "):
            opened, block = _SOURCE.match(line), _block(rows)
            if opened:
                sources.setdefault(opened[1], block)
        elif found := _CRITERION.match(line):
            criteria[found[1]] = _points(found[2])
        elif heading == _FIXES and (fix := _FIX.match(line)):
            fixes.append(int(fix[1]))
    return ReviewPrompt(criteria=criteria, fixes=tuple(fixes), sources=sources)


def _block(rows: deque[str]) -> tuple[str, ...]:
    """Take the lines of a block: a fence ends by itself, bare lines at the next header."""
    if rows and (fence := _FENCE.match(rows[0])):
        rows.popleft()
        return _until(rows, fence[1])
    held: list[str] = []
    while rows and not rows[0].startswith("=== "):
        held.append(rows.popleft())
    return tuple(held)


def _until(rows: deque[str], end: str) -> tuple[str, ...]:
    held: list[str] = []
    while rows and (line := rows.popleft()).rstrip() != end:
        held.append(line)
    return tuple(held)


def _points(text: str) -> Fraction:
    try:
        return Fraction(text)
    except ZeroDivisionError:
        return Fraction(0)


def verdict(wanted: Mapping[str, Json], prompt_text: str) -> str:
    """Write the verdict that a play wants as JSON text.

    `{"auto": "pass"}` passes every criterion and fix with quotes from the prompt, `{"auto": "fail"}` fails those in `failed` (all
    of them by default). Without `auto` the table is the verdict itself, in which `quote_from` becomes `quote` and `source`.

    Raises:
        ModelError: A quote is wanted that the prompt does not hold (scope `run`: the play must be corrected).
    """
    prompt = parse_review_prompt(prompt_text)
    row = _auto(wanted, prompt) if "auto" in wanted else _filled(dict(wanted), prompt)
    return json.dumps(row, ensure_ascii=False)


def _auto(wanted: Mapping[str, Json], prompt: ReviewPrompt) -> dict[str, Json]:
    passes = wanted["auto"] == "pass"
    failed = set(_names(wanted.get("failed"))) or (set() if passes else set(prompt.criteria))
    own = wanted.get("quotes")
    quotes: Mapping[str, Json] = own if isinstance(own, dict) else {}
    criteria: list[Json] = []
    for id in prompt.criteria:
        if id in failed:
            criteria.append({"id": id, "state": "failed", "quote": "", "source": ""})
        else:
            criteria.append({"id": id, "state": "passed", **_quote(prompt, quotes.get(id))})
    fixes: list[Json] = [
        {"index": n, "state": "passed", **_quote(prompt, None)}
        if passes
        else {"index": n, "state": "failed", "quote": "", "source": ""}
        for n in prompt.fixes
    ]
    made: dict[str, Json] = {
        "verdict": "PASS" if passes else "FAIL",
        "score": _score(prompt, failed, passes=passes),
        "feedback": "Every criterion is met." if passes else "Not every criterion is met.",
        "issues": [],
        "requiredFixes": [],
        "criteria": criteria,
        "fixes": fixes,
        "criteriaImpossible": False,
    }
    return made | {k: v for k, v in wanted.items() if k not in ("auto", "failed", "quotes")}


def _names(value: Json | None) -> list[str]:
    return [str(item) for item in value] if isinstance(value, list) else []


def _score(prompt: ReviewPrompt, failed: set[str], *, passes: bool) -> Json:
    total = sum(prompt.criteria.values(), Fraction(0))
    good = sum((p for id, p in prompt.criteria.items() if id not in failed), Fraction(0))
    score = 100 * good / total if total else Fraction(100 if passes else 0)
    if not passes:
        score = min(score, Fraction(_PASSING - 1))
    return int(score) if score.denominator == 1 else round(float(score), 2)


def _quote(prompt: ReviewPrompt, asked: Json | None) -> dict[str, Json]:
    """Return quote and source: the asked one, or the best line of the prompt; empty where it holds none."""
    if isinstance(asked, dict):
        return _asked(prompt, asked)
    for name in sorted(prompt.sources, key=_rank):
        line = _best(prompt.sources[name])
        if line:
            return {"quote": line, "source": name}
    return {"quote": "", "source": ""}


def _rank(name: str) -> int:
    """Order sources by what they prove; sorting keeps the prompt's order within a rank."""
    for rank, kind in enumerate(("check:", "file:", "answer")):
        if name.startswith(kind):
            return rank
    return 3


def _best(lines: Sequence[str]) -> str:
    usable = [line.strip()[:_LONGEST_QUOTE] for line in lines if _is_usable(line)]
    return next((line for line in usable if _GOOD_NEWS.search(line)), usable[0] if usable else "")


def _is_usable(line: str) -> bool:
    return sum(not c.isspace() for c in line[:_LONGEST_QUOTE]) >= _FEWEST_CHARACTERS


def _asked(prompt: ReviewPrompt, asked: Mapping[str, Json]) -> dict[str, Json]:
    source, pattern = str(asked.get("source", "")), str(asked.get("pattern", ""))
    for line in prompt.sources.get(source, ()):
        if pattern in line:
            return {"quote": line.strip()[:_LONGEST_QUOTE], "source": source}
    raise ModelError(
        f"The play wants a quote with {pattern!r} from {source!r}; the prompt holds none "
        f"(its sources: {', '.join(prompt.sources) or 'none'}).",
        scope="run",
        next_step="Correct source or pattern in the play.",
    )


def _filled(value: Json, prompt: ReviewPrompt) -> Json:
    if isinstance(value, list):
        return [_filled(item, prompt) for item in value]
    if not isinstance(value, dict):
        return value
    row: dict[str, Json] = {
        key: _filled(item, prompt) for key, item in value.items() if key != "quote_from"
    }
    asked = value.get("quote_from")
    return row | _asked(prompt, asked) if isinstance(asked, dict) else row
