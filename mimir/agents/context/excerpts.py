"""Excerpts: the relevant lines of a long text, instead of its beginning. Pure.

Relevant lines are changed lines, and lines with names that the task uses. A gap is marked with its line numbers.
"""

import re
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence

from mimir.domain.usage import estimate

MOST_LINES = 40
"""Lines of a text that count as important."""
_RADII = (1, 4, 10, 25)
"""Lines around an important one, as long as there is room."""
_NAME = re.compile(r"[A-Za-z_]\w{2,}")
_CODE_NAME = re.compile(
    r"`([^`\n]+)`|\b(\w+_\w+|[a-z]+[A-Z]\w*|[A-Z]\w*[a-z]\w*[A-Z]\w*)\b|\b(\w+)\("
)
_DEFINES = re.compile(r"\b(?:def|class|func|fn|function|struct|interface|type|const|trait|enum)\b")
_HUNK = re.compile(r"@@ -\d+(?:,\d+)? \+(\d+)(?:,\d+)? @@")
_COMMON = 12
"""A name on more lines than this says nothing about a place."""


def find_changed_lines(diff: str) -> Mapping[str, tuple[int, ...]]:
    """Return the 0-based numbers of changed lines of the new files, by path."""
    found: dict[str, list[int]] = {}
    path, number = "", 0
    in_hunk = False
    for line in diff.splitlines():
        if line.startswith("diff --git "):
            in_hunk = False
        elif not in_hunk and line.startswith("+++ "):
            path = line[4:].removeprefix("b/")
        elif hunk := _HUNK.match(line):
            number, in_hunk = int(hunk[1]) - 1, True
        elif in_hunk and line.startswith(("+", "-")):
            # A removed line marks the line that follows it now.
            lines = found.setdefault(path, [])
            lines += [max(0, number)] if not lines or lines[-1] != number else []
            number += line.startswith("+")
        elif in_hunk:
            number += 1
    return {path: tuple(lines) for path, lines in found.items()}


def find_named_lines(text: str, words: str) -> tuple[int, ...]:
    """Return the 0-based numbers of lines with names that `words` use, the best first."""
    names = Counter[str]()
    names.update(dict.fromkeys(_NAME.findall(words), 1))
    code = (
        name
        for match in _CODE_NAME.findall(words)
        for part in match
        for name in _NAME.findall(part)
    )
    names.update(dict.fromkeys(code, 4))
    lines = text.splitlines()
    places: dict[str, list[int]] = {}
    for number, line in enumerate(lines):
        for name in set(_NAME.findall(line)):
            if name in names:
                places.setdefault(name, []).append(number)
    scores = Counter[int]()
    for name, at in places.items():
        # Words of prose are on many lines, or only weak.
        if len(at) <= _COMMON and names[name] > 1:
            for number in at:
                defines = 3 if _DEFINES.search(lines[number]) else 1
                scores[number] += defines * names[name] * 12 // len(at)
    best = sorted(scores.items(), key=lambda one: (-one[1], one[0]))
    return tuple(number for number, _ in best[:MOST_LINES])


def cut_around(text: str, focus: Sequence[int], tokens: int) -> str:
    """Return lines around those of `focus`, of at most `tokens`, with a mark for each gap."""
    lines = text.splitlines(keepends=True)
    chosen: set[int] = set()
    left = tokens
    for radius in _RADII:
        for middle in focus:
            for number in range(max(0, middle - radius), min(len(lines), middle + radius + 1)):
                cost = estimate(lines[number])
                if number not in chosen and cost <= left:
                    chosen.add(number)
                    left -= cost
    return "".join(_join_lines(lines, sorted(chosen)))


def _join_lines(lines: Sequence[str], chosen: Iterable[int]) -> Iterator[str]:
    next_line = 0
    for number in chosen:
        if number > next_line:
            yield _mark_gap(next_line, number)
        yield lines[number]
        next_line = number + 1
    if next_line < len(lines):
        yield "" if not next_line or lines[next_line - 1].endswith("\n") else "\n"
        yield _mark_gap(next_line, len(lines))


def _mark_gap(first: int, end: int) -> str:
    return f"[… lines {first + 1}–{end} …]\n"
