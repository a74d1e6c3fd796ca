"""Thinking that a model wrote into its text: its tags, and the text without it. Pure."""

import re

_NAME = r"[\w:|-]{0,20}?(?:think|thought|reasoning|scratchpad)[\w:|-]{0,20}"
_OPENING = re.compile(rf"\s*(?:<(?P<name>{_NAME})>|\[(?P<block>THINK)\])", re.IGNORECASE)
_LONE_CLOSING = r"</(?:think|thinking|thought)>"
# Without the opening tag, a closing tag on its own line is no quotation.
_CLOSING_LINE = re.compile(rf"^[ \t]*{_LONE_CLOSING}[ \t]*$", re.IGNORECASE | re.MULTILINE)
_CLOSING_END = re.compile(rf"(?<![`'\"]){_LONE_CLOSING}(?=[ \t]*(?:\n|\Z|[{{#]))", re.IGNORECASE)


def without_thinking(text: str, *, whole_lines: bool = False) -> str:
    """Return a text without the thinking at its beginning, also if the opening tag is missing.

    Args:
        text: Of a model.
        whole_lines: True for a document: a lone closing tag counts only on its own line.
    """
    rest, is_opened = text, False
    while (opening := _OPENING.match(rest)) is not None:
        is_opened = True
        closing = f"[/{opening['block']}]" if opening["block"] else f"</{opening['name']}>"
        at = rest.lower().find(closing.lower(), opening.end())
        if at < 0:
            return ""  # cut off within its thinking
        rest = rest[at + len(closing) :]
    if is_opened:
        return rest
    found = (_CLOSING_LINE if whole_lines else _CLOSING_END).search(text)
    if found is None or "<think" in text[: found.start()].lower():
        return text
    return text[found.end() :]


def blank_thinking(text: str) -> str:
    """Return a document without its thinking; every other line keeps its number."""
    rest = without_thinking(text, whole_lines=True)
    return "\n" * text[: len(text) - len(rest)].count("\n") + rest
