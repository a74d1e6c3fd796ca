"""Redaction: secrets in text are found and replaced by `[redacted:kind]`.

Known values are found raw, reversed and as base64, hex, URL or JSON text, also with white space, offsets or separators inside; patterns find other keys. The number of lines never changes, so line
numbers stay valid. Every step is linear in the text, because a hostile text may be written to make it slow.
"""

import base64
import json
import re
from collections.abc import Callable, Collection, Iterator
from urllib.parse import quote, quote_plus

from mimir.tools.spread_secrets import find_spread

MARK = "[redacted:"
MIN_CHARS = 4
"""Shorter known values are not searched: every text contains them."""
MAX_ROUNDS = 8
FREE_CHARS = 8
"""Shorter known values are replaced only as whole words."""

_HEADER = r"-----BEGIN (?:[A-Z0-9]{1,20} ){0,4}PRIVATE KEY(?: BLOCK)?-----"
_FOOTER = r"-----END (?:[A-Z0-9]{1,20} ){0,4}PRIVATE KEY(?: BLOCK)?-----"
_BODY = r"(?:(?!-----)[A-Za-z0-9+/=\s:,.\\-]){16,}+"
_ALONE = r"(?<![\w-])"
_KEY_NAME = r"(?:API_?KEY|SECRET|SECRET_KEY|ACCESS_KEY|PRIVATE_KEY|TOKEN|PASSWORD|PASSWD)"

_PATTERNS: tuple[tuple[str, str, str, str], ...] = (
    ("private-key", "-----begin", "", rf"{_HEADER}{_BODY}(?:{_FOOTER})?"),
    ("token", "eyj", _ALONE, r"eyJ[\w-]{8,}+\.eyJ[\w-]{8,}+\.[\w-]{8,}"),
    ("api-key", "sk-", _ALONE, r"sk-(?=[\w-]*\d|[\w-]{29})[\w-]{16,}"),
    ("token", "ghp_ gho_ ghu_ ghs_ ghr_", _ALONE, r"gh[opusr]_[A-Za-z0-9]{20,}"),
    ("token", "npm_ hf_", _ALONE, r"(?:npm|hf)_[A-Za-z0-9]{20,}"),
    ("token", "github_pat_", _ALONE, r"github_pat_\w{20,}"),
    ("token", "glpat- pypi-", _ALONE, r"(?:glpat|pypi)-[\w-]{20,}"),
    ("token", "xox", _ALONE, r"xox[abeoprs]-[A-Za-z0-9-]{10,}"),
    ("api-key", "aiza", _ALONE, r"AIza[\w-]{35}"),
    ("api-key", "akia asia", _ALONE, r"(?:AKIA|ASIA)[0-9A-Z]{16}(?!\w)"),
    ("token", "bearer", r"(?i:\bbearer[ \t]{1,8})", r"[\w.~+/-]{16,}={0,2}"),
    (
        "token",
        "basic",
        r"(?i:\bauthorization:[ \t]{0,8}basic[ \t]{1,8})",
        r"[A-Za-z0-9+/]{8,}={0,2}",
    ),
    (
        "password",
        "://",
        r"\b[A-Za-z][A-Za-z0-9+.-]{1,20}://[^\s/:@'\"]{0,100}:",
        r"[^\s/@'\"]{1,200}(?=@)",
    ),
    (
        "secret",
        "key= secret= token= password= passwd=",
        rf"(?<![\w$])(?:[A-Z0-9]{{1,20}}_){{0,6}}{_KEY_NAME}=['\"]?",
        r"[A-Za-z0-9+/=_.~!@#%^&*:-]{8,}(?=[\s'\"]|\Z)",
    ),
)
"""(kind, lower-case words of which every match contains one, kept prefix, replaced part)."""


class Redactor:
    """Replaces secrets in text; a second pass changes nothing."""

    def __init__(self, known: Collection[str] = ()) -> None:
        """Prepare for these values of keys and passwords."""
        self._known: frozenset[str] = frozenset()
        self.add(known)

    def add(self, values: Collection[str]) -> None:
        """Redact these values too from now on."""
        self._known |= frozenset(values)
        known = sorted(self._known)
        forms = {form for value in known for form in _forms(value)}
        self._forms = sorted(forms, key=lambda form: (-len(form), form))
        # Short values would be found by chance if they may be spread.
        spread = dict.fromkeys("".join(form.split()) for form in self._forms)
        self._spread = [form for form in spread if len(form) >= FREE_CHARS]
        values = dict.fromkeys(value.strip() for value in known)
        self._values = [value for value in values if len(value) >= FREE_CHARS]

    def __call__(self, text: str) -> str:
        """Return `text` without secrets."""
        return _repeat(self._redact_pass, text)

    def values(self, text: str) -> str:
        """Return `text` without the known values; an agent may have to write other keys."""
        return _repeat(self._redact_known, text)

    def _redact_known(self, text: str) -> str:
        # Marks are skipped: a known value "password" would be found in `[redacted:password]` again.
        parts = _MARKS.split(text)
        parts[::2] = map(self._replace_known, parts[::2])
        return "".join(parts)

    def _redact_pass(self, text: str) -> str:
        text = self._redact_known(text)
        lowered = text.lower()
        # Every text of every call passes here, and few contain one of these words.
        for word, kind, pattern in _WORDS:
            if word in lowered:
                text = pattern.sub(lambda m, kind=kind: m["keep"] + _mark(kind, m["secret"]), text)
        return _replace_key_tail(text)

    def _replace_known(self, text: str) -> str:
        for form in self._forms:
            if form in text:
                text = _whole_pattern(form).sub(lambda m: _mark("secret", m[0]), text)
        if not self._spread or MARK in text:
            return text
        for start, end in reversed(find_spread(text, self._values, self._spread)):
            text = text[:start] + _mark("secret", text[start:end]) + text[end:]
        return text


def _repeat(redact: Callable[[str], str], text: str) -> str:
    # Text next to a secret may match only after that secret is replaced.
    for _ in range(MAX_ROUNDS):
        before, text = text, redact(text)
        if text == before:
            break
    return text


_WORDS = tuple(
    (word, kind, re.compile(rf"(?P<keep>{keep})(?!\[redacted:)(?P<secret>{secret})", re.ASCII))
    for kind, words, keep, secret in _PATTERNS
    for word in words.split()
)


def _mark(kind: str, secret: str) -> str:
    # The line ends of the secret are kept, so that line numbers stay valid.
    return f"{MARK}{kind}]" + "\n" * secret.count("\n")


def _whole_pattern(form: str) -> re.Pattern[str]:
    word = re.escape(form)
    return re.compile(word if len(form) >= FREE_CHARS else rf"(?<!\w){word}(?!\w)")


def _forms(value: str) -> Iterator[str]:
    """Yield the encodings of a known value."""
    value = value.strip()
    if len(value) < MIN_CHARS:
        return
    data = value.encode("utf-8", "surrogatepass")
    escaped = (
        value,
        json.dumps(value)[1:-1],
        json.dumps(value, ensure_ascii=False)[1:-1],
        quote(data, safe=""),
        quote(data),
        quote_plus(data),
        "".join(f"%{b:02X}" for b in data),
    )
    for text in escaped:
        yield text
        yield re.sub(r"%[0-9A-F]{2}", lambda m: m[0].lower(), text)
    # Short values would match base64, hex and reversed text by chance.
    if len(value) >= FREE_CHARS:
        yield value[::-1]
        yield data.hex()
        yield data.hex().upper()
        for core in _base64_cores(data):
            yield core
            yield core.replace("+", "-").replace("/", "_")


def _base64_cores(data: bytes) -> Iterator[str]:
    """Yield the part of the base64 text that the bytes around the value do not change."""
    for before in range(3):  # three positions in a group of base64
        whole = base64.b64encode(b"\0" * before + data).decode()
        yield whole[(before * 8 + 5) // 6 : (before + len(data)) * 8 // 6]


_MARKS = re.compile(r"(\[redacted:[a-z-]+\])")
_KEY_END = re.compile(_FOOTER)
_KEY_LINE = re.compile(r"[A-Za-z0-9+/]{16,}={0,2}")


def _replace_key_tail(text: str) -> str:
    """Replace the lines of a private key whose first line is missing."""
    if "PRIVATE KEY" not in text:
        return text
    lines = text.split("\n")
    for at, line in enumerate(lines):
        first = at
        while first and _KEY_LINE.fullmatch(lines[first - 1].strip()) and _KEY_END.search(line):
            first -= 1
        if first < at:
            lines[first : at + 1] = [f"{MARK}private-key]"] + [""] * (at - first)
    return "\n".join(lines)
