"""Front matter of agent files: keys with their positions, and the prompt. Pure.

The reader of `domain.located_tree` builds no objects and refuses aliases, anchors, tags and repeated keys.
"""

import itertools
import json
import re
from collections.abc import Callable, Iterator

from mimir.domain.finding import Finding, SourcePosition
from mimir.domain.located_tree import (
    DuplicateKeyError,
    LocatedValue,
    LocatedValueError,
    parse_yaml,
)
from mimir.domain.value_class import value_class
from mimir.registry.findings import make_agent_finding

MAX_CHARACTERS = 64 * 1024
MAX_KEYS = 200
RULE = "---"
_COLON_KEYS = ("description", "argument-hint", "name")
# Anchors, aliases and tags stay refused, and so is every other fault of `tools`.
_TEXT = re.compile(
    rf"({'|'.join(_COLON_KEYS)}):[ \t]+((?:[^\s#&*!]|\*[* ]).*)|(tools):[ \t]+(\*)[ \t]*"
)
_FENCE = re.compile(r"`{3,}\w*")
_LONG_RULE = re.compile(r"-{4,}\s*")


@value_class
class FrontMatter:
    """The parts of one file."""

    values: LocatedValue | None
    """A map. None: there is none, or it is unreadable; `findings` names the fault."""
    body: str
    findings: tuple[Finding, ...] = ()

    @property
    def is_unreadable(self) -> bool:
        """Whether there is front matter that cannot be read."""
        return any(one.severity == "error" for one in self.findings)


def split_front_matter(text: str, is_key: Callable[[str], bool]) -> FrontMatter:
    """Return front matter and body of a text with line feeds.

    Args:
        text: Of the file.
        is_key: Whether a word is nearly a key of an agent file, which ends an unquoted description.
    """
    lines = text.split("\n")
    fenced = [n for n, line in enumerate(lines) if _FENCE.fullmatch(line.strip())]
    start = next((n for n, line in enumerate(lines) if line.strip() and n not in fenced[:1]), 0)
    if not _is_rule(lines[start]):
        return FrontMatter(values=None, body=text)
    if fenced and fenced[0] < start and not any(line.strip() for line in lines[fenced[-1] + 1 :]):
        lines = lines[: fenced[-1]]
    ends = [n for n, line in enumerate(lines) if n > start and _is_rule(line)]
    # A longer rule ends it only if no exact one does: a text of YAML may have one.
    end = next((n for n in ends if lines[n].rstrip() == RULE), ends[0] if ends else None)
    if end is None:
        finding = make_agent_finding(
            "front-matter-unclosed",
            f"The front matter has no closing {RULE!r}.",
            suggestion=f"Add a line {RULE!r} after the last key.",
        )
        return FrontMatter(values=None, body="", findings=(finding,))
    keys = "\n".join(lines[start + 1 : end])
    values, findings = parse_keys(keys, is_key, first_line=start + 2)
    body = "\n".join(lines[end + 1 :])
    return FrontMatter(values=values, body=body, findings=findings)


def _is_rule(line: str) -> bool:
    return line.rstrip() == RULE or _LONG_RULE.fullmatch(line) is not None


def parse_keys(
    text: str, is_key: Callable[[str], bool], first_line: int = 1
) -> tuple[LocatedValue | None, tuple[Finding, ...]]:
    """Return the map of a YAML text, and the findings; None: it is unreadable."""
    if len(text) > MAX_CHARACTERS:
        message = f"The keys have {len(text):,} characters; at most {MAX_CHARACTERS:,} are read."
        return None, (
            make_agent_finding(
                "front-matter-yaml", message, SourcePosition(line=first_line), "Shorten them."
            ),
        )
    if not re.search(r"^[ \t]*[^\s#]", text, re.MULTILINE):
        return LocatedValue("map", SourcePosition(line=first_line)), ()
    values, findings = _parse_map(text, is_key, first_line)
    # Each unknown key is compared with all known ones.
    if values is None or len(values.keys) <= MAX_KEYS:
        return values, findings
    message = f"There are {len(values.keys):,} keys; at most {MAX_KEYS} are read."
    at = [*values.key_places.values()][MAX_KEYS]
    return None, (make_agent_finding("front-matter-yaml", message, at, "Remove some."),)


def _parse_map(
    text: str, is_key: Callable[[str], bool], first_line: int
) -> tuple[LocatedValue | None, tuple[Finding, ...]]:
    try:
        return _require_map(parse_yaml(text, first_line)), ()
    except DuplicateKeyError as error:
        hint = "Keep one of them."
        return None, (make_agent_finding("duplicate-key", str(error), error.place, hint),)
    except LocatedValueError as error:
        return _repair_colons(text, is_key, first_line, error)


def _require_map(tree: LocatedValue) -> LocatedValue:
    if tree.kind != "map":
        raise LocatedValueError("The front matter is not a map of keys to values.", tree.place)
    return tree


def _repair_colons(
    text: str, is_key: Callable[[str], bool], first_line: int, error: LocatedValueError
) -> tuple[LocatedValue | None, tuple[Finding, ...]]:
    """Return the map with texts quoted that hold `: `, as many public agent files have it."""
    lines = text.split("\n")
    for repaired in (dict(_quoted_lines(lines)), dict(_quoted_description(lines, is_key))):
        if not repaired:
            continue
        try:
            quoted = [repaired.get(number, line) for number, line in enumerate(lines)]
            tree = _require_map(parse_yaml("\n".join(quoted), first_line))
        except LocatedValueError as second:
            # The lines of a description may look like one key twice.
            error = second if isinstance(second, DuplicateKeyError) else error
            continue
        return tree, tuple(
            make_agent_finding(
                "front-matter-colon",
                f"The value of {lines[number].partition(':')[0]!r} is not valid YAML, in which ': ' and some characters are reserved; its text is used as written.",
                SourcePosition(line=first_line + number),
                "Put the value in quotes.",
            )
            for number, line in repaired.items()
            if line
        )
    if isinstance(error, DuplicateKeyError):
        hint = "Keep one of them."
        return None, (make_agent_finding("duplicate-key", str(error), error.place, hint),)
    hint = "Put the value in quotes, or write it as YAML."
    return None, (make_agent_finding("front-matter-yaml", str(error), error.place, hint),)


def _quoted_description(
    lines: list[str], is_key: Callable[[str], bool]
) -> Iterator[tuple[int, str]]:
    """Yield the lines of a broken description up to the next key, quoted in its first line."""
    start = next((n for n, line in enumerate(lines) if line.startswith("description:")), None)
    match = None if start is None else _TEXT.fullmatch(lines[start])
    if start is None or match is None:
        return
    words = [match[2]]
    for line in lines[start + 1 :]:
        key, colon, _ = line.strip().partition(":")
        if colon and is_key(key):
            # A key within the description may be one of permissions: the fault stays.
            if line[:1].isspace():
                return
            break
        words.append(line.strip())
    # If the fault is behind its own indented lines, nothing is swallowed.
    own = itertools.takewhile(
        lambda line: not line.strip() or line[:1].isspace(), lines[start + 1 :]
    )
    if not _is_broken("\n".join([lines[start], *own])):
        return
    value = _quote("\n".join(words))
    yield start, f"description: {value}"
    yield from ((start + number, "") for number in range(1, len(words)))


def _quoted_lines(lines: list[str]) -> Iterator[tuple[int, str]]:
    for number, line in enumerate(lines):
        match = _TEXT.fullmatch(line)
        if match and _is_broken(line):
            yield number, f"{match[1] or match[3]}: {_quote(match[2] or match[4])}"


def _is_broken(text: str) -> bool:
    """Return whether YAML refuses a key with its value, although nothing else is near."""
    try:
        parse_yaml(text)
    except LocatedValueError:
        return True
    return False


def _quote(value: str) -> str:
    """Return a text as a value of YAML, without the quotes around it that failed."""
    value = value.strip()
    if len(value) > 1 and value[0] == value[-1] and value[0] in "\"'":
        value = value[1:-1]
    return json.dumps(value, ensure_ascii=False)
