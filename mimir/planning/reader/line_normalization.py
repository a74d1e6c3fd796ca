"""Normalisation of lines: special spaces, invisible and full-width characters. Pure.

Such characters look like the usual ones, so they must not hide a heading, a label or a list item.
"""

import html
import re
import unicodedata
from functools import lru_cache

_FULL_WIDTH = {code: code - 0xFEE0 for code in range(0xFF01, 0xFF5F)} | {
    ord("【"): ord("["),
    ord("】"): ord("]"),
    ord("、"): ord(","),
}
# Signs that look like a colon, as listed by Unicode (UTS 39); its compatibility forms are below.
_COLONS = "\u02d0\u02f8\u0589\u05c3\u0703\u0704\u0903\u0a83\u1361\u1365\u16ec\u1803\u1804\u1809\u205a\u2236\ua4fd\ua789\ufe30"
_JOINERS = "\u200c\u200d"
_LINE_ENDS = "\u2028\u2029\x0b\x0c\x85"
# The head of a line: its marks, the text in brackets, and a label or an id up to its separator.
_HEAD = re.compile(
    r"[^\w(\[]*(?:[(\[][^()\[\]]{0,40}[)\]][^\w(\[]*)*(?:[\w .\-/&]{0,80}(?:[:=*]|$)[:=*]*)?"
)
# Entities of the marks of headings, labels and points.
_ENTITY = re.compile(r"&(?:nbsp|colon|ast|num|lpar|rpar|#(?:35|40|41|42|58|160));")
# Markdown's own forms of a line break at the end of a line.
_LINE_BREAK = re.compile(r"(?:<br ?/?>|(?<!\\)\\)$", re.IGNORECASE)


def normalize_line(line: str) -> str:
    """Return a line without invisible characters, with usual punctuation in its head."""
    if line.endswith((">", "\\")):
        line = _LINE_BREAK.sub("", line)
    if "&" in line:
        line = _ENTITY.sub(lambda match: html.unescape(match[0]), line)
    if line.isascii() and not any(end in line for end in "\x0b\x0c"):
        return line
    visible = "".join(_visible(line, at) for at in range(len(line)))
    head = _HEAD.match(narrow := narrow_text(visible))
    # The rest is text: its punctuation is the author's.
    end = head.end() if head else 0
    return narrow[:end] + visible[end:]


def narrow_text(text: str) -> str:
    """Return a value, such as a list of ids, with the usual characters for full-width ones."""
    return text if text.isascii() else "".join(map(_usual, text))


@lru_cache(maxsize=4096)
def _usual(sign: str) -> str:
    """Return the ASCII punctuation that a sign looks like, or the sign itself."""
    if sign in _COLONS:
        return ":"
    if ord(sign) in _FULL_WIDTH:
        return sign.translate(_FULL_WIDTH)
    plain = unicodedata.normalize("NFKC", sign)
    is_mark = len(plain) == 1 and plain.isascii() and not plain.isalnum()
    return plain if is_mark and not sign.isascii() else sign


def _visible(line: str, at: int) -> str:
    sign = line[at]
    if sign.isascii() and sign not in _LINE_ENDS:
        return sign
    if sign in _LINE_ENDS or unicodedata.category(sign) == "Zs":
        return " "
    if unicodedata.category(sign) != "Cf":
        return sign
    # Joiners between two letters or emoji are part of a word.
    around = line[at - 1 : at] + line[at + 1 : at + 2]
    is_word = len(around) == 2 and not any(one.isascii() for one in around)
    return sign if sign in _JOINERS and is_word else ""
