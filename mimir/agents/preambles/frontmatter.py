"""The head of a preamble file: `key: value` lines between two lines of `---`, read strictly. Pure.

Less than YAML on purpose: a value is the rest of its line, or a JSON string. People edit these files, so every refusal names the line.
"""

import difflib
import json
from collections.abc import Collection, Mapping

from mimir.errors import Location, PlanError

_EDGE = "---"


def split_frontmatter(text: str, file: str) -> tuple[Mapping[str, str], str]:
    """Return the values of a file's head and the text after it; a file without a head has no values.

    Raises:
        PlanError: The head does not end, or a line in it is no `key: value`, or a key stands twice.
    """
    lines = text.removeprefix("\ufeff").splitlines(keepends=True)
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
            raise _error(f"{line.strip()[:80]!r} is no `key: value`", file, number)
        if key in values:
            raise _error(f"{key!r} stands there twice", file, number)
        values[key] = _value(value.strip(), file, number)
    raise _error("the head between the lines of `---` does not end", file, 1)


def join_frontmatter(values: Mapping[str, str], body: str) -> str:
    """Write a file with its head; what `split_frontmatter` reads is what was written."""
    head = "".join(f"{key}: {_written(value)}\n" for key, value in values.items())
    return f"{_EDGE}\n{head}{_EDGE}\n{body}\n"


def require(values: Mapping[str, str], keys: Collection[str], file: str) -> None:
    """Refuse a head that lacks one of `keys` or holds another.

    Raises:
        PlanError: It does.
    """
    for key in values:
        if key not in keys:
            near = difflib.get_close_matches(key, keys, n=1)
            hint = f"; did you mean {near[0]!r}?" if near else ""
            raise _error(f"{key!r} is no key of this head{hint}", file, 1)
    for key in keys:
        if key not in values:
            raise _error(f"the key {key!r} is missing", file, 1)


def _value(text: str, file: str, number: int) -> str:
    if not text.startswith('"'):
        return text
    try:
        value: object = json.loads(text)
    except ValueError:
        raise _error(f"{text[:80]} is no quoted text", file, number) from None
    return str(value)


def _written(value: str) -> str:
    # A NEL or a line separator would end the line for a reader that splits on them: JSON escapes keep it whole.
    plain = value.isprintable() and value == value.strip() and not value.startswith('"')
    return value if plain else json.dumps(value)


def _error(what: str, file: str, line: int) -> PlanError:
    return PlanError(
        f"{file} cannot be read: {what}.",
        at=Location(file=file, line=line),
        code="front-matter",
        next_step=f"Correct {file}, or delete it: it is then made anew or the shipped one is used.",
    )
