"""Scripts that a check executes, and changes that make them fail. Pure.

A program that reads a script fails only at the end of it: an early exit by the work then shows as a green run.
"""

import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace

from mimir.domain.globs import is_outside
from mimir.domain.value_class import value_class
from mimir.qc.controls.inline_programs import (
    command_text,
    count_programs,
    mutate_program,
    package_scripts,
    reads_program,
)
from mimir.qc.integrity.command_line import SHELLS, ProgramCall, find_programs
from mimir.qc.integrity.test_runners import COLLECTED, READERS, TEST_VERBS
from mimir.qc.mutations.mutation import Step
from mimir.qc.mutations.scripts import OTHERS, find_interpreter, interpreter_of, mutate_script
from mimir.qc.scope.loaded_files import MAKEFILES

Read = Callable[[str], str | None]
"""Returns the text of a file of the tree; None: there is none."""
Recipes = Mapping[ProgramCall, Sequence[str]]
"""Call of a build tool → command lines that it would execute."""

MOST = 12
"""Most scripts and recipes that are read for one check."""
_MAKE = ("make", "gmake")
_PACKAGE_MANAGERS = ("npm", "pnpm", "yarn", "bun")
_STARTING = frozenset(("-exec", "-execdir", "-ok"))
_USED = re.compile(r"[$<>]\(|`|(?<!\|)\|(?!\|)")


@value_class
class Script:
    """One script of the tree."""

    path: str
    interpreter: str
    """`sh`, `python`, `node`, `perl`, `ruby` or `php`."""
    is_inline: bool = False
    """True: a program inside the text of the file; without a path, of the command."""
    number: int = 0
    """Place among the programs of that text."""
    is_output_used: bool = False
    """True: a pipe or the shell reads its output, so its exit code may not decide."""
    is_unnamed: bool = False
    """True: no text names it, so that only a run shows whether it is started."""


@dataclass(slots=True, kw_only=True)
class StartedPrograms:
    """What the command of a check starts, directly or by recipes and scripts."""

    scripts: list[Script] = field(default_factory=list[Script])
    """Callers before the scripts that they call."""
    build_calls: list[ProgramCall] = field(default_factory=list[ProgramCall])
    """Calls of build tools with recipes."""
    collected: tuple[str, ...] = ()
    """Globs of the test files that the known test runners among the programs may execute."""
    only_reads: bool = True
    """True: each program only reads files, as linters do."""


def find_started(argv: Sequence[str], read: Read, recipes: Recipes) -> StartedPrograms:
    """Return what a command starts; nothing is executed here."""
    found = StartedPrograms()
    pending: list[Sequence[str]] = [argv]
    _note_inline(found, "", command_text(argv))
    for command in pending:  # grows during the loop, up to the limit
        for call in find_programs(command):
            _note_program(found, call)
            is_used = _USED.search(command[-1] if command else "") is not None
            lines = _started_lines(found, call, read, recipes, is_used=is_used)
            more = [("sh", "-c", line) for line in lines]
            pending += [one for one in more if one not in pending]
        del pending[MOST * 20 :]
    return found


def only_reads(argv: Sequence[str]) -> bool:
    """True if each program of a command only reads files, and none starts others."""
    calls = find_programs(argv)
    return bool(calls) and all(map(_only_reads, calls))


def _only_reads(call: ProgramCall) -> bool:
    # `find -exec` starts programs.
    return call.program in READERS and _STARTING.isdisjoint(call.arguments)


def _note_program(found: StartedPrograms, call: ProgramCall) -> None:
    verbs = TEST_VERBS.get(call.program)
    if verbs is None or not verbs.isdisjoint(call.arguments):
        named = [call.locate(word) for word in call.arguments if not is_outside(call.locate(word))]
        # Doctests have no files of their own, so only those that the command names count.
        is_runner = call.program in COLLECTED or call.program == "doctest"
        found.collected += (*COLLECTED.get(call.program, ()), *named) if is_runner else ()
    starts_others = call.program in (*_MAKE, *_PACKAGE_MANAGERS)
    if call.program in SHELLS:  # Without a script, a pipe gives it one.
        starts_others = any(not word.startswith("-") for word in call.arguments)
    found.only_reads &= _only_reads(call) or starts_others


def _note_inline(found: StartedPrograms, path: str, text: str | None) -> None:
    """Note the programs inside a text that a shell reads."""
    for number in range(count_programs(path, text) if text else 0):
        script = Script(path=path, interpreter="", is_inline=True, number=number)
        if script not in found.scripts and len(found.scripts) < MOST:
            found.scripts.append(script)
            found.only_reads = False


def _started_lines(
    found: StartedPrograms,
    call: ProgramCall,
    read: Read,
    recipes: Recipes,
    *,
    is_used: bool,
) -> Iterator[str]:
    """Yield the command lines that a program executes; note the script that it reads."""
    if call.program in _MAKE:
        for name in MAKEFILES:
            _note_inline(found, path := call.locate(name), read(path))
        found.build_calls.append(call)
        yield from recipes.get(call, ())
    elif call.program in _PACKAGE_MANAGERS:
        path = call.locate("package.json")
        _note_inline(found, path, text := read(path))
        words = [word for word in call.arguments if not word.startswith("-") and word != "run"]
        name = "test" if words[:1] in ([], ["t"]) else words[0]
        yield from (line for key, line in package_scripts(text or "").items() if key == name)
    else:
        for script in _scripts(call, read):
            script = replace(script, is_output_used=is_used)
            found.only_reads = False if script.interpreter != "sh" else found.only_reads
            if script not in found.scripts and len(found.scripts) < MOST:
                found.scripts.append(script)
                if script.interpreter == "sh":
                    text = read(script.path) or ""
                    _note_inline(found, script.path, text)
                    yield from text.replace("\\\n", " ").splitlines()


def _scripts(call: ProgramCall, read: Read) -> Iterator[Script]:
    """Yield the script of an interpreter, or the scripts that a test runner is given."""
    if script := _script(call, read):
        yield script
    for path in map(call.locate, call.arguments if call.program in COLLECTED else ()):
        text = None if is_outside(path) else read(path)
        interpreter = interpreter_of(path, text) if text is not None else ""
        # The tests of other languages are changed as such.
        if interpreter in OTHERS.values():
            yield Script(path=path, interpreter=interpreter)


def _script(call: ProgramCall, read: Read) -> Script | None:
    """Return the script that an interpreter reads, or that is a program itself."""
    interpreter = find_interpreter(call.program)
    if call.module or (not interpreter and not call.path):
        return None
    path, text = "", None
    # Without an interpreter, the program is the script.
    for at, word in enumerate(call.arguments if interpreter else call.arguments[:1]):
        option = call.arguments[at - 1] if at else ""
        if option == "-c" or reads_program(call.program, option):
            return None
        # Options may have values before the script: `bash -o pipefail check.sh`.
        path = call.locate(word.removeprefix("/workspace/"))
        if not word.startswith("-") and not is_outside(path) and (text := read(path)) is not None:
            break
    if text is None:
        return None
    interpreter = interpreter or interpreter_of(path, text) or ("sh" if call.path else "")
    return Script(path=path, interpreter=interpreter) if interpreter else None


def mutate_text(script: Script, text: str, step: Step) -> str | None:
    """Return the text of a script's file in which it fails; None: this step changes nothing."""
    if script.is_inline:
        return mutate_program(script.path, text, script.number, step)
    return mutate_script(text, script.interpreter, step)
