"""Programs in the text of scripts and commands, and changes that make them fail. Pure.

A program is the text after an option of its interpreter, or a here-document. The work may end it early, so it fails apart from its caller.
"""

import json
import posixpath
import re
import shlex
from collections.abc import Callable, Iterator

from mimir.domain.json_value import as_object, as_text
from mimir.domain.python_syntax import parse_module
from mimir.domain.value_class import value_class
from mimir.qc.integrity.command_line import PYTHON
from mimir.qc.mutations import lexed_tests, python_tests
from mimir.qc.mutations.mutation import Step
from mimir.qc.scope.loaded_files import is_makefile

Mutate = Callable[[str, Step], str | None]

_NAME = r"(?<![\w./$-])(?P<program>[\w./${}()-]+)"
_OPTION = re.compile(
    rf"{_NAME}(?:[ \t]+-[\w-]+)*?[ \t]+(?P<option>-c|-e|--eval|-p|--print)[ \t]+(?P<text>'[^']*'|\"(?:[^\"\\]|\\.)*\")"
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

    mutate: Mutate
    start: int
    end: int
    text: str
    is_quoted: bool


def find_mutation(program: str, option: str) -> Mutate | None:
    """Return what changes the text after an option of an interpreter; None: it is no program."""
    name = posixpath.basename(program)
    if option == "-c" and (PYTHON.fullmatch(name) or "PYTHON" in name):
        return python_tests.mutate_script
    is_node = name in ("node", "nodejs") or "NODE" in name
    return lexed_tests.mutate_script if is_node and option in EVAL else None


EVAL = ("-e", "--eval", "-p", "--print")
"""Options of Node that are followed by a program."""


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
        mutate = find_mutation(one["program"], one["option"])
        if mutate and not is_expanded and not _is_output_used(path, text, one):
            plain = _ESCAPED.sub(r"\1", inner) if quote == '"' else inner
            found.append(_Program(mutate=mutate, start=one.start("text"), end=one.end("text"), text=plain, is_quoted=True))  # fmt: skip
    for one in _HERE.finditer(text):
        mutate = find_mutation(one["program"], "-c") or find_mutation(one["program"], "-e")
        is_plain = one["quote"] or not _EXPANDED.search(one["text"])
        if mutate and is_plain and not one["dash"] and not _is_output_used(path, text, one):
            found.append(_Program(mutate=mutate, start=one.start("text"), end=one.end("text"), text=one["text"], is_quoted=False))  # fmt: skip
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
    other = program.mutate(program.text, step)
    if other is not None and program.is_quoted and (is_makefile(path) or path.endswith(".json")):
        other = _join_lines(program, other)
    if other is None:
        return None
    other = shlex.quote(other) if program.is_quoted else f"{other.rstrip()}\n"
    return f"{text[: program.start]}{other}{text[program.end :]}"


def _join_lines(program: _Program, other: str) -> str | None:
    """Return a program as one line, as recipes need it; None: it cannot be joined."""
    if program.mutate is not python_tests.mutate_script:
        return other.strip().replace("\n", " ")
    lines = other.strip().split("\n")
    tree = parse_module("\n".join(lines[:-1]) or "0")
    if tree is None or not tree.body:  # comments alone would make the other lines a comment
        return None
    # After a compound statement, the rest of a line belongs to it.
    return "; ".join(lines) if len(lines) == 1 or not hasattr(tree.body[-1], "body") else None
