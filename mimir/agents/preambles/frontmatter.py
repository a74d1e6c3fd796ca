"""Strict front matter of a preamble file: `key: value` lines between lines of `---`.

Less than YAML on purpose: a value is the rest of its line, or a JSON string. Users edit these files, so every error names the line.
"""

import difflib
import json
from collections.abc import Collection, Mapping

from mimir.errors import Location, PlanError

_EDGE = "---"


def split_frontmatter(text: str, file: str) -> tuple[Mapping[str, str], str]:
    """Return the front matter and the text after it; raise `PlanError` if malformed."""
    lines = text.removeprefix("\ufeff").splitlines(keepends=True)  # editors may write a BOM
    if not lines or lines[0].strip() != _EDGE:
        return {}, text
    values: dict[str, str] = {}
    for number, line in enumerate(lines[1:], start=2):
        if line.strip() == _EDGE:
            return values, "".join(lines[number:]).strip("\r\n")
        if not line.strip():
            continue
        key, colon, value = line.partition(":")
        key = key.strip().lower()
        if not colon or not key:
            raise _error(f"{line.strip()[:80]!r} is not `key: value`", file, number)
        if key in values:
            raise _error(f"{key!r} is there twice", file, number)
        values[key] = _parse_value(value.strip(), file, number)
    raise _error("the front matter between the lines of `---` does not end", file, 1)


def join_frontmatter(values: Mapping[str, str], body: str) -> str:
    """Return the text of a file with front matter; `split_frontmatter` reads it back."""
    head = "".join(f"{key}: {_format_value(value)}\n" for key, value in values.items())
    return f"{_EDGE}\n{head}{_EDGE}\n{body}\n"


def require_keys(values: Mapping[str, str], keys: Collection[str], file: str) -> None:
    """Raise `PlanError` unless the front matter holds exactly these keys."""
    for key in values:
        if key not in keys:
            near = difflib.get_close_matches(key, keys, n=1)
            hint = f"; did you mean {near[0]!r}?" if near else ""
            raise _error(f"{key!r} is not a key of this front matter{hint}", file, 1)
    for key in keys:
        if key not in values:
            raise _error(f"the key {key!r} is missing", file, 1)


def _parse_value(text: str, file: str, number: int) -> str:
    if not text.startswith('"'):
        return text
    try:
        value: object = json.loads(text)
    except ValueError:
        raise _error(f"{text[:80]} is not a quoted text", file, number) from None
    return str(value)


def _format_value(value: str) -> str:
    # JSON escapes characters that would end the line for some readers, such as NEL or a line separator.
    plain = value.isprintable() and value == value.strip() and not value.startswith('"')
    return value if plain else json.dumps(value)


def _error(problem: str, file: str, line: int) -> PlanError:
    return PlanError(
        f"{file} cannot be read: {problem}.",
        at=Location(file=file, line=line),
        code="front-matter",
        next_step=f"Correct {file}, or delete it: it is then generated again or the shipped one is used.",
    )
