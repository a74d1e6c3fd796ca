"""Shell scripts, and changes that make them fail. Pure.

Work that a script reads as a part of itself (`. ./lib.sh`) may end it, or redefine `test` and `[`.
"""

import re

from mimir.qc.mutations.mutation import SUFFIX, Step, changed_integer

_SHEBANG = re.compile(r"(?:#![^\n]*\n)?")
_EXIT = re.compile(
    r"(?m)(?:(?<=^)|(?<=[\s;&|{(]))exit(?:[ \t]+(?:0|\"?\$[\w?{}]{1,80}\"?))?(?=[ \t]*(?:$|[;&|)}#]))"
)
# `exec program` replaces the script, so its end would never run; `exec 2>&1` does not.
_EXEC = re.compile(r"(?m)^([ \t]*)exec[ \t]+(?=[A-Za-z./\"$])")
_VALUE = r"(?P<value>\"[^\"$`\\\n]*\"|'[^'\n]*'|-?[\w.]+)"
_ELSE = (
    r"[ \t]*(?P<else>\|\|[ \t]*(?:\{[^\n]*\b)?(?:exit|return|fail|die|false)\b(?![ \t]+0)[^\n]*)?$"
)
_FUNCTION = re.compile(r"(?ms)^(?:function[ \t]+)?(?!test)([\w-]+)[ \t]*\(\)\s*\{\n.*?^\}")
# A comparison at the start of a line ends the script if it fails; so does a pattern at the end of a pipe.
_COMPARISON = re.compile(
    rf"(?m)^(?P<test>)(?:test|\[\[?)[ \t][^\n;&|]*?\$[^\n;&|]*?[ \t](?:==?|-eq)[ \t]+{_VALUE}(?:[ \t]*\]\]?)?{_ELSE}"
)
_PATTERN = re.compile(
    rf"(?m)^(?P<test>)(?!!|if\b|while\b|until\b)\w[^\n#|]*\|[ \t]*grep[ \t]+-[a-uw-zA-Z]*q[a-uw-zA-Z]*[ \t]+{_VALUE}{_ELSE}"
)
# A call of a test's own assertion with two values; work may replace the function.
_CALL = re.compile(
    r"(?mi)^(?P<test>)[ \t]*(?:assert|expect|check|is)_?(?:eq|equals?)[ \t]+(?:\"[^\"\n]*\$[^\"\n]*\"|\$[\w{}]+)[ \t]+"
    rf"{_VALUE}[ \t]*(?P<else>)$"
)
_FILES = re.compile(
    rf"(?m)^(?P<test>)(?:diff|cmp)(?:[ \t]+-[\w-]+)*[ \t]+(?P<value>[\w./-]+)(?=[ \t]+[\w./$\"{{}}-]+{_ELSE})"
)
"""Comparison of two files, the first of which is named."""
_OTHER_FILE = '"$MIMIR_REPORTERS/mimir_compare.py"'
# A difference that its branch reports as a failure.
_DIFFERENCE = re.compile(
    r"(?m)^[ \t]*if[ \t]+(?P<test>)(?:test|\[\[?)[ \t][^\n;&|]*?\$[^\n;&|]*?[ \t](?:!=|-ne)[ \t]+"
    r"(?P<value>\"[^\"$`\\\n]*\"|'[^'\n]*'|-?[\w.]+)(?:[ \t]*\]\]?)?[ \t]*(?:;[ \t]*|\n[ \t]*)then\b"
    r"(?=(?P<else>(?:(?!\bfi\b|\belse\b|\belif\b)[^\n])*(?:\n(?![ \t]*(?:fi|else|elif)\b)[^\n]*){0,9}))"
)
_EXPECTATIONS = (_COMPARISON, _PATTERN, _CALL, _FILES, _DIFFERENCE)
"""Patterns of expectations: `test` is where they begin, `else` what follows a failure."""
_FAILURE = re.compile(
    r"\b(?:exit|return)[ \t]+[1-9]|\bfail\b|\w*(?i:fail|bad|err)\w*=|\b(?:rc|status|ret)=[1-9]"
)
_ENDS_AT_FAILURES = re.compile(r"(?m)^(?:#![^\n]*[ \t]|set[ \t]+)-\w*e")


def shebang(text: str) -> str:
    """Return the first line of a script that names its interpreter; empty: there is none."""
    found = _SHEBANG.match(text)
    return found[0] if found else ""


def mutate_script(text: str, step: Step) -> str | None:
    """Return a script that fails; None: this step changes nothing."""
    match step:
        case "replaced":
            return f"{shebang(text)}exit 1\n"
        case "expectations" | "strict":
            other = text
            for pattern in _EXPECTATIONS:
                other = pattern.sub(lambda found: _fail(found, step), other)
            return None if other == text else other
        case "end":
            text = _EXEC.sub(r"\1", _EXIT.sub("exit 1", text))
            return f"{text.rstrip()}\nexit 1\n"
        case _:
            return None


def _is_unused(found: re.Match[str]) -> bool:
    """True if a comparison is in a function that its script never calls."""
    functions = [one for one in _FUNCTION.finditer(found.string) if one.start() < found.start() < one.end()]  # fmt: skip
    return any(len(re.findall(rf"\b{one[1]}\b", found.string)) == 1 for one in functions)


def _fail(found: re.Match[str], step: Step) -> str:
    """Return an expectation that fails; one that decides nothing stays."""
    if found.re is _DIFFERENCE:
        is_decisive = _FAILURE.search(found["else"])
    else:
        is_decisive = found["else"] or found.re is _CALL or _ENDS_AT_FAILURES.search(found.string)
    if not is_decisive or (found.re is not _DIFFERENCE and _is_unused(found)):
        return found[0]
    place, other = found.span("value"), _OTHER_FILE
    if step == "strict":
        place, other = found.span("test"), "exit 1; "
    elif found.re is not _FILES:
        other = _change_value(found["value"])
    return f"{found.string[found.start() : place[0]]}{other}{found.string[place[1] : found.end()]}"


def _change_value(value: str) -> str:
    quote = value[-1] if value[-1] in "\"'" else ""
    inner = value.removeprefix(quote).removesuffix(quote)
    # A number in quotes is compared as a number, too.
    is_number = re.fullmatch(r"-?\d+", inner)
    return f"{quote}{changed_integer(int(inner)) if is_number else f'{inner}{SUFFIX}'}{quote}"
