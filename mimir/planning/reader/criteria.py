"""Reader of criteria: bullets with points, mark and id, or a list of maps. Pure.

In `- [ ] (60 pts) [critical] c1: text`, points, mark and id are optional, in any order. An id is
a few letters and a number, or a word that a check of the task names; other words are text.
"""

import re
from collections.abc import Collection, Iterable, Sequence
from dataclasses import replace
from fractions import Fraction

from mimir.domain.finding import Finding, SourcePosition, quote_excerpt
from mimir.domain.located_tree import LocatedValue
from mimir.domain.plan import Criterion
from mimir.domain.value_class import value_class
from mimir.planning.format.diagnostics import make_finding
from mimir.planning.format.labels import words
from mimir.planning.reader.line_syntax import ID
from mimir.planning.reader.values import ValueLine, is_table_rule, table_cells

# Any sign and a space is a mark, so that no list is joined to one criterion.
_BULLET = re.compile(
    r"([ \t]*)((?:[^\w\s(\[`\"'<$/\\]{1,2}\s+|-(?=\[)|(?:\*\*)?\(?\d{1,3}[.)](?:\*\*)?\s+|\d{1,3}\)(?=[A-Z])|\d{1,3}(?:\.\d{1,3}){1,3}\.?\s+|\(?(?:[a-zA-Z]|[ivxIVX]{2,4})\)\s+)?"
    r"(?:\[[ \txX✓✔]?\]\s*|[☐☑✅✔]\ufe0f?\s*)?)"
)
_MARKED = re.compile(
    r"\W*?(?:\[[ \txX✓✔]?\]|[☐☑✅✔])\s*\S|\W*?[(\[]\s*\d{1,4}\s*(?:pts?|points?|%)", re.IGNORECASE
)
_AFTER_POINTS = r"(?:[:–—→|]|-(?=\s)|<br ?/?>)?\s*"
_BARE_POINTS = re.compile(
    r"(\d{1,4})\s*(?:(?:pts?|points?)\s*[:–—]|%(?=\s+[a-z]\d{1,3}:))()\s*", re.IGNORECASE
)
_POINTS = re.compile(
    r"(?:\*\*)?[(\[]\s*(?:\*\*)?(-?\d{1,12}(?:\.\d{1,12}|/0*[1-9]\d{0,11})?)\s*(?:pts?|points?|%|/\s*100(?=\s*[)\]]))\.?\s*(?:,\s*(critical)\s*)?(?:\*\*)?[)\]](?:\*\*)?\s*"
    + _AFTER_POINTS,
    re.IGNORECASE,
)
_STRAY_POINTS = re.compile(
    r".{0,12}[(\[|⟨{<+~≈]\s*\d{1,4}\s*(?:pts?|points?)\b|\W{0,3}\d{1,4}[^\w\s]+\d{1,4}\s*(?:pts?|points?)\b|\W{0,3}(?:pts?|points?)\W{1,3}\d|.*[–—(\[⟨|-]\s*\d{1,4}\s*(?:pts?|points?)\W*$",
    re.IGNORECASE | re.DOTALL,
)
# A number in brackets with another unit, or at the end: "(100 credits)", "(weight: 60)", "… [60]".
_MAYBE_POINTS = re.compile(
    r"\W{0,2}[(\[{<|]\s*[^\W\d]{0,10}\W{0,3}[\d.]{1,5}(?:\s?[^\W\d]{1,10}\.?)?\s*[)\]}>|]\s|\W{0,2}(?:[^\W\d]{1,10}\s)?\d{1,3}\s?[:–—|-]\s"
    r"|.{0,24}\d{1,4}\W{0,4}(?:pts?|points?)\b|.*(?:\s[(\[]|:|\.{3}|…)\s*\d{1,3}(?:/100)?[)\]]?$|(?:</?\w{1,6}>){1,4}\d{1,3}</",
    re.IGNORECASE | re.DOTALL,
)
_CRITICAL = re.compile(
    r"(?:\*\*)?[(\[]\s*critical\s*[)\]](?:\*\*)?\s*:?\s*|(?:\*\*)?critical(?:\*\*)?\s*:(?:\*\*)?\s*",
    re.IGNORECASE,
)
# Before points or a mark in brackets, an id needs no colon: `c1 (60 pts): text`.
_BEFORE_BRACKETS = r"\s+(?=[(\[]\s*(?:\d{1,4}\s*(?:pts?|points?|%)|critical\b))"
_SHORT_ID = re.compile(
    rf"(?:\*\*|`)?([A-Za-z]{{1,4}}[-_.]?\d{{1,4}})(?:\*\*|`)?(?:[:.)](?:\*\*)?(?:\s+|$)|\s+[–—-]\s+|{_BEFORE_BRACKETS})",
    re.IGNORECASE,
)
_NAMED_ID = re.compile(
    rf"(?:\*\*|`)?({ID})(?:\*\*|`)?(?::(?:\*\*)?(?:\s+|$)|{_BEFORE_BRACKETS})", re.IGNORECASE
)
_BRACKET_ID = re.compile(r"(?:\*\*|`)?\[([A-Za-z]{1,4}[-_.]?\d{1,4})\](?:\*\*|`)?:?(?:\*\*)?\s+")
_LAST_CRITICAL = re.compile(
    r"(?:(?:\*\*)?[(\[]\s*(?:\*\*)?critical(?:\*\*)?\s*[)\]](?:\*\*)?|\*\*critical\*\*|\s[–—-]\s+critical)$",
    re.IGNORECASE,
)
# The same pattern at the end of a text, where no separator follows it.
_LAST_POINTS = re.compile(
    rf"(?:{_POINTS.pattern.removesuffix(_AFTER_POINTS)}|\s[–—-]\s+(\d{{1,4}})\s*(?:pts?|points?)|[(\[]\s*(?:weight|points?|pts)\s*[:=]\s*(\d{{1,4}})\s*%?[)\]])$",
    re.IGNORECASE,
)


@value_class
class RawCriterion:
    """A criterion as it was written."""

    text: str
    place: SourcePosition
    id: str = ""
    points: Fraction | None = None
    critical: bool = False


def parse(text: str, place: SourcePosition, named: Collection[str] = ()) -> RawCriterion:
    """Parse the line of a criterion after its bullet.

    Args:
        text: The line; stripped here.
        place: Its position.
        named: Ids that the task's checks name.
    """
    one = RawCriterion(text=text.strip(), place=place)
    # Three rounds, because the three parts may come in any order.
    for _ in ("points", "mark", "id"):
        one = _take_mark(one, named)
    # Twice: points and mark may both be at the end, in any order.
    return _take_last_mark(_take_last_mark(one))


def _take_mark(one: RawCriterion, named: Collection[str]) -> RawCriterion:
    """Move one of points, mark and id from the front of the text to its field."""
    points = _POINTS.match(one.text) or _BARE_POINTS.match(one.text)
    # Equal points twice are a repetition.
    if points and one.points in (None, Fraction(points[1])):
        return _with_points(one, points, one.text[points.end() :])
    critical = _CRITICAL.match(one.text)
    if critical and not one.critical:
        return replace(one, critical=True, text=one.text[critical.end() :])
    id = _SHORT_ID.match(one.text) or _BRACKET_ID.match(one.text) or _NAMED_ID.match(one.text)
    # "Note: …" is text; "c1: …" is an id, and so is a word that a check names.
    if id and not one.id and (id.re is not _NAMED_ID or id[1] in named):
        return replace(one, id=id[1], text=one.text[id.end() :])
    return one


def _take_last_mark(one: RawCriterion) -> RawCriterion:
    """Move points or mark from the end of the text, unless its front had them."""
    if (
        not one.text.rstrip("*")
        .lower()
        .endswith((")", "]", "critical", "pts", "pt", "points", "point"))
    ):
        return one
    # Only the end is searched: the pattern has no anchor at its start.
    critical = _LAST_CRITICAL.search(one.text[-60:])
    if critical and not one.critical:
        return replace(one, critical=True, text=_without_end(one.text, critical[0]))
    points = _LAST_POINTS.search(one.text[-60:])
    if points and one.points is None:
        return _with_points(one, points, _without_end(one.text, points[0]))
    return one


def _with_points(one: RawCriterion, points: re.Match[str], text: str) -> RawCriterion:
    critical = one.critical or bool(points[2])
    number = next(one for one in (points[1], *points.groups()[2:]) if one)
    return replace(one, points=Fraction(number), critical=critical, text=text)


def _without_end(text: str, end: str) -> str:
    return text[: len(text) - len(end)].rstrip(" –—-")


def _points_fault(one: RawCriterion) -> str:
    """Return the code of points that were read as text; empty: there are none."""
    if one.points is not None:
        return "criterion-unreadable" if _POINTS.match(one.text) else ""
    if _STRAY_POINTS.match(one.text):
        return "criterion-unreadable"
    return "points-unread" if _MAYBE_POINTS.match(one.text) else ""


def is_marked_item(text: str) -> bool:
    """Return whether a line has the box or the points of a criterion."""
    return _MARKED.match(text) is not None


def from_lines(
    lines: Iterable[ValueLine], named: Collection[str], findings: list[Finding]
) -> tuple[list[RawCriterion], list[str]]:
    """Return the criteria of a list or table, and the other lines: headings of groups."""
    all_lines = tuple(
        replace(line, text=text, inline=line.inline and not number)
        for line in lines
        for number, text in enumerate(_INLINE_ITEMS.split(line.text))
    )
    given = [line for line in all_lines if line.text.strip()]
    if len(given) > 1 and is_table_rule(given[1].text):
        return _from_table(given, named, findings), []
    reader = _BulletReader(named, findings)
    for line in all_lines:
        reader.take(line)
    return reader.close()


def _from_table(
    lines: Sequence[ValueLine], named: Collection[str], findings: list[Finding]
) -> list[RawCriterion]:
    """Return the criteria of a table: id, points, critical and text, in any order."""
    head, _, *rows = lines
    keys = [_KEYS.get(words(cell)) for cell in table_cells(head.text)]
    found: list[RawCriterion] = []
    for line in rows:
        cells = {
            key: cell if key == "text" else cell.strip("`*")
            for key, cell in zip(keys, table_cells(line.text), strict=False)
            if key
        }
        points = _EXACT_POINTS.fullmatch(cells.get("points", ""))
        one = parse(cells.get("text", ""), line.place, named)
        is_critical = _IS_CRITICAL.get(cells.get("critical", "").casefold())
        if not one.text or is_critical is None or (cells.get("points") and points is None):
            message = f"The row {quote_excerpt(line.text)} is no criterion."
            hint = "Write each criterion as '- [ ] (60 pts) c1: text'."
            findings.append(make_finding("criterion-unreadable", message, line.place, hint))
            continue
        found.append(
            replace(
                one,
                id=cells.get("id") or one.id,
                points=Fraction(points[1]) if points else one.points,
                critical=one.critical or is_critical,
            )
        )
    return found


_IS_CRITICAL = {
    **dict.fromkeys(("", "no", "n", "false", "-", "–", "✗", "❌"), False),
    **dict.fromkeys(("yes", "y", "true", "critical", "x", "✓", "✔", "✅"), True),
}
"""Cell of the column "critical" → its meaning."""


_INLINE_ITEMS = re.compile(r";\s+(?=[(\[]\s*\d{1,4}\s*(?:pts?|points?|%))", re.IGNORECASE)


class _BulletReader:
    def __init__(self, named: Collection[str], findings: list[Finding]) -> None:
        self._named = named
        self._findings = findings
        self._done: list[tuple[list[str], SourcePosition, bool]] = []
        self._left: list[str] = []
        self._indent: int | None = None
        # True: the next line without a bullet continues the last criterion.
        self._open = False
        # True: the heading of the group marks its criteria as critical.
        self._critical = False

    def take(self, line: ValueLine) -> None:
        match = _BULLET.match(line.text)
        assert match is not None
        text = line.text[match.end() :].strip()
        # A quote mark may be before the mark of the list.
        while match[2] and (again := _BULLET.match(text)) and again[2]:
            text = text[again.end() :].strip()
        place = replace(line.place, column=line.place.column + match.end())
        if not line.text.strip():
            self._open = False
        elif (match[2] or _POINTS.match(text) or _SHORT_ID.match(text)) and not line.inline:
            self._bullet(text, len(match[1].expandtabs(4)), place)
        # A line without a bullet continues the criterion above it.
        elif self._open and (self._indent is None or not self._is_group(text)):
            self._done[-1][0].append(text)
            # A line at the left edge of the list, or with a mark, may have been meant as an item.
            at_edge = self._indent is not None and len(match[1].expandtabs(4)) <= self._indent
            if at_edge or not (text[:1].isalnum() or text[:1] in "`(\"'"):
                self._report("criterion-nested", text, place)
        elif self._is_group(text):
            self._group(text)
        elif self._indent is None or line.text[:1].isspace():
            self._add(text, place)
        else:
            self._left.append(text)
            self._report("criterion-beside", text, place)

    def _report(self, code: str, text: str, place: SourcePosition) -> None:
        how = (
            "is part of the criterion above it" if code == "criterion-nested" else "is no criterion"
        )
        message, hint = f"{quote_excerpt(text)} {how}.", "Write each criterion as '- [ ] text'."
        self._findings.append(make_finding(code, message, place, hint))

    def _bullet(self, text: str, indent: int, place: SourcePosition) -> None:
        first = self._indent is None
        # Lines before the first mark may have been items with other marks.
        if first and self._done and len(self._done[-1][0]) > 1:
            self._report("criterion-nested", self._done[-1][0][1], self._done[-1][1])
        self._indent = indent if self._indent is None else min(self._indent, indent)
        # One column more is sloppy formatting, two or more are a level below.
        if not first and indent > self._indent + 1 and self._done:
            parts, _, critical = self._done[-1]
            if not (len(parts) == 1 and self._is_group(parts[0])):
                parts.append(f"- {text}")
                self._report("criterion-nested", text, place)
                return
            # A bullet that is the heading of those below it is no criterion.
            self._done.pop()
            self._group(parts[0])
            self._critical = self._critical or critical
            self._indent = indent
        self._add(text, place)

    def _add(self, text: str, place: SourcePosition) -> None:
        if text:
            self._done.append(([text], place, self._critical))
            self._open = True

    def _group(self, text: str) -> None:
        self._left.append(text)
        self._critical = "critical" in text.casefold()
        self._open = False

    def _is_group(self, text: str) -> bool:
        return text.rstrip("*_ ").endswith(":") and not _SHORT_ID.match(text)

    def close(self) -> tuple[list[RawCriterion], list[str]]:
        """Return the criteria and the remaining lines."""
        found: list[RawCriterion] = []
        for (text, *parts), place, critical in self._done:
            text += "".join(f"\n{part}" if part.startswith("- ") else f" {part}" for part in parts)
            one = parse(text, place, self._named)
            code = _points_fault(one)
            if code:
                message = f"The points of criterion {quote_excerpt(one.text)} cannot be read."
                hint = "Write it as '- [ ] (60 pts) c1: text'."
                self._findings.append(make_finding(code, message, place, hint))
            found.append(replace(one, critical=one.critical or critical))
        return found, self._left


def from_node(
    node: LocatedValue, named: Collection[str], found: list[Finding]
) -> list[RawCriterion]:
    """Return the criteria of a list of texts or maps; an unreadable one is a finding."""
    criteria: list[RawCriterion] = []
    if node.kind == "map" and not any(_KEYS.get(words(key)) == "text" for key in node.keys):
        # A map of ids to texts.
        for id, value in node.keys.items():
            criteria += (replace(one, id=id) for one in from_node(value, named, found))
        return criteria
    for item in node.items if node.kind == "list" else [node]:
        one = _from_map(item) if item.kind == "map" else None
        if item.kind == "text":
            one = parse(item.text, item.place, named)
        if one is not None:
            criteria.append(one)
            continue
        message, hint = (
            "A criterion is unreadable.",
            "Write a text, or {id, text, points, critical}.",
        )
        found.append(make_finding("criterion-unreadable", message, item.place, hint))
    return criteria


_KEYS = {
    "id": "id",
    "text": "text",
    "description": "text",
    "criterion": "text",
    "criteria": "text",
    "points": "points",
    "pts": "points",
    "weight": "points",
    "critical": "critical",
}


def _from_map(node: LocatedValue) -> RawCriterion | None:
    values: dict[str, LocatedValue] = {}
    for key, value in node.keys.items():
        name = _KEYS.get(words(key))
        if name is None or name in values or not (value.is_scalar or value.kind == "null"):
            return None
        values[name] = value
    text, id = values.get("text"), values.get("id")
    points = values.get("points")
    match = _EXACT_POINTS.fullmatch(points.text) if points and points.is_scalar else None
    critical = values.get("critical")
    word = critical.text.casefold() if critical else ""
    if text is None or (points and points.is_scalar and match is None):
        return None
    if word not in ("true", "false", "yes", "no", ""):
        return None
    return RawCriterion(
        text=text.text,
        place=text.place,
        id=id.text if id else "",
        points=Fraction(match[1]) if match else None,
        critical=word in ("true", "yes"),
    )


_EXACT_POINTS = re.compile(
    r"(-?\d{1,4000}(?:/0*[1-9]\d{0,4000}|\.\d{1,400})?)\s*(?:pts?|points?|%)?", re.IGNORECASE
)


def assign_ids(criteria: Iterable[RawCriterion], found: list[Finding]) -> tuple[Criterion, ...]:
    """Give each criterion without an id a free one by position: `c1`, `c2` and so on."""
    given = list(criteria)
    taken = {one.id for one in given if one.id}
    done: list[Criterion] = []
    for n, one in enumerate(given, start=1):
        id = one.id
        # The number of the position may be taken by a written id; further ones are tried.
        while not id:
            id = f"c{n}" if f"c{n}" not in taken else ""
            n += len(given)
        taken.add(id)
        if not one.text.strip():
            message = f"Criterion {quote_excerpt(id)} has no text."
            hint = "Write a statement that must be true of the result."
            found.append(make_finding("criterion-unreadable", message, one.place, hint))
        done.append(Criterion(id=id, text=one.text, points=one.points, critical=one.critical))
    return tuple(done)


def merge_criteria(groups: Iterable[list[RawCriterion]]) -> list[RawCriterion]:
    """Return the criteria of several fields; a repeated text counts once, except in one field."""
    seen: set[str] = set()
    done: list[RawCriterion] = []
    for group in groups:
        marked = {words(one.text): one for one in group if one.points is not None}
        # The points and the mark may be with either of two equal criteria.
        done = [_with_marks_of(one, marked.get(words(one.text))) for one in done]
        # Planners repeat criteria in the checks; two equal ones in one list are a finding instead.
        done += [one for one in group if words(one.text) not in seen]
        seen = {words(one.text) for one in done}
    return done


def _with_marks_of(one: RawCriterion, other: RawCriterion | None) -> RawCriterion:
    if other is None or one.points is not None:
        return one
    return replace(
        one, points=other.points, critical=one.critical or other.critical, id=one.id or other.id
    )
