"""Reader of task ids and lists of ids: "task-1 and 2.1", "tasks 1.2-1.4". Pure.

References are resolved against the ids of the plan. Text that names no task, or that a list cannot
express ("either", "not", "unless"), is a finding.
"""

import re
from collections.abc import Mapping, Sequence

from mimir.domain.finding import Finding, SourcePosition, quote_excerpt
from mimir.planning.format.diagnostics import make_finding
from mimir.planning.reader.line_normalization import narrow_text
from mimir.planning.reader.line_syntax import ID
from mimir.planning.reader.values import (
    RawField,
    array_of,
    is_none,
    split_list,
    strip_markup,
    value_lines,
)

MAX_ID = 100
# Words with another meaning in a list of tasks.
_RESERVED = re.compile(
    "none|na|n-a|null|nil|no|nothing|all|and|or|to|through|tasks?", re.IGNORECASE
)

# "None, task-1" and "None (except task-1)" contradict themselves; other words are a remark.
_ID_OF_TASK = r"(?:task\W?\s?)?[\w.\-]*\d[\w.\-]*"
_NONE_AND_IDS = re.compile(
    rf"\W*none\W*[,;]\s*{_ID_OF_TASK}(?:\s*(?:,|&|and)\s*{_ID_OF_TASK}){{0,50}}\W*(?:\([^()]*\)\W*)?$",
    re.IGNORECASE,
)
NONE_EXCEPT = re.compile(r"\W*none\W+(?:except|besides|but|apart from|other than)\b", re.IGNORECASE)
_ID = re.compile(ID)
_SPOKEN = re.compile(r"(?:task\s*#?\s*|#)(\d+(?:\.\d+)*[a-z]?)$", re.IGNORECASE)


def is_id(text: str) -> bool:
    """Return whether a text is a valid task id: letters, digits, `.`, `-`, `_`, and no `..`."""
    if len(text) > MAX_ID or ".." in text or _RESERVED.fullmatch(text):
        return False
    return _ID.fullmatch(text) is not None


def id_of(text: str) -> tuple[str, str]:
    """Return the id in the value of a "Task ID" label (empty: none), and the title after it."""
    text = strip_markup(narrow_text(text).strip())
    # "Task 1.1" and "#3" are spoken forms of task-1.1 and task-3.
    spoken = _SPOKEN.match(text)
    if spoken:
        return f"task-{spoken[1]}", ""
    if is_id(text):
        return text, ""
    match = re.match(
        rf"`?((?:task\s+)?{ID})`?\s*(?:[:–—|]\s*|-\s+|(?=[(\[]))(.*)$", text, re.IGNORECASE
    )
    if match is None:
        return "", ""
    id, _ = id_of(match[1])
    return id, "" if match[2].startswith(("(", "[")) else match[2].strip()


class TaskReferences:
    """The task ids of a plan and their aliases."""

    def __init__(self, ids: Sequence[str], aliases: Mapping[str, str]) -> None:
        """Index the declared ids; `aliases` maps ids in headings to them."""
        self._order = {id: n for n, id in enumerate(dict.fromkeys(ids))}
        self._aliases = {name: id for name, id in aliases.items() if name not in self._order}
        folded: dict[str, set[str]] = {}
        for id in self._order:
            folded.setdefault(id.casefold(), set()).add(id)
        # Two ids that differ in case only are ambiguous: then the case must match.
        self._folded = {name: min(same) for name, same in folded.items() if len(same) == 1}

    def resolve(self, token: str) -> str | None:
        """Return the declared id that a token names."""
        if token in self._order:
            return token
        if token in self._aliases:
            return self._aliases[token]
        number = re.fullmatch(r"(?:task\s*[-_#]?\s*|#)?(\d+(?:\.\d+)*[a-z]?)", token, re.IGNORECASE)
        if number:
            # "2.1" may mean an id of any usual form; the form of the instructions comes first.
            for form in (f"task-{number[1]}", number[1], f"task_{number[1]}", f"task{number[1]}"):
                if form in self._order or form in self._aliases:
                    return self._aliases.get(form, form)
        if token[:4].casefold() == "task":
            return self._folded.get(token.casefold())
        return None

    def read(
        self, raw: RawField, own: int, found: list[Finding]
    ) -> list[tuple[str, SourcePosition]]:
        """Return the tasks that a value names, each once, with their positions.

        Args:
            raw: The field.
            own: Number of the task in the plan, for "all previous tasks".
            found: Receives the findings.
        """
        ids: dict[str, SourcePosition] = {}
        for text, place in _pieces(raw):
            named = self._piece(text, own)
            if named is None:
                message = f"{quote_excerpt(text)} names no tasks."
                hint = "Write ids of tasks, separated by commas, or None."
                found.append(make_finding("dependency-unreadable", message, place, hint))
            for id in named or ():
                ids.setdefault(id, place)
        return list(ids.items())

    def _piece(self, text: str, own: int) -> list[str] | None:
        """Return the ids of one piece; None if it is unreadable."""
        item = strip_markup(narrow_text(text))
        if NONE_EXCEPT.match(item):
            return None
        if is_none(item):
            return []
        if self.resolve(item) is not None:
            return [str(self.resolve(item))]
        # "All previous tasks" means those before it in the plan.
        if _ALL_BEFORE.fullmatch(item):
            return list(self._order)[:own]
        span = _SPAN.fullmatch(item)
        between = self._span(span[1], span[2]) if span is not None else None
        if between is not None:
            return between
        one = _ONE.fullmatch(item)
        if one is not None and not _HEDGED.search(one[2]):
            return self._one(one[1], one[2].strip())
        return self._prose(item)

    def _one(self, token: str, rest: str) -> list[str] | None:
        """Return the id before an aside, an explanation or the end of the text."""
        token = token.strip("`")
        id = self.resolve(token)
        remark = re.sub(r"\([^()]*\)|\[[^\[\]]*\]", "", rest).strip()
        if id is not None and (not remark or (remark[0] in ":-–—" and not self._named_in(remark))):
            return [id]
        spoken, _ = id_of(token)
        looks_like_id = bool(re.search(r"[\d\-_]", token))
        if spoken and (not rest or (rest.startswith(("(", "[")) and looks_like_id)):
            return [spoken]
        return self._prose(f"{token} {rest}")

    def _span(self, first: str, last: str) -> list[str] | None:
        """Return the declared tasks of a range."""
        low, high = self.resolve(first.strip()), self.resolve(last.strip())
        # A range backwards or to an unknown task was not meant as one.
        if low is None or high is None or self._order[low] > self._order[high]:
            return None
        return list(self._order)[self._order[low] : self._order[high] + 1]

    def _prose(self, item: str) -> list[str] | None:
        """Return the only id in a text, or its ids if it has no other words; otherwise None."""
        if _HEDGED.search(item) or len(item) > 300:
            return None
        ids = self._named_in(item)
        only_ids = not re.sub(r"[\s`]", "", _IN_PROSE.sub(" ", item))
        return ids if len(ids) == 1 or (only_ids and len(ids) == len(item.split())) else None

    def _named_in(self, text: str) -> list[str]:
        """Return the tasks in a text, each once; a bare number counts only as the first word."""
        ids: list[str] = []
        for match in _IN_PROSE.finditer(text):
            token = match[0].strip("`")
            number = token.replace(".", "").isdigit()
            id = None if number and match.start() > 0 else self.resolve(token)
            if id is not None and (
                number or token in self._order or token[:4].casefold() == "task"
            ):
                ids.append(id)
            elif re.match(r"task[-_ ]?\d", token, re.IGNORECASE):
                # The plan has no such task; the lint reports it.
                ids.append(id_of(token)[0])
        return [id for id in dict.fromkeys(ids) if id]


_ALL_BEFORE = re.compile(
    r"(?:all|every)(?: of)?(?: the)? (?:previous|prior|preceding|earlier|above)(?: tasks?)?\.?",
    re.IGNORECASE,
)
_FORM = r"(?:task[\s\-_#]*)?\d+(?:\.\d+)*"
_SPAN = re.compile(
    rf"(?:tasks\s+)?({_FORM})\s*(?:[-–—]|\bto\b|\bthrough\b|\bthru\b|\.\.\.?)\s*({_FORM})(?:\s*\(.*\))?",
    re.IGNORECASE,
)
_ONE = re.compile(
    rf"(?:tasks\s+|task\s+ids?\s*:?\s*)?(`?(?:task\s*:?\s+)?{ID}`?)((?:[\s:(\[–—].*)?)",
    re.IGNORECASE | re.DOTALL,
)
_HEDGED = re.compile(
    r"\b(?:or|not|no|never|except|without|unless|either|independent|optional(?:ly)? if)\b|n't\b",
    re.IGNORECASE,
)
_IN_PROSE = re.compile(rf"(?:task\s+(?=\d))?`?{ID}`?", re.IGNORECASE)
_AND = re.compile(
    r"(?:^|\s+)(?:and|plus)\s+|\s*[&+]\s*|\s*(?:→|=>)\s*|(?<=[\d`])\s*/\s*(?=[\dt`])", re.IGNORECASE
)


_ITEMS = re.compile(r"\n\s*(?:[-*+•]|\d+[.)])\s+\S")


def _pieces(raw: RawField) -> list[tuple[str, SourcePosition]]:
    if raw.items is not None:
        return [piece for item in raw.items for piece in _and_pieces(item.text, item.place)]
    # A list below "None" is none of its remarks.
    first = next((line for line in raw.text.split("\n") if line.strip()), "")
    contradicts = _NONE_AND_IDS.match(first) or NONE_EXCEPT.match(first)
    if is_none(raw.text) and not _ITEMS.search(raw.text) and not contradicts:
        return []
    array = array_of(raw.text)
    if array is not None:
        return [(text, raw.place) for text in array]
    return [
        piece
        for line in value_lines(raw)
        for text, place in split_list(line)
        for piece in _and_pieces(text, place)
    ]


def _and_pieces(text: str, place: SourcePosition) -> list[tuple[str, SourcePosition]]:
    """Split at "and" and the like, but not inside an aside."""
    text = text.strip()
    hidden = re.sub(r"\([^()]*\)", lambda aside: "(" + "." * (len(aside[0]) - 2) + ")", text)
    pieces: list[tuple[str, SourcePosition]] = []
    at = 0
    for start, end in [*(match.span() for match in _AND.finditer(hidden)), (len(text), len(text))]:
        part = text[at:start]
        if part.strip():
            column = place.column + at + len(part) - len(part.lstrip())
            pieces.append((part, SourcePosition(line=place.line, column=column)))
        at = end
    return pieces
