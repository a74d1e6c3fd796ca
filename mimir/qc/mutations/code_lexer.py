"""Mask of strings and comments, and matching brackets, in six languages. Pure.

The languages are JavaScript, TypeScript, Go, Rust, Java and C, with C++.

The lexer is linear and bounded. It does not parse: a text whose brackets do not match has no mask, and its file changes as a whole.
"""

import re
from collections.abc import Mapping
from typing import Literal

from mimir.domain.value_class import value_class
from mimir.qc.mutations.mutation import Edit, Place, other_literal

Language = Literal["javascript", "go", "rust", "java", "c"]

_LONGEST = 1_000_000
_OPENING = {"(": ")", "[": "]", "{": "}"}
_CLOSING = frozenset(_OPENING.values())
_COMMENT = r"(?P<comment>//[^\n]*|/\*.*?(?:\*/|\Z))"
_TEXT, _CHARACTER = r'"(?:\\.|[^\\"])*(?:"|\Z)', r"'(?:\\.|[^\\'])*(?:'|\Z)"
_CHAR_RUST = r"'(?:\\(?:u\{[0-9a-fA-F_]+\}|x[0-9a-fA-F]{2}|.)|[^\\'\n])'"
"""A lone quote is a lifetime: `'a`."""
_CHAR_C = rf"(?:(?<![^\W_])|(?<=[uUL])){_CHARACTER}"
"""Between digits, a quote separates them."""
_RAW_RUST = r'(?<!\w)b?r(?P<hashes>#*)".*?(?:"(?P=hashes)|\Z)'
_RAW_C = r'(?<=R)"(?P<end>[^()\\\s]{0,16})\(.*?(?:\)(?P=end)"|\Z)'


def _compile(*strings: str) -> re.Pattern[str]:
    return re.compile(f"{_COMMENT}|(?P<string>{'|'.join(strings)})", re.DOTALL)


_TOKENS: Mapping[Language, re.Pattern[str]] = {
    # Of a template or an expression of JavaScript, only the start is a token.
    "javascript": _compile(_TEXT, _CHARACTER, "[`/]"),
    "go": _compile(_TEXT, _CHARACTER, r"`[^`]*(?:`|\Z)"),
    "rust": _compile(_RAW_RUST, _TEXT, _CHAR_RUST),
    "java": _compile(r'""".*?(?:"""|\Z)', _TEXT, _CHARACTER),
    "c": _compile(_RAW_C, _TEXT, _CHAR_C),
}
_TEMPLATE = {
    "`": re.compile(r"\\.|`|\$\{", re.DOTALL),
    "}": re.compile(rf"\\.|[`{{}}]|{_TEXT}|{_CHARACTER}", re.DOTALL),
}
"""Tokens inside a template of JavaScript, and inside of the code in it, by their end."""
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
    mask = _mask(text, language)
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


def _mask(text: str, language: Language) -> str:
    """Return a text with blanks for comments, expressions, and the insides of strings."""
    parts: list[str] = []
    at = 0
    while found := _TOKENS[language].search(text, at):
        start, end = found.span()
        parts.append(text[at:start])
        is_string = found["comment"] is None
        if found[0] == "`":
            end = _end_of_template(text, end)
        elif found[0] == "/":
            is_value = _BEFORE_REGEX.search("".join(parts[-3:])[-80:]) is not None
            regex = _REGEX.match(text, start) if is_value else None
            # Otherwise, it is a division.
            end, is_string = (regex.end(), False) if regex else (end, True)
        at, token = end, text[start:end]
        inside = _blank(token[1:-1])
        parts.append(f"{token[0]}{inside}{token[1:][-1:]}" if is_string else _blank(token))
    return "".join((*parts, text[at:]))


def _end_of_template(text: str, at: int) -> int:
    """Return the end of a template of JavaScript; the code inside it may hold others."""
    ends = ["`"]
    while ends and (found := _TEMPLATE[ends[-1]].search(text, at)):
        at = found.end()
        if found[0] == ends[-1]:
            ends.pop()
        elif found[0] in ("`", "{", "${"):
            ends.append("`" if found[0] == "`" else "}")
    return len(text) if ends else at


def _blank(text: str) -> str:
    """Return blanks for a text, with its line ends."""
    return re.sub(r"[^\n]", " ", text)
