"""Known values that white space, offsets or a dump of bytes spread over a text.

`fold`, `od`, `hexdump`, `xxd`, `nl` and lists of numbers are read back; whole lines are reported. Every step is linear in the text.
"""

import re
from bisect import bisect_right
from collections.abc import Callable, Collection, Iterable, Iterator, Sequence

_OFFSET = re.compile(r"^[ \t]*[0-9A-Fa-f]{1,16}[:|)]?[ \t]+", re.MULTILINE)
_LONG_OFFSET = re.compile(r"[ \t]*[0-9A-Fa-f]{6,16}(:?)(?:[ \t]+|$)")
_COLUMN = re.compile(r"[ \t][|>].*$")
_SEPARATORS = re.compile(r"[\s,;:_\-\[\](){}]+")
_TOKEN = r"(?:(?:0[xX]|\\x)?(?:[0-9A-Fa-f]{2}){1,8}|[0-9]{1,3}|\S|\\.)"
_GAP = r"[ \t,;:_\-\])}]"
# Other lines are no lines of a dump, so they need not be read.
_CANDIDATE = re.compile(
    rf"^[ \t\[({{]*(?:[0-9A-Fa-f]{{6,16}}:?[ \t]+)?{_TOKEN}(?:{_GAP}+(?:{_TOKEN}(?:{_GAP}|$)|$)|$).*$",
    re.MULTILINE,
)
_PREFIX = re.compile(r"\b0[xX]|\\x")
_ESCAPES = {"\\0": 0, "\\a": 7, "\\b": 8, "\\t": 9, "\\n": 10, "\\v": 11, "\\f": 12, "\\r": 13}

Span = tuple[int, int]
"""Start and end in the text."""


def find_spread(text: str, values: Collection[str], forms: Collection[str]) -> list[Span]:
    """Return the parts of a text that hold one of `forms` with white space or offsets inside.

    Dumps of `values` are found as whole lines.
    """
    found: list[Span] = []
    for keep in (None, _OFFSET):
        found += _find_without_space(text, forms, keep)
    if values and _CANDIDATE.search(text):
        found += _find_dumps(text, [value.encode("utf-8", "surrogatepass") for value in values])
    return _join(found)


def _find_without_space(
    text: str, forms: Collection[str], offset: re.Pattern[str] | None
) -> Iterator[Span]:
    joined = "".join((offset.sub("", text) if offset else text).split())
    # Few texts hold one of them, and only these need the places.
    if found := [form for form in forms if form in joined]:
        place = _find_places(text, offset)
        for form in found:
            start = joined.find(form)
            while start >= 0:
                yield place(start), place(start + len(form) - 1) + 1
                start = joined.find(form, start + len(form))


def _find_places(text: str, offset: re.Pattern[str] | None) -> Callable[[int], int]:
    """Return the place in the text of a position in the text without offsets and spaces."""
    skipped = {one.start(): one.end() for one in offset.finditer(text)} if offset else {}
    starts: list[int] = []
    places: list[int] = []
    length = at = 0
    for line in text.splitlines(keepends=True):
        for word in re.compile(r"\S+").finditer(text, skipped.get(at, at), at + len(line)):
            starts.append(length)
            places.append(word.start())
            length += len(word[0])
        at += len(line)

    def place(position: int) -> int:
        piece = bisect_right(starts, position) - 1
        return places[piece] + position - starts[piece]

    return place


def _find_dumps(text: str, values: Sequence[bytes]) -> Iterator[Span]:
    lines = [one.span() for one in _CANDIDATE.finditer(text)]
    for tokens in _read_tokens(text, lines):
        for read in (_hex, _words, _octal, _decimal, _characters):
            ends: list[int] = []
            whole = bytearray()
            before = 0
            for (start, end), line in zip(lines, tokens, strict=True):
                # Other lines end a dump: bytes that no value holds keep both sides apart.
                whole += b"\0\0" if start > before else b""
                try:
                    whole += read(line)
                except ValueError:
                    whole += b"\0\0"
                ends.append(len(whole))
                before = end + 1
            for value in values:
                at = whole.find(value)
                while at >= 0:
                    first, last = bisect_right(ends, at), bisect_right(ends, at + len(value) - 1)
                    yield lines[first][0], lines[last][1]
                    at = whole.find(value, at + len(value))


def _read_tokens(text: str, lines: Sequence[Span]) -> Iterator[list[Sequence[str]]]:
    bare = [_tokens(text[start:end], has_offset=False) for start, end in lines]
    yield bare
    without = [_tokens(text[start:end], has_offset=True) for start, end in lines]
    if without != bare:
        yield without


def _tokens(line: str, *, has_offset: bool) -> Sequence[str]:
    body = line
    if has_offset:
        offset = _LONG_OFFSET.match(line)
        body = line[offset.end() :] if offset else line
        # `xxd` separates the column of characters by two blanks.
        if offset and offset[1]:
            body = body.partition("  ")[0]
    return [token for token in _SEPARATORS.split(_COLUMN.sub("", body)) if token]


def _hex(tokens: Sequence[str]) -> bytes:
    return bytes.fromhex(_PREFIX.sub("", " ".join(tokens)))


def _words(tokens: Sequence[str]) -> bytes:
    return b"".join(bytes.fromhex(token)[::-1] for token in tokens)


def _octal(tokens: Sequence[str]) -> bytes:
    return bytes(int(token, 8) for token in tokens)


def _decimal(tokens: Sequence[str]) -> bytes:
    return bytes(map(int, tokens))


def _characters(tokens: Sequence[str]) -> bytes:
    found = bytearray()
    for token in tokens:
        if token in _ESCAPES:
            found.append(_ESCAPES[token])
        elif len(token) == 1:
            found += token.encode("utf-8", "surrogatepass")
        else:
            found.append(int(token, 8))
    return bytes(found)


def _join(spans: Iterable[Span]) -> list[Span]:
    joined: list[Span] = []
    for start, end in sorted(spans):
        if joined and start <= joined[-1][1]:
            joined[-1] = (joined[-1][0], max(end, joined[-1][1]))
        else:
            joined.append((start, end))
    return joined
