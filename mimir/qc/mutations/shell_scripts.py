"""Shell scripts: the loops in them, and changes that make them fail. Pure.

Work that a script reads as a part of itself (`. ./lib.sh`) may end it, or redefine `test` and `[`.
"""

import re
from collections.abc import Callable, Iterator, Sequence

from mimir.domain.globs import has_wildcard
from mimir.qc.mutations.mutation import SUFFIX, Step, changed_integer

Find = Callable[[str], Sequence[str]]
"""Returns the files of the tree that a pattern matches."""

_SHEBANG = re.compile(r"(?:#![^\n]*\n)?")
_EXIT = re.compile(
    r"(?m)(?:(?<=^)|(?<=[\s;&|{(]))exit(?:[ \t]+(?:0|\"?\$[\w?{}]{1,80}\"?))?(?=[ \t]*(?:$|[;&|)}#]))"
)
# `exec program` replaces the script, so its end would never run; `exec 2>&1` does not.
_EXEC = re.compile(r"(?m)^([ \t]*)exec[ \t]+(?=[A-Za-z./\"$])")
_LOOP = re.compile(r"\bfor[ \t]+(?P<name>[A-Za-z_]\w*)[ \t]+in[ \t]+(?P<words>[^;\n]+)")
# A comparison at the start of a line ends the script if it fails.
_COMPARISON = re.compile(
    r"(?m)^(?:test|\[\[?)[ \t][^\n;&|]*?\$[^\n;&|]*?[ \t](?:==?|-eq)[ \t]+"
    r"(?P<value>\"[^\"$`\\\n]*\"|'[^'\n]*'|-?[\w.]+)(?:[ \t]*\]\]?)?[ \t]*"
    r"(?P<else>\|\|[ \t]*(?:\{[^\n]*\b)?(?:exit|return|fail|die|false)\b(?![ \t]+0)[^\n]*)?$"
)
_ENDS_AT_FAILURES = re.compile(r"(?m)^(?:#![^\n]*[ \t]|set[ \t]+)-\w*e")


def shebang(text: str) -> str:
    """Return the first line of a script that names its interpreter; empty: there is none."""
    found = _SHEBANG.match(text)
    return found[0] if found else ""


def unroll_loops(text: str, find: Find) -> Iterator[str]:
    """Yield the lines of loops, with each value of the variable in its place."""
    for loop in _LOOP.finditer(text):
        words = [word.strip("\"'()") for word in loop["words"].split()]
        values = [one for word in words for one in (find(word) if has_wildcard(word) else [word])]
        variable = re.compile(rf"\$(?:{loop['name']}\b|\{{{loop['name']}\}})")
        for line in text[loop.end() :].splitlines():
            if variable.search(line):
                yield from (variable.sub(lambda _, one=one: one, line).lstrip("; \t") for one in values)  # fmt: skip


def mutate_script(text: str, step: Step) -> str | None:
    """Return a script that fails; None: this step changes nothing."""
    match step:
        case "replaced":
            return f"{shebang(text)}exit 1\n"
        case "expectations" | "strict":
            other = _COMPARISON.sub(lambda found: _fail_comparison(text, found, step), text)
            return None if other == text else other
        case "end":
            text = _EXEC.sub(r"\1", _EXIT.sub("exit 1", text))
            return f"{text.rstrip()}\nexit 1\n"
        case _:
            return None


def _fail_comparison(text: str, found: re.Match[str], step: Step) -> str:
    if not (found["else"] or _ENDS_AT_FAILURES.search(text)):
        return found[0]
    if step == "strict":
        return f"exit 1; {found[0]}"
    value, (start, end) = found["value"], found.span("value")
    if value.lstrip("-").isdecimal():
        other = str(changed_integer(int(value)))
    else:
        quote = value[-1] if value[-1] in "\"'" else ""
        other = f"{value.removesuffix(quote)}{SUFFIX}{quote}"
    return f"{text[found.start() : start]}{other}{text[end : found.end()]}"
