"""QC answers of a scripted model: verdicts whose quotes come from the QC prompt.

The prompt lists criteria as lines `- [<id>] (<points> …) <text>`, required fixes as lines `<n>. <text>` under the heading
`## Required fixes`, and sources as blocks: a line `=== source <name> ===`, then a fence, or lines up to the next `=== `.
"""

import json
import re
from collections import deque
from collections.abc import Mapping, Sequence
from fractions import Fraction

from mimir.domain.value_class import value_class
from mimir.errors import ModelError
from mimir.llm.scripted.script import Json

_CRITERION = re.compile(r"^\s*- \[([^\]\s]+)\] \(([0-9]+(?:[./][0-9]+)?)[^)]*\)\s*(.*)$")
_FIX = re.compile(r"^([0-9]{1,3})\. ")
_FIXES = "## Required fixes"
_SOURCE = re.compile(r"^=== source (\S.*?) ===\s*$")
_FENCE = re.compile(r"^(`{3,})")
_GOOD_NEWS = re.compile(r"\bpassed\b|\bok\b|exit code:? 0", re.IGNORECASE)
# Characters that are not white space; a shorter quote proves nothing.
_FEWEST_CHARACTERS = 12
_LONGEST_QUOTE = 200
_PASSING = 80


@value_class
class ReviewPrompt:
    """Criteria, required fixes and sources of a QC prompt."""

    criteria: Mapping[str, Fraction]
    """Id → points, in order."""
    fixes: tuple[int, ...]
    sources: Mapping[str, tuple[str, ...]]
    """Name → lines, in order."""


def parse_review_prompt(text: str) -> ReviewPrompt:
    """Parse criteria, fixes and sources of a QC prompt."""
    criteria: dict[str, Fraction] = {}
    fixes: list[int] = []
    sources: dict[str, tuple[str, ...]] = {}
    heading, rows = "", deque(text.split("\n"))
    while rows:
        line = rows.popleft()
        if line.startswith("## "):
            heading = line.rstrip()
        elif line == "<task>":
            _take_until(rows, "</task>")  # the task's own prompt may look like criteria
        elif line.startswith("=== "):
            source, block = _SOURCE.match(line), _take_block(rows)
            if source:
                sources.setdefault(source[1], block)
        elif found := _CRITERION.match(line):
            criteria[found[1]] = _points(found[2])
        elif heading == _FIXES and (fix := _FIX.match(line)):
            fixes.append(int(fix[1]))
    return ReviewPrompt(criteria=criteria, fixes=tuple(fixes), sources=sources)


def _take_block(rows: deque[str]) -> tuple[str, ...]:
    """Remove and return the lines of a block: a whole fence, or lines up to the next header."""
    if rows and (fence := _FENCE.match(rows[0])):
        rows.popleft()
        return _take_until(rows, fence[1])
    lines: list[str] = []
    while rows and not rows[0].startswith("=== "):
        lines.append(rows.popleft())
    return tuple(lines)


def _take_until(rows: deque[str], end: str) -> tuple[str, ...]:
    lines: list[str] = []
    while rows and (line := rows.popleft()).rstrip() != end:
        lines.append(line)
    return tuple(lines)


def _points(text: str) -> Fraction:
    try:
        return Fraction(text)
    except ZeroDivisionError:
        return Fraction(0)


def write_qc_answer(wanted: Mapping[str, Json], prompt_text: str) -> str:
    """Return the QC answer of a scripted verdict as JSON text.

    `{"auto": "pass"}` passes every criterion and fix with quotes from the prompt; `{"auto": "fail"}` fails those in `failed` (all
    by default). Without `auto` the table is the answer itself, in which `quote_from` becomes `quote` and `source`.
    """
    prompt = parse_review_prompt(prompt_text)
    row = _auto_answer(wanted, prompt) if "auto" in wanted else _fill_quotes(dict(wanted), prompt)
    return json.dumps(row, ensure_ascii=False)


def _auto_answer(wanted: Mapping[str, Json], prompt: ReviewPrompt) -> dict[str, Json]:
    passes = wanted["auto"] == "pass"
    names = wanted.get("failed")
    failed = {str(name) for name in names} if isinstance(names, list) else set[str]()
    failed = failed or (set() if passes else set(prompt.criteria))
    own = wanted.get("quotes")
    quotes: Mapping[str, Json] = own if isinstance(own, dict) else {}

    def state(*, passed: bool, asked: Json = None) -> dict[str, Json]:
        if passed:
            return {"state": "passed", **_quote(prompt, asked)}
        return {"state": "failed", "quote": "", "source": ""}

    answer: dict[str, Json] = {
        "verdict": "PASS" if passes else "FAIL",
        "score": _score(prompt, failed, passes=passes),
        "feedback": "Every criterion is met." if passes else "Not every criterion is met.",
        "issues": [],
        "requiredFixes": [],
        "criteria": [
            {"id": id, **state(passed=id not in failed, asked=quotes.get(id))}
            for id in prompt.criteria
        ],
        "fixes": [{"index": n, **state(passed=passes)} for n in prompt.fixes],
        "criteriaImpossible": False,
    }
    return answer | {k: v for k, v in wanted.items() if k not in ("auto", "failed", "quotes")}


def _score(prompt: ReviewPrompt, failed: set[str], *, passes: bool) -> Json:
    total = sum(prompt.criteria.values(), Fraction(0))
    good = sum((p for id, p in prompt.criteria.items() if id not in failed), Fraction(0))
    score = 100 * good / total if total else Fraction(100 if passes else 0)
    if not passes:  # a failing verdict must not have a passing score
        score = min(score, Fraction(_PASSING - 1))
    return int(score) if score.denominator == 1 else round(float(score), 2)


def _quote(prompt: ReviewPrompt, asked: Json | None) -> dict[str, Json]:
    """Return the asked quote with its source, or the best line of the prompt."""
    if isinstance(asked, dict):
        return _find_quote(prompt, asked)
    for name in sorted(prompt.sources, key=_rank):
        if line := _best_line(prompt.sources[name]):
            return {"quote": line, "source": name}
    return {"quote": "", "source": ""}


def _rank(name: str) -> int:
    # Order of proof; sorting keeps the prompt's order within a rank.
    kinds = ("check:", "file:", "answer")
    return next((rank for rank, kind in enumerate(kinds) if name.startswith(kind)), len(kinds))


def _best_line(lines: Sequence[str]) -> str:
    usable = [line.strip()[:_LONGEST_QUOTE] for line in lines if _is_usable(line)]
    return next((line for line in usable if _GOOD_NEWS.search(line)), usable[0] if usable else "")


def _is_usable(line: str) -> bool:
    return sum(not c.isspace() for c in line[:_LONGEST_QUOTE]) >= _FEWEST_CHARACTERS


def _find_quote(prompt: ReviewPrompt, asked: Mapping[str, Json]) -> dict[str, Json]:
    source, pattern = str(asked.get("source", "")), str(asked.get("pattern", ""))
    for line in prompt.sources.get(source, ()):
        if pattern in line:
            return {"quote": line.strip()[:_LONGEST_QUOTE], "source": source}
    raise ModelError(
        f"The model script needs a quote with {pattern!r} from {source!r}; the prompt holds none "
        f"(its sources: {', '.join(prompt.sources) or 'none'}).",
        scope="run",
        next_step="Correct source or pattern in the model script.",
    )


def _fill_quotes(value: Json, prompt: ReviewPrompt) -> Json:
    if isinstance(value, list):
        return [_fill_quotes(item, prompt) for item in value]
    if not isinstance(value, dict):
        return value
    row: dict[str, Json] = {
        key: _fill_quotes(item, prompt) for key, item in value.items() if key != "quote_from"
    }
    asked = value.get("quote_from")
    return row | _find_quote(prompt, asked) if isinstance(asked, dict) else row
