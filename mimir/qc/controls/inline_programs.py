"""Programs in the text of scripts and commands, and changes that make them fail. Pure.

A program is the text after an option of its interpreter, or a here-document. The work may end it early, so it fails apart from its caller.
"""

import json
import re
import shlex
from collections.abc import Iterator, Sequence

from mimir.domain.json_value import as_object, as_text
from mimir.domain.value_class import value_class
from mimir.qc.integrity.command_line import shell_line
from mimir.qc.mutations.mutation import Step
from mimir.qc.mutations.scripts import find_interpreter, mutate_script
from mimir.qc.scope.loaded_files import is_makefile

_NAME = r"(?<![\w./$-])(?P<program>[\w./${}()-]+)"
_OPTION = re.compile(
    rf"{_NAME}(?:[ \t]+-[\w-]+)*?[ \t]+(?P<option>-c|-e|--eval|-p|--print)[ \t]+(?P<text>'[^']*'(?:\"'\"'[^']*')*|\"(?:[^\"\\]|\\.)*\"|\w+(?![^\s;&|)]))"
)
_HERE = re.compile(
    rf"(?m)^[^\n#]*?{_NAME}(?:[ \t]+-[\w-]*)*[ \t]*<<(?P<dash>-?)[ \t]*(?P<quote>['\"]?)(?P<end>\w+)(?P=quote)[^\n]*\n"
    r"(?P<text>(?:[^\n]*\n)*?)[ \t]*(?P=end)[ \t]*$"
)
_EXPANDED = re.compile(r"(?<!\\)[$`]")
_PIPE = re.compile(r"[^\n;&|]*\|(?!\|)")
_ESCAPED = re.compile(r"\\([\\\"$`])")
_MOST = 12
"""Most programs of one text."""


@value_class
class _Program:
    """A program with its place in the text around it."""

    interpreter: str
    start: int
    end: int
    text: str
    is_quoted: bool


_OPTIONS = {"python": ("-c",), "node": ("-e", "--eval", "-p", "--print")}


def reads_program(program: str, option: str) -> str:
    """Return the interpreter that reads the text after an option; empty: it is no program."""
    interpreter = find_interpreter(program)
    for name in _OPTIONS:
        # A variable of a recipe: `$(PYTHON) -c`.
        if interpreter == name or (not interpreter and name.upper() in program):
            return name if option in _OPTIONS[name] else ""
    return ""


def mutate_command(argv: Sequence[str], number: int, step: Step) -> tuple[str, ...] | None:
    """Return a command in whose text one program fails; None: nothing changes."""
    line = shell_line(argv)
    other = mutate_program("", command_text(argv), number, step)
    if other is None:
        return None
    words = shlex.split(other) if line is None else [other if one == line else one for one in argv]
    return tuple(words)


def command_text(argv: Sequence[str]) -> str:
    """Return the line that a shell reads to execute a command."""
    line = shell_line(argv)
    return shlex.join(argv) if line is None else line


def count_programs(path: str, text: str) -> int:
    """Return the number of programs in the text of a file; an empty path means a command."""
    return sum(len(list(_programs(path, line))) for line in _shell_texts(path, text).values())


def mutate_program(path: str, text: str, number: int, step: Step) -> str | None:
    """Return a text in which one program fails; None: this step changes nothing."""
    for name, part in _shell_texts(path, text).items():
        found = list(_programs(path, part))
        if number < len(found):
            other = _mutate(path, part, found[number], step)
            if not (other and path.endswith(".json")):
                return other
            whole = as_object(json.loads(text))
            return json.dumps({**whole, "scripts": {**as_object(whole["scripts"]), name: other}})
        number -= len(found)
    return None


def _shell_texts(path: str, text: str) -> dict[str, str]:
    """Return the texts that a shell reads: those of a `package.json` by their names."""
    return package_scripts(text) if path.endswith(".json") else {"": text}


def package_scripts(text: str) -> dict[str, str]:
    """Return the command lines of a `package.json` by their names."""
    try:
        found = as_object(as_object(json.loads(text)).get("scripts"))
    except (ValueError, RecursionError):
        return {}
    return {name: as_text(line) for name, line in found.items() if as_text(line)}


def _programs(path: str, text: str) -> Iterator[_Program]:
    found: list[_Program] = []
    for one in _OPTION.finditer(text):
        inner, quote = one["text"][1:-1], one["text"][0]
        is_expanded = (
            _EXPANDED.search(inner) if quote == '"' else is_makefile(path) and "$" in inner
        )
        interpreter = reads_program(one["program"], one["option"])
        if interpreter and not is_expanded and not _is_output_used(path, text, one):
            plain = _ESCAPED.sub(r"\1", inner) if quote == '"' else shlex.split(one["text"])[0]
            found.append(_Program(interpreter=interpreter, start=one.start("text"), end=one.end("text"), text=plain, is_quoted=True))  # fmt: skip
    for one in _HERE.finditer(text):
        interpreter = reads_program(one["program"], "-c") or reads_program(one["program"], "-e")
        is_plain = one["quote"] or not _EXPANDED.search(one["text"])
        if interpreter and is_plain and not one["dash"] and not _is_output_used(path, text, one):
            found.append(_Program(interpreter=interpreter, start=one.start("text"), end=one.end("text"), text=one["text"], is_quoted=False))  # fmt: skip
    yield from sorted(found, key=lambda one: one.start)[:_MOST]


def _is_output_used(path: str, text: str, program: re.Match[str]) -> bool:
    """True if the output of a program decides, and not its exit code."""
    start = text.rfind("\n", 0, program.start("program")) + 1
    before = text[start : program.start("program")]
    if before.count("`") % 2 or ("$(" in before and before.count("(") > before.count(")")):
        return True
    is_strict = not path or "pipefail" in text
    line = text[program.start("program") : program.start("text")].rpartition("\n")[0]
    return not is_strict and _PIPE.match(line or text[program.end("text") :]) is not None


def _mutate(path: str, text: str, program: _Program, step: Step) -> str | None:
    other = mutate_script(program.text, program.interpreter, step)
    if other is None:
        return None
    if program.is_quoted and (is_makefile(path) or path.endswith(".json")):
        # A recipe needs one line; after a compound statement, no other one fits there.
        is_python = program.interpreter == "python"
        other = f"exec({other!r})" if is_python else other.strip().replace("\n", " ")
    other = shlex.quote(other) if program.is_quoted else f"{other.rstrip()}\n"
    return f"{text[: program.start]}{other}{text[program.end :]}"
