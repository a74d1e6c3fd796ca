"""Mask of strings and comments, and matching brackets, in six languages. Pure.

The languages are JavaScript, TypeScript, Go, Rust, Java and C, with C++.

The lexer is linear and bounded. It does not parse: a text whose brackets do not match has no mask, and its file changes as a whole.
"""

import re
from typing import Literal

from mimir.domain.value_class import value_class
from mimir.qc.mutations.mutation import Edit, Place, other_literal

Language = Literal["javascript", "go", "rust", "java", "c"]

_LONGEST = 1_000_000
_OPENING = {"(": ")", "[": "]", "{": "}"}
_CLOSING = frozenset(_OPENING.values())
_QUOTES = {"javascript": "'\"`", "go": "\"'`", "rust": '"', "java": "\"'", "c": "\"'"}
_RAW_RUST = re.compile(r'(?<![\w])b?r(#*)"')
_CHAR_RUST = re.compile(r"b?'(?:\\(?:u\{[0-9a-fA-F_]+\}|x[0-9a-fA-F]{2}|.)|[^\\'\n])'")
_RAW_C = re.compile(r'"([^()\\\s]{0,16})\(')
_DIRECTIVE = re.compile(r"(?m)^[ \t]*#(?:[^\\\n]|\\(?:.|\n))*")
"""Line of the preprocessor: its brackets belong to no statement."""
_BEFORE_REGEX = re.compile(
    r"(?:^|[(,=:\[!&|?{};+\-*%<>~^]|\b(?:return|typeof|case|in|of|do|else))\s*$"
)
_REGEX = re.compile(r"/(?![/*])(?:\\.|\[(?:\\.|[^\]\\\n])*\]|[^/\\\n\[])+/[a-z]*")


@value_class
class MaskedCode:
    """A text, and the same text with blanks for comments and the insides of strings."""

    language: Language
    text: str
    mask: str
    pairs: dict[int, int]
    """Place of each opening bracket → place of its closing one."""

    def read(self, place: Place) -> str:
        """Return the text at a place."""
        return self.text[slice(*place)]

    def change_literal(self, place: Place) -> Edit | None:
        """Return the edit that makes a literal another one; None: the place holds none."""
        is_character = self.language != "javascript"
        mask = self.mask[slice(*place)]
        other = other_literal(self.read(place), mask, has_characters=is_character)
        return Edit(place, other) if other else None

    def open_braces(self, start: int, end: int) -> list[int]:
        """Return the places of the braces after `start` that are open at `end`."""
        pairs = self.pairs.items()
        return [at for at, close in pairs if start <= at < end <= close and self.mask[at] == "{"]


def mask_code(text: str, language: Language) -> MaskedCode | None:
    """Return a text with its mask; None: brackets do not match, or it is too long."""
    if len(text) > _LONGEST:
        return None
    mask = _Lexer(text, language).mask()
    if language == "c":
        mask = _DIRECTIVE.sub(lambda found: _blank(found[0]), mask)
    pairs, open_brackets = dict[int, int](), list[int]()
    for found in re.finditer(r"[()\[\]{}]", mask):
        at, char = found.start(), found[0]
        if char not in _CLOSING:
            open_brackets.append(at)
            continue
        if not open_brackets or _OPENING[mask[open_brackets[-1]]] != char:
            return None
        pairs[open_brackets.pop()] = at
    return (
        None if open_brackets else MaskedCode(language=language, text=text, mask=mask, pairs=pairs)
    )


def list_arguments(code: MaskedCode, start: int) -> list[Place]:
    """Return the places of the arguments of a call whose parenthesis is at `start`."""
    end, found = code.pairs[start], list[Place]()
    at = begin = start + 1
    while at < end:
        if code.mask[at] in "([{":
            at = code.pairs[at]
        elif code.mask[at] == ",":
            found.append((begin, at))
            begin = at + 1
        at += 1
    found.append((begin, end))
    return [(b + len(t) - len(t.lstrip()), b + len(t.rstrip())) for b, e in found if (t := code.text[b:e]).strip()]  # fmt: skip


class _Lexer:
    """One pass over a text."""

    def __init__(self, text: str, language: Language) -> None:
        self._text = text
        self._language = language
        self._parts: list[str] = []
        self._at = 0
        """Everything before it is masked."""

    def mask(self) -> str:
        """Return the masked text."""
        start = re.compile(r"//|/\*|/|[\"'`]|\bb?r#*\"" if self._language != "go" else r"//|/\*|[\"'`]")  # fmt: skip
        while found := start.search(self._text, self._at):
            begin = found.start()
            self._keep(begin)
            end, is_string = self._token(begin, found[0])
            if is_string and end - begin > 1:
                self._parts.append(self._text[begin] + _blank(self._text[begin + 1 : end - 1]))
                self._parts.append(self._text[end - 1])
            elif is_string:
                self._parts.append(" ")
            else:
                self._parts.append(_blank(self._text[begin:end]))
            self._at = end
        self._keep(len(self._text))
        return "".join(self._parts)

    def _keep(self, end: int) -> None:
        self._parts.append(self._text[self._at : end])
        self._at = end

    def _token(self, at: int, token: str) -> tuple[int, bool]:
        """Return the end of what starts here, and whether it is a string."""
        text = self._text
        if token == "//":
            end = text.find("\n", at)
            return (len(text) if end < 0 else end), False
        if token == "/*":
            end = text.find("*/", at + 2)
            return (len(text) if end < 0 else end + 2), False
        if token == "/":
            return self._slash(at), False
        if self._language == "rust" and (special := self._rust(at)):
            return special, True
        if self._language == "c" and (special := self._c(at, token)):
            return special, True
        if token not in _QUOTES[self._language]:
            return at + 1, False
        if token == "`":
            return self._template(at), True
        if self._language == "java" and text.startswith('"""', at):
            end = text.find('"""', at + 3)
            return (len(text) if end < 0 else end + 3), True
        return self._quoted(at, token), True

    def _slash(self, at: int) -> int:
        """Return the end of a regular expression; one character: it is a division."""
        if self._language == "javascript":
            before = "".join(self._parts[-3:])[-80:]
            if _BEFORE_REGEX.search(before) and (found := _REGEX.match(self._text, at)):
                return found.end()
        return at + 1

    def _rust(self, at: int) -> int:
        """Return the end of a raw string or a character; 0: it is neither."""
        if raw := _RAW_RUST.match(self._text, at):
            end = self._text.find(f'"{raw[1]}', raw.end())
            return len(self._text) if end < 0 else end + 1 + len(raw[1])
        if char := _CHAR_RUST.match(self._text, at):
            return char.end()
        # A lifetime: `'a`.
        return 0

    def _c(self, at: int, token: str) -> int:
        """Return the end of a raw string, or of the separator in a number; 0: it is neither."""
        before = self._text[max(at - 1, 0) : at]
        if before == "R" and (raw := _RAW_C.match(self._text, at)):
            end = self._text.find(f'){raw[1]}"', raw.end())
            return len(self._text) if end < 0 else end + 2 + len(raw[1])
        is_separator = token == "'" and before.isalnum() and before not in "uUL"
        return at + 1 if is_separator else 0

    def _quoted(self, at: int, quote: str) -> int:
        end = re.compile(rf"(?:\\.|[^\\{quote}])*{quote}", re.DOTALL).match(self._text, at + 1)
        return end.end() if end else len(self._text)

    def _template(self, at: int) -> int:
        """Return the end of a back-quoted text; one of JavaScript may hold others."""
        if self._language == "go":
            end = self._text.find("`", at + 1)
            return len(self._text) if end < 0 else end + 1
        depths: list[int] = []
        at += 1
        while at < len(self._text):
            char = self._text[at]
            if char == "\\":
                at += 1
            elif char == "`" and not depths:
                return at + 1
            elif self._text.startswith("${", at):
                depths.append(at)
                at += 1
            elif char == "}" and depths:
                depths.pop()
            elif char == "`":
                at = self._template(at) - 1
            elif char in "'\"" and depths:
                at = self._quoted(at, char) - 1
            at += 1
        return at


def _blank(text: str) -> str:
    """Return blanks for a text, with its line ends."""
    return re.sub(r"[^\n]", " ", text)
