"""Scripts by their interpreters, and changes that make them fail. Pure.

A script counts as a whole: only its exit code is known. Those in Perl, Ruby and PHP change here.
"""

import posixpath
import re
from collections.abc import Mapping

from mimir.qc.integrity.command_line import PYTHON, SHELLS
from mimir.qc.mutations import lexed_tests, python_tests, shell_scripts
from mimir.qc.mutations.mutation import Step, other_literal

OTHERS: Mapping[str, str] = {"t": "perl", "pl": "perl", "rb": "ruby", "php": "php"}
"""Interpreter by the ending of a script; their test runners report no single tests."""
_ENDINGS: Mapping[str, str] = {
    "py": "python",
    **dict.fromkeys(("sh", "bash"), "sh"),
    **dict.fromkeys(("js", "mjs", "cjs"), "node"),
    **OTHERS,
}
_INTERPRETERS: Mapping[str, str] = {
    **dict.fromkeys(SHELLS, "sh"),
    **dict.fromkeys(("node", "nodejs"), "node"),
    **{name: name for name in OTHERS.values()},
}
"""Interpreter by the name of a program."""
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


def find_interpreter(program: str) -> str:
    """Return `sh`, `python`, `node`, `perl`, `ruby` or `php`; empty: the program is none."""
    name = posixpath.basename(program.removeprefix("#!"))
    return "python" if PYTHON.fullmatch(name) else _INTERPRETERS.get(name, "")


def interpreter_of(path: str, text: str) -> str:
    """Return the interpreter of a script by its first line or its ending; empty: it is none."""
    for word in shell_scripts.shebang(text).split():
        if interpreter := find_interpreter(word):
            return interpreter
    return _ENDINGS.get(path.rpartition(".")[2], "")


def mutate_script(text: str, interpreter: str, step: Step) -> str | None:
    """Return a script that fails; None: this step changes nothing."""
    match interpreter:
        case "python":
            return python_tests.mutate_script(text, step)
        case "node":
            return lexed_tests.mutate_script(text, step)
        case "sh":
            return shell_scripts.mutate_script(text, step)
        case _:
            return _mutate_other(text, interpreter, step)


def _mutate_other(text: str, interpreter: str, step: Step) -> str | None:
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
