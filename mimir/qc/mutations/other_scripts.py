"""Test scripts in Perl, Ruby and PHP, and changes that make them fail. Pure.

Their runners report no single tests, so a script counts as a whole.
"""

import re
from collections.abc import Mapping

from mimir.qc.mutations.mutation import Step, other_literal

SUFFIXES: Mapping[str, str] = {"t": "perl", "pl": "perl", "rb": "ruby", "php": "php"}
"""Interpreter by the ending of a script."""
_LITERAL = r"(?P<value>-?\d+(?:\.\d+)?|\"[^\"\\$#@\n]*\"|'[^'\\\n]*')"
_ARGUMENT = r"(?:[^(),;\n]|\((?:[^()\n]|\([^()\n]*\))*\))+"
"""One argument; commas only inside of its own calls."""
_EXPECTED: Mapping[str, re.Pattern[str]] = {
    "perl": re.compile(rf"\bis(?:_deeply)?\b[ \t]*\(?{_ARGUMENT},[ \t]*{_LITERAL}(?=[ \t]*[,);])"),
    "ruby": re.compile(rf"\bassert_equal\b[ \t(]+{_LITERAL}(?=[ \t]*,)"),
    "php": re.compile(rf"\bassert(?:Same|Equals)\([ \t]*{_LITERAL}(?=[ \t]*,)"),
}
_EXIT = re.compile(r"(?m)(?<![\w$@>:.-])exit\b(?:[ \t]*\([ \t]*0?[ \t]*\)|[ \t]+0)?(?=[ \t]*(?:;|$|if\b|unless\b))")  # fmt: skip
_END = re.compile(r"(?m)^__(?:END|DATA)__$")
_FAIL = "exit(1);\n"


def mutate_script(text: str, interpreter: str, step: Step) -> str | None:
    """Return a script that fails; None: this step changes nothing."""
    match step:
        case "replaced":
            return f"<?php {_FAIL}" if interpreter == "php" else _FAIL
        case "expectations" | "strict":
            other = _EXPECTED[interpreter].sub(lambda one: _change(one, step), text)
            return None if other == text else other
        case "end":
            text = _EXIT.sub("exit(1)", text)
            end = _END.search(text)
            at = end.start() if end else len(text)
            is_outside = text.rfind("?>") > text.rfind("<?php")
            start = "<?php " if interpreter == "php" and is_outside else "\n"
            return f"{text[:at]}{start}{_FAIL}{text[at:]}"
        case _:
            return None


def _change(found: re.Match[str], step: Step) -> str:
    value = found["value"]
    blank = f"{value[0]}{' ' * (len(value) - 2)}{value[-1]}"
    other = "(exit(1))" if step == "strict" else other_literal(value, blank, has_characters=False)
    return f"{found[0].removesuffix(value)}{other or value}"
