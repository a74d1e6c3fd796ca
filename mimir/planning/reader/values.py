"""Reader of field values: texts, lists, numbers and durations. Pure.

The form is free; an unreadable value is a finding.
"""

import json
import math
import re
from collections.abc import Sequence
from fractions import Fraction

from mimir.domain.finding import START, Finding, SourcePosition, quote_excerpt
from mimir.domain.json_value import as_array, as_texts
from mimir.domain.located_tree import LocatedValue
from mimir.domain.value_class import value_class
from mimir.planning.format.diagnostics import make_finding
from mimir.planning.format.labels import Key, LabelMatch

_NONE = re.compile(
    r"(?:(?:none(?: (?:required|needed|yet))?|n/?a|null|nil|not applicable|nothing|no"
    r"|no (?:dependenc(?:y|ies)|prerequisites?|other tasks?)|\[\s*\])"
    r"\s*(?:\(.*\)|[-–—:,;] .*)?|[-–—]+)?[\s.]*$",
    re.IGNORECASE | re.DOTALL,
)
_MAX_NONE = 500
_UNKNOWN = re.compile(r"\s*(?:tbd|unknown|varies|\?+|default)\s*$", re.IGNORECASE)


@value_class
class ValueLine:
    """A line of a value, with its indent."""

    text: str
    place: SourcePosition
    """Of the first character of `text`."""
    inline: bool = False
    """True: it follows the label on the same line."""


@value_class
class RawField:
    """A field of a markdown or JSON plan before its value is read."""

    found: LabelMatch
    name: str
    place: SourcePosition = START
    text: str = ""
    """The whole value."""
    lines: tuple[ValueLine, ...] = ()
    """Markdown only."""
    items: tuple["RawField", ...] | None = None
    """Texts of a JSON list."""
    node: LocatedValue | None = None
    """Tree of a JSON value or of a YAML fence."""
    exact: bool = False
    """True: the text is that of a block, and is kept as it is."""
    unreadable: str = ""
    """Error of parsing the tree."""

    @property
    def key(self) -> Key:
        """The task's field."""
        return self.found.field.key


def is_none(text: str) -> bool:
    """Return whether a value is empty, `None`, `N/A` or `-`, also with an aside: `None (yet)`."""
    bare = text.strip().strip("*_`").strip()
    # A long text is no "None"; the bound also keeps the pattern's time small.
    return len(bare) <= _MAX_NONE and _NONE.match(bare) is not None


# Numbers.

_NUMBER = re.compile(r"(?<![\w.])(?!0[xXbBoO]\w)(\d{1,3}(?:,\d{3})+|\d{1,9})(\.\d{1,9})?")
_RANGE = re.compile(
    r"(?<![\w.])(\d{1,9}(?:\.\d{1,9})?)\s*(?:-|–|—|to|~|\.\.)\s*(\d{1,9}(?:\.\d{1,9})?)(?!\d)",
    re.IGNORECASE,
)
_NEGATIVE = re.compile(r"^\D{0,20}?(?<![\w)])[-−]\s?\d")
_ENDLESS = re.compile(r"\b(?:unlimited|infinite|infinity|inf|nan|forever)\b|∞", re.IGNORECASE)


def number_in(text: str) -> Fraction | None:
    """Return the number in a text, the larger one of a range; None if there is none."""
    text = text[:200]
    # Better a finding than a guess: each of these would be read as another number.
    if _ENDLESS.search(text) or _NEGATIVE.match(text[:40]) or re.search(r"\d{10}", text):
        return None
    span = _RANGE.search(text)
    if span is not None:
        return max(Fraction(span[1]), Fraction(span[2]))
    one = _NUMBER.search(text)
    if one is None or re.match(r"[eE][+-]?\d", text[one.end() : one.end() + 3]):
        return None
    return Fraction(one[1].replace(",", "") + (one[2] or ""))


def count(raw: RawField, found: list[Finding], *, default: int | None) -> int | None:
    """Return a whole number; `default` for `N/A` and the like. One attempt is no retry."""
    text = strip_markup(one_line(raw))
    # Where a number is required, "None" is ambiguous: it may mean zero.
    if _UNKNOWN.match(text) or (is_none(text) and (default is None or text.casefold() != "none")):
        return default
    number = number_in(text)
    value = -1 if number is None else math.ceil(number) - raw.found.counts_attempts
    if value < 0:
        found.append(_unreadable(raw, "a whole number, such as 2"))
        return default
    return value


# Units in minutes; a day of work has eight hours.
_UNITS: tuple[tuple[re.Pattern[str], Fraction], ...] = (
    (re.compile(r"s(?:ec(?:ond)?s?)?", re.IGNORECASE), Fraction(1, 60)),
    (re.compile(r"m(?:in(?:ute)?s?)?", re.IGNORECASE), Fraction(1)),
    (re.compile(r"h(?:(?:ou)?rs?)?", re.IGNORECASE), Fraction(60)),
    (re.compile(r"d(?:ays?)?", re.IGNORECASE), Fraction(480)),
)
_AMOUNT = r"(\d{1,400}(?:\.\d{1,400})?(?:e[+-]?\d{1,3})?)"
_WITH_UNIT = re.compile(
    rf"(?<![\w.]){_AMOUNT}(?:\s*(?:-|–|—|to)\s*{_AMOUNT})?\s*([a-z]+)", re.IGNORECASE
)
_WITHOUT_UNIT = re.compile(rf"\W{{0,3}}{_AMOUNT}(?:\s*(?:-|–|—|to)\s*{_AMOUNT})?\W{{0,3}}$")


def minutes(raw: RawField, found: list[Finding], *, default: float | None) -> float | None:
    """Return minutes: `15 minutes`, `2-3 hours` (180), `1h 30m`, `45`; `default` for `N/A`."""
    text = strip_markup(one_line(raw))[:1000]
    if is_none(text) or _UNKNOWN.match(text):
        return default
    bounded = not _NEGATIVE.match(text) and not _ENDLESS.search(text)
    total = _duration(text, raw.found.aside) if bounded else None
    try:
        value = math.inf if total is None else float(total)
    except OverflowError:
        value = math.inf
    if math.isinf(value):
        found.append(_unreadable(raw, "a duration, such as 15 minutes"))
        return default
    return int(value) if value.is_integer() else value


def _duration(text: str, aside: str) -> Fraction | None:
    # Text behind a bracket or comma is a remark: "2 hours (1 hour with help)".
    text = re.split(r"[(\[;,]", text, maxsplit=1)[0]
    # "Estimated Duration (hours): 2" has its unit in the label; without any, minutes are meant.
    alone = _WITHOUT_UNIT.match(text)
    if alone:
        factor = _factor(aside) if aside else None
        return max(Fraction(alone[1]), Fraction(alone[2] or 0)) * (factor or Fraction(1))
    known = [
        max(Fraction(match[1]), Fraction(match[2] or 0)) * factor
        for match in _WITH_UNIT.finditer(text)
        if (factor := _factor(match[3])) is not None
    ]
    return sum(known, Fraction(0)) if known else None


def _factor(word: str) -> Fraction | None:
    return next((factor for unit, factor in _UNITS if unit.fullmatch(word)), None)


# Texts and lists.


def one_line(raw: RawField) -> str:
    """Return the first line of a value, or the whole text if it is exact."""
    if raw.exact:
        return raw.text
    return next((line for line in raw.text.split("\n") if line.strip()), "").strip()


def title(raw: RawField) -> str:
    """Return a value as one line, unless it is exact."""
    return raw.text if raw.exact else " ".join(raw.text.split())


def strip_markup(text: str) -> str:
    """Return a name without bullet, quotes, backticks and emphasis."""
    text = re.sub(r"^(?:[-*+•]\s+|\d{1,3}[.)]\s+)(?:\[[ xX]?\]\s*)?", "", text.strip())
    for left, right in (
        ("**", "**"),
        ("`", "`"),
        ('"', '"'),
        ("'", "'"),
        ("“", "”"),
        ("*", "*"),
        ("[", "]"),
    ):
        # The order matters: ** before *, so that bold text loses both stars.
        if len(text) > len(left + right) and text.startswith(left) and text.endswith(right):
            inner = text[len(left) : -len(right)]
            if left not in inner and right not in inner:
                text = inner.strip()
    return text


def names(raw: RawField, found: list[Finding]) -> list[RawField]:
    """Return the items of a list: bullets, a JSON array, or separated by `,`, `;` or lines."""
    if raw.items is not None:
        return list(raw.items)
    if raw.node is not None and raw.node.kind != "list":
        found.append(_unreadable(raw, "a list of texts"))
        return []
    if is_none(raw.text) and not raw.exact:
        return []
    array = array_of(raw.text)
    if array is not None:
        return [_item(raw, text, raw.place) for text in array]
    pieces = [
        (piece, place)
        for line in value_lines(raw)
        if not line.text.strip().startswith("```")
        for text, place in split_list(line)
        for piece in _split_names(text)
    ]
    return [
        _item(raw, name, place) for text, place in pieces if (name := without_aside(_path_in(text)))
    ]


_PATH = r"`[^`]+`|[^\s`]+"
_AND = r"(?:\s*,)?\s+(?:(?:and|&|\+)\s+)?"
_SEVERAL = re.compile(
    rf"(?:[-*+•]\s+)?(?:`[^`]+`(?:{_AND}|$)){{2,}}|(?:[-*+•]\s+)?[^\s`]+\s+(?:and|&|\+)\s+[^\s`]+"
)
_LINK = re.compile(r"\[([^\[\]\s]+)\]\([^()\s]*\)")
_VERB = re.compile(
    rf"\A(?:(?:create|modify|change|update|edit|add|write|new|read)[ds]?(?::\s*|\s+)|(?:and|&)\s+)(?=(?:{_PATH})(?:\s*$|\s[(–—-]))",
    re.IGNORECASE,
)
_GROUP = re.compile(
    r"(?:create|modify|change|update|edit|add|write|new|read|files)[ds]?:", re.IGNORECASE
)
_REMARK = re.compile(r"([^\s`]*(?:\.\w+|[/*]))(?::|\s+(?:#|//|->|→|—|–|-))\s+.*", re.DOTALL)
"""A name with an extension, and a remark after it."""


def _split_names(text: str) -> list[str]:
    """Return the names of `` `a.py` and `b.py` ``, or the text; none of the head of a group."""
    pieces = re.split(r"<br ?/?>", text.strip())
    found = [
        name
        for piece in pieces
        for name in (
            [
                one
                for one in re.findall(_PATH, piece)
                if one not in ("and", "&", "+", ",", "-", "*", "•")
            ]
            if _SEVERAL.fullmatch(piece)
            else [piece]
        )
    ]
    return [one for one in found if not _GROUP.fullmatch(strip_markup(one))]


def _path_in(text: str) -> str:
    """Return a name without the link around it, the verb before it and the remark after it."""
    plain = _VERB.sub("", _LINK.sub(r"\1", strip_markup(text)), count=1)
    match = _REMARK.fullmatch(plain)
    name = match[1] if match else plain
    # A sentence about a path ends with a dot; a name seldom does.
    return name[:-1] if re.search(r"[\w)`]\.\Z", name) and len(name.split()) == 1 else name


def is_prose(text: str) -> bool:
    """Return whether a text has three words or more: a sentence instead of a path or a name."""
    return len(text.split()) > 2


_MARKED_NAME = re.compile(r"`([^`]+)`|\*\*([^*/][^*]*)\*\*(?=\s|$)")


def without_aside(text: str) -> str:
    """Return a name without the remark after it: `` `api.py` (the API) ``."""
    text = strip_markup(text)
    if match := _MARKED_NAME.match(text):
        return match[1] or match[2]
    head, aside, _ = text.partition(" (")
    return strip_markup(head) if aside and text.endswith(")") else text


def array_of(text: str) -> list[str] | None:
    """Return the texts of a JSON array; None for any other text."""
    if not text.lstrip().startswith("[") or len(text) > 20_000:
        return None
    try:
        value: object = json.loads(text)
    except (ValueError, RecursionError):
        return None
    texts = as_texts(value)
    return texts if len(texts) == len(as_array(value)) else None


def value_lines(raw: RawField) -> Sequence[ValueLine]:
    """Return the lines of a value; those of an exact one have the position of the field."""
    if raw.lines:
        return raw.lines
    return [ValueLine(text=line, place=raw.place) for line in raw.text.split("\n")]


def split_list(line: ValueLine) -> list[tuple[str, SourcePosition]]:
    """Split a line at commas and semicolons outside brackets and backticks."""
    text = line.text.strip()
    if text.startswith("[") and text.endswith("]"):
        text = text[1:-1]
    start = line.text.find(text)
    parts: list[tuple[str, SourcePosition]] = []
    depth, quoted_by, at = 0, False, 0
    for n, sign in enumerate(f"{text},"):
        if sign == "`":
            quoted_by = not quoted_by
        # Commas in globs such as {a,b}.py and in remarks separate nothing.
        depth += (sign in "{(") - (sign in "})" and depth > 0)
        if n == len(text) or (sign in ",;" and not depth and not quoted_by):
            piece = text[at:n]
            column = line.place.column + start + at + len(piece) - len(piece.lstrip())
            parts.append((piece, SourcePosition(line=line.place.line, column=column)))
            at = n + 1
    return parts


def _item(raw: RawField, text: str, place: SourcePosition) -> RawField:
    return RawField(found=raw.found, name=raw.name, place=place, text=text)


def _unreadable(raw: RawField, wanted: str) -> Finding:
    message = f"{raw.name} has an unreadable value: {quote_excerpt(raw.text)}."
    return make_finding("value-unreadable", message, raw.place, f"Write {wanted}.")


# Tables.

_CELL_END = re.compile(r"(?<!\\)\|")
_TABLE_RULE = re.compile(r"\s*\|?(?:\s*:?-+:?\s*\|)+\s*(?::?-+:?\s*)?")


def is_table_rule(line: str) -> bool:
    """Return whether a line is the rule below the head of a table."""
    return _TABLE_RULE.fullmatch(line) is not None


def table_cells(line: str) -> list[str]:
    """Return the cells of a row."""
    row = line.strip().removeprefix("|").removesuffix("|")
    return [cell.strip().replace(r"\|", "|") for cell in _CELL_END.split(row)]
