"""Syntax of single lines: headings, labels, rules, fences and tags. Pure.

Every pattern is anchored and takes linear time. The result does not depend on other lines.
"""

import re
from dataclasses import dataclass

from mimir.planning.format import labels

MAX_LABEL = 100

Shape = tuple[str, int]
"""Form of a label: (`heading`, level), or (`bullet`, `bold` or `plain`, indent)."""

ID = r"\w(?:[\w.\-]*\w)?"
_NUMBERS = r"\d+(?:\.\d+)*[a-z]?"


@dataclass(frozen=True, slots=True)
class FenceLine:
    """A line that opens or, without an info string, closes a code fence."""

    sign: str
    length: int
    info: str
    """First word of the info string, in lower case."""


@dataclass(frozen=True, slots=True)
class TagLine:
    """A line that opens a tagged block."""

    name: str
    rest: str
    """Text after the tag on the same line."""


@dataclass(frozen=True, slots=True)
class HeadingLine:
    """An ATX heading."""

    level: int
    text: str
    """Without emphasis."""


@dataclass(frozen=True, slots=True)
class LabelLine:
    """A line that names a field: `**Label:** value` in any of its forms."""

    name: str
    value: str
    """Text after it on the same line, not stripped."""
    column: int
    """1-based, of the label."""
    value_column: int
    shape: Shape

    @property
    def found(self) -> labels.LabelMatch | None:
        """Its meaning for a task."""
        return labels.find(self.name)

    @property
    def is_task_id(self) -> bool:
        """Whether it says "Task ID" in full, not only "ID"."""
        return labels.words(self.name) in ("task id", "task identifier")


@dataclass(frozen=True, slots=True)
class TaskHeading:
    """Task that the text of a heading names."""

    id: str
    """Empty: it says "Task ID", but no id follows."""
    title: str
    strong: bool
    """False: it is a task only if fields follow."""


def indent_of(line: str) -> int:
    """Return the width of the white space before the text; a tab counts as four."""
    indent = line[: len(line) - len(line.lstrip(" \t"))]
    return len(indent) if "\t" not in indent else len(indent.expandtabs(4))


def fence_of(line: str) -> FenceLine | None:
    """Return the fence that the line opens or closes."""
    text = line.strip()
    sign = text[:1]
    if sign not in ("`", "~") or not text.startswith(sign * 3):
        return None
    rest = text.lstrip(sign)
    # Backticks after the fence are inline code on one line.
    if sign == "`" and "`" in rest:
        return None
    info = rest.split(maxsplit=1)
    return FenceLine(sign, len(text) - len(rest), info[0].casefold() if info else "")


_TAG = re.compile(r"<((?:prompt|text|reasoning)(?:-\d{1,6})?)>", re.IGNORECASE)


def tag_of(line: str) -> TagLine | None:
    """Return the tag that the line opens: alone on its line, or a `<prompt>` after a label."""
    match = _TAG.search(line)
    if match is None:
        return None
    name, before, rest = match[1].casefold(), line[: match.start()], line[match.end() :]
    is_prompt = name.startswith("prompt")
    # `<text>` in the middle of a sentence is prose about the tag.
    if rest.strip() and not is_prompt:
        return None
    if before.strip():
        label = label_of(line) if is_prompt else None
        if label is None or not label.value.lstrip().startswith("<"):
            return None
    return TagLine(name, rest)


# Models write `###Task 1` too; `#include` and `#1` are text.
_HEADING = re.compile(r" {0,3}(#{1,6})(?:[ \t]+(.*)|(?<=##)((?!#).*))?$")
_CLOSING_HASHES = re.compile(r"(^|[ \t])#+[ \t]*$")


def heading_of(line: str) -> HeadingLine | None:
    """Return the heading that the line is."""
    # A cheap test first: nearly all lines of a large plan fail here.
    if "#" not in line[:4]:
        return None
    match = _HEADING.match(line)
    if match is None:
        return None
    return HeadingLine(len(match[1]), clean(_CLOSING_HASHES.sub("", match[2] or match[3] or "")))


def clean(text: str) -> str:
    """Return a heading's text without emphasis and without signs before its first word."""
    bare = text.replace("**", "").strip(" \t*_`")
    return re.sub(r"^[^\w<(\[`]+", "", bare).strip()


def is_rule(line: str) -> bool:
    """Return whether the line is a thematic break."""
    text = line.replace(" ", "").strip()
    return len(text) >= 3 and text[0] in "-*_" and text == text[0] * len(text)


_MARKER = re.compile(r"([ \t]*)([-*+•][ \t]+|\d{1,3}[.)][ \t]+)?(?:\[[ xX]?\][ \t]+)?")
_SIGNS = re.compile(r"[^\w\s*_`<>#\[\](){}|\"'+-]{1,8}[ \t]+")
"""Emoji and similar signs before a label."""
_COLONS = (":", "：")


def label_of(line: str) -> LabelLine | None:
    """Return the emphasised label at the start of the line or of its bullet.

    With a colon the name may be unknown; without one it must be known, and alone or before a dash.
    """
    marker = _MARKER.match(line)
    start = marker.end() if marker else 0
    signs = _SIGNS.match(line, start)
    start = signs.end() if signs else start
    sign = line[start : start + 1]
    if sign not in ("*", "_"):
        return None
    # Four signs are looked at: more than three are no emphasis.
    run = len(line[start : start + 4]) - len(line[start : start + 4].lstrip(sign))
    closing = line.find(sign * run, start + run, start + run + MAX_LABEL)
    if run > 3 or closing < 0:
        return None
    name, end = line[start + run : closing].strip(), closing + run
    split = _split_label(name, line, end, start + run)
    if split is None:
        return None
    kind = "bullet" if marker and marker[2] else "bold"
    return LabelLine(
        split[0],
        line[split[1] :] if split[2] < 0 else line[split[1] : split[2]],
        start + 1,
        split[1] + 1,
        (kind, indent_of(line)),
    )


def _split_label(name: str, line: str, end: int, inside: int) -> tuple[str, int, int] | None:
    """Return the label's name, and the start and end of its value (-1: end of the line)."""
    after = line[end:]
    # **Label:** value
    if name.endswith(_COLONS):
        return (name[:-1].strip(), end, -1) if len(name) > 1 else None
    gap = len(after) - len(after.lstrip())
    # **Label**: value
    if after[gap : gap + 1] in _COLONS:
        return name, end + gap + 1, -1
    # Without a colon, bold text is a label only if it is a known one: **Files** - api.py
    known = labels.find(name) is not None
    if known and (not after.strip() or after[gap : gap + 2] in ("- ", "– ", "— ")):
        return name, end + gap + 1 if after.strip() else len(line), -1
    # The value within the emphasis: **Task ID: task-1.1**
    head, colon, _ = name.partition(":")
    if colon and not after.strip() and labels.find(head) is not None:
        return head, line.index(":", inside) + 1, inside + len(line[inside:end].rstrip("*_"))
    return None


_PLAIN = re.compile(
    r"([ \t]*)((?:[-*+•][ \t]+|\d{1,3}[.)][ \t]+)?)([A-Za-z][A-Za-z \-/]{1,40}):(?:[ \t]|$)"
)


def plain_label_of(line: str) -> LabelLine | None:
    """Return the known label without emphasis at the start of the line: `Task ID: task-1.1`."""
    match = _PLAIN.match(line)
    # Plain text before a colon is mostly prose, so that an unknown name is no label.
    if match is None or labels.find(match[3]) is None:
        return None
    end = match.end(3) + 1
    return LabelLine(match[3], line[end:], match.start(3) + 1, end + 1, ("plain", indent_of(line)))


def heading_label(heading: HeadingLine) -> LabelLine | None:
    """Return the label that a heading is: `#### Dependencies`, `#### Files: limiter.py`."""
    text, shape = heading.text, ("heading", heading.level)
    name, colon, value = text.partition(":")
    column = heading.level + 2
    if labels.find(text.rstrip(":：")) is not None:
        return LabelLine(text.rstrip(":："), "", column, column, shape)
    if colon and labels.find(name) is not None:
        return LabelLine(name, value, column, column + len(name) + 1, shape)
    return None


_LEAD = r"[\[(]?(?:\d+[.)]\s+)?(?:(?:phase|step|stage)\s+\d+\s*[:.–—-]+\s*)?"
_TASK_ID = re.compile(rf"{_LEAD}task\s+id\b\s*(?:[:#=–—-]+\s*(.*)|(`?\S*\d.*))$", re.IGNORECASE)
_TASK_TOKEN = re.compile(rf"{_LEAD}(task[-_]{ID})(.*)$", re.IGNORECASE)
_TASK_NUMBER = re.compile(rf"{_LEAD}task\s*#?\s*({_NUMBERS})(?![\w])(.*)$", re.IGNORECASE)
_RANGE = re.compile(r"\s*[-–—]\s*\d|\.\d|-\w")
_AFTER_ID = re.compile(r"\s*(?:$|[:–—()\[\]|]|-\s)")


def _title(rest: str) -> str:
    """Return the text after an id and its separator."""
    return rest.lstrip(" \t:.)]|-–—").rstrip(" \t:")


def task_head(text: str) -> TaskHeading | None:
    """Return the task that a heading's text may name; None if it names none."""
    if "task" in text[:40].casefold():
        explicit = _TASK_ID.match(text)
        if explicit:
            return _explicit_head(explicit[1] or explicit[2] or "")
        token = _TASK_TOKEN.match(text)
        if token and (token[1][5].isdigit() or _AFTER_ID.match(token[2])):
            return TaskHeading(_lower_task(token[1]), _title(token[2]), True)
        number = _TASK_NUMBER.match(text)
        # "Tasks 1-3" and "Task 1.x" describe several tasks and begin none.
        if number and not _RANGE.match(number[2]):
            return TaskHeading(f"task-{number[1]}", _title(number[2]), True)
    return _weak_head(text)


def _explicit_head(rest: str) -> TaskHeading | None:
    if not rest.strip():
        return None
    match = re.match(rf"`?({ID})`?(.*)$", rest)
    if match and _AFTER_ID.match(match[2]):
        return TaskHeading(_lower_task(match[1]), _title(match[2]), True)
    # "Task ID: Task 1.1" repeats the word.
    again = task_head(rest) if rest[:4].casefold() == "task" else None
    return again if again and again.strong else TaskHeading("", rest.strip(), True)


_WEAK_NUMBER = re.compile(r"(\d+(?:\.\d+)+)[.:)]?\s+(.+)$")
_WEAK_SLUG = re.compile(
    rf"(task[:\s]+)?`?([a-z0-9]{ID[2:]})`?\s*(?:$|[:–—]\s*(.*)$|-\s+(.*)$)", re.IGNORECASE
)
_LAST_ID = re.compile(r"(.*\S)\s*[(\[]`?((?:task[-_\s])\d(?:[\w.\-]*\w)?)`?[)\]]$", re.IGNORECASE)


def _weak_head(text: str) -> TaskHeading | None:
    last = _LAST_ID.match(text) if text.endswith((")", "]")) else None
    if last:
        return TaskHeading(_lower_task(last[2].replace(" ", "-")), last[1], False)
    number = _WEAK_NUMBER.match(text)
    if number:
        return TaskHeading(f"task-{number[1]}", number[2].strip(), False)
    slug = _WEAK_SLUG.match(text)
    # A capitalised word is an ordinary heading; ids without "task" are in lower case.
    if slug and (slug[1] or slug[2] == slug[2].casefold()):
        return TaskHeading(slug[2], (slug[3] or slug[4] or "").strip(), False)
    return None


def _lower_task(id: str) -> str:
    """Return an id with "task" in lower case; headings capitalise it."""
    return f"task{id[4:]}" if re.match(r"Task[-_]\d", id) else id


_ONLY_BOLD = re.compile(r"\*\*([^*]+(?:\*[^*]+)*)\*\*\s*[:：]?\s*(?:\([^()]*\))?$")


def pseudo_heading(line: str) -> HeadingLine | None:
    """Return a line of bold text, also in a list item, as a heading below all levels."""
    if "**" not in line or len(line) > 300:
        return None
    marker = _MARKER.match(line)
    match = _ONLY_BOLD.match(line.rstrip(), marker.end() if marker else 0)
    return HeadingLine(7, clean(match[1].rstrip(":："))) if match else None


def is_task_start(line: str) -> bool:
    """Return whether a task begins: the line is a heading "Task 1.1" or a label "Task ID"."""
    if "task" not in line[:200].casefold():
        return False
    heading = heading_of(line)
    if heading is not None:
        head = task_head(heading.text)
        return head is not None and head.strong
    label = label_of(line) or plain_label_of(line)
    return label is not None and label.is_task_id
