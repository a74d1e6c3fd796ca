"""Detection of checks that cannot fail, such as `true`, `echo` or `… || true`. Pure."""

import ast
import re
import sys
from collections.abc import Sequence
from itertools import pairwise
from pathlib import PurePosixPath

from mimir.domain.python_syntax import parse_module
from mimir.planning.lint.shell_exit import (
    ExitOutcomes,
    ShellState,
    ShellWord,
    UnknownSyntax,
    ends_of,
)
from mimir.qc.integrity.command_line import PYTHON, SHELLS, strip_wrappers

_ALWAYS_OK = frozenset(
    {"true", ":", "echo", "printf", "sleep", "date", "pwd", "whoami", "hostname", "uname", "clear"}
    | {"export", "unset", "alias", "declare", "local", "readonly", "umask", "shopt"}
)
# Programs that succeed at the end of a pipe on any input.
_FILTERS = frozenset(
    {"tee", "cat", "tail", "head", "sort", "uniq", "wc", "tr", "cut", "sed", "nl", "less", "more"}
    | {"column", "fold", "rev", "tac", "ts"}
)
_SCRIPT = re.compile(
    r"\s*(?:process\.exit\(\s*0?\s*\)|exit\s*\(?\s*0?\s*\)?|true|1|0|console\.log\([^()]*\)|(?:print|puts|say)\b[^()`$]*)?\s*;?\s*"
)
_ASSIGNMENT = re.compile(r"[A-Za-z_]\w*\+?=")
_DISCARDED = re.compile(r"(?:\|\||;)\s*(?:true|:|exit\s+0)\s*;?\s*$")


def cannot_fail(argv: Sequence[str]) -> bool:
    """Return whether a command (`Check.argv`) ends with exit code 0 in any project.

    An empty command cannot fail either: it proves nothing.
    """
    words = [ShellWord(text) for text in argv]
    if not any(text.strip() for text in argv):
        return True
    # A check has no input: these programs wait for text and end with 0 at its end.
    if len(argv) == 1 and (_name(words) in SHELLS | {"cat"} or PYTHON.fullmatch(_name(words))):
        return True  # it reads an empty input
    try:
        ends = _ends(words, ShellState(), piped=False, depth=0)
    except UnknownSyntax:
        # Even a line of unknown syntax surely succeeds if it ends in `|| true` or the like.
        script = argv[-1]
        if len(argv) == 1 or _name(words) not in SHELLS or "<<" in script or "#" in script:
            return False
        return _DISCARDED.search(script) is not None
    return bool(ends) and not ends & (ExitOutcomes.FAIL | ExitOutcomes.EXIT_FAIL)


def _name(words: Sequence[ShellWord]) -> str:
    return PurePosixPath(words[0].text).name if words and words[0].literal else ""


def _ends(
    words: Sequence[ShellWord], state: ShellState, *, piped: bool, depth: int
) -> ExitOutcomes:
    """Return the possible ends of a simple command."""
    words = _without_assignments(words)
    if not words:
        return ExitOutcomes.OK
    name = _name(words)
    inner = words[len(words) - len(strip_wrappers([word.text for word in words])) :]
    if len(inner) < len(words):
        # Without a program, `env` prints the environment, and succeeds.
        without = ExitOutcomes.OK if name == "env" else ExitOutcomes.EITHER
        # The wrapper passes on the exit code of the program that it runs.
        return _ends(inner, state, piped=piped, depth=depth) if inner else without
    # Linters print their findings with --exit-zero, and succeed.
    if name in _ALWAYS_OK or any(word.text == "--exit-zero" for word in words):
        return ExitOutcomes.OK
    if name == "false":
        return ExitOutcomes.FAIL
    # `tee` copies its input and succeeds even if it names files; the others may miss theirs.
    if piped and name in _FILTERS and (name == "tee" or not _has_operand(name, words)):
        return ExitOutcomes.OK
    return _builtin(name, words, state, depth)


def _builtin(name: str, words: Sequence[ShellWord], state: ShellState, depth: int) -> ExitOutcomes:
    match name:
        case "exit" | "return":
            return _exit(words, state)
        case "set":
            _set_options(words, state)
            return ExitOutcomes.OK
        case "wait":
            # `wait` alone ignores the results; with a process it has that one's status.
            return ExitOutcomes.OK if len(words) == 1 else ExitOutcomes.EITHER
        case "trap":
            text = words[1].text if len(words) > 1 else ""
            state.always_zero = state.always_zero or bool(re.search(r"\bexit\s+0\s*;?\s*$", text))
            return ExitOutcomes.OK
        case "test" | "[":
            return _test(words)
        case "eval":
            return _script(" ".join(w.text for w in words[1:]), words[1:], state, depth)
        case _ if name in SHELLS:
            return _shell(words, depth)
        case _ if PYTHON.fullmatch(name):
            return _python(words)
        case "node" | "ruby" | "perl" | "php" | "deno" | "bun":
            return _one_liner(words)
        case _:
            return ExitOutcomes.EITHER


def _without_assignments(words: Sequence[ShellWord]) -> Sequence[ShellWord]:
    at = 0
    while at < len(words) and _ASSIGNMENT.match(words[at].text):
        # The status of `x=$(command)` alone is the command's.
        if not words[at].literal and len(words) == at + 1:
            return [ShellWord("x", literal=False)]
        at += 1
    return words[at:]


def _has_operand(name: str, words: Sequence[ShellWord]) -> bool:
    """Return whether a filter may read a file, not only its input."""
    scripts = {"sed": 1, "tr": 2}.get(name, 0)
    operands = [w for w in words[1:] if not w.text.startswith(("-", "+")) and not w.text.isdigit()]
    # `sed q` ends before its input does, so that the writer of the pipe may fail.
    return len(operands) > scripts or (name == "sed" and "q" in words[-1].text)


def _exit(words: Sequence[ShellWord], state: ShellState) -> ExitOutcomes:
    if len(words) == 1 or words[1].text == "$?":
        ends = state.last.select(ExitOutcomes.OK, ExitOutcomes.EXIT_OK)
        return ends | state.last.select(ExitOutcomes.FAIL, ExitOutcomes.EXIT_FAIL)
    if words[1].literal and re.fullmatch(r"\d{1,6}", words[1].text):
        # The shell keeps the low eight bits: `exit 256` is a success.
        return ExitOutcomes.EXIT_FAIL if int(words[1].text) % 256 else ExitOutcomes.EXIT_OK
    return ExitOutcomes.EXITS


def _set_options(words: Sequence[ShellWord], state: ShellState) -> None:
    for n, word in enumerate(words[1:], start=1):
        on = word.text.startswith("-")
        if not word.text.startswith(("-", "+")):
            continue
        if "e" in word.text[1:] and not word.text.startswith("--"):
            state.errexit = on
        if word.text.endswith("o") and n + 1 < len(words):
            # `set -eo pipefail` gives the name of the option as the next word.
            if words[n + 1].text == "pipefail":
                state.pipefail = on
            if words[n + 1].text == "errexit":
                state.errexit = on


def _test(words: Sequence[ShellWord]) -> ExitOutcomes:
    """Return the ends of `test …`: a comparison of constants has one end only."""
    if not all(word.literal for word in words):
        return ExitOutcomes.EITHER
    match [word.text for word in words[1:] if word.text != "]"]:
        case [] | [""] | ["-n", ""]:
            return ExitOutcomes.FAIL
        case [_] | ["-n", _] | ["-z", ""]:
            return ExitOutcomes.OK
        case ["-z", _]:
            return ExitOutcomes.FAIL
        case [left, "=" | "==" | "-eq" | "-ge" | "-le", right] if left == right:
            return ExitOutcomes.OK
        case _:
            return ExitOutcomes.EITHER


def _shell(words: Sequence[ShellWord], depth: int) -> ExitOutcomes:
    """Return the ends of `bash -c "…"`, found in its script."""
    errexit = pipefail = False
    for n, word in enumerate(words[1:], start=1):
        if not word.text.startswith(("-", "+")):
            pipefail = pipefail or word.text == "pipefail"
            if word.text not in ("pipefail", "errexit"):
                return ExitOutcomes.EITHER
            errexit = errexit or word.text == "errexit"
            continue
        errexit = errexit or ("e" in word.text[1:] and not word.text.startswith("--"))
        if "c" in word.text[1:] and not word.text.startswith("--"):
            # `bash -eo pipefail -c SCRIPT`: the name of the option is not the script.
            script = [
                w for w in words[n + 1 :] if not (w.text == "pipefail" and word.text.endswith("o"))
            ]
            if not script:
                return ExitOutcomes.EITHER
            pipefail = pipefail or len(script) < len(words[n + 1 :])
            state = ShellState(errexit=errexit, pipefail=pipefail)
            return _script(script[0].text, script[:1], state, depth)
    return ExitOutcomes.EITHER


def _script(text: str, words: Sequence[ShellWord], state: ShellState, depth: int) -> ExitOutcomes:
    if not all(word.literal for word in words):
        return ExitOutcomes.EITHER
    return ends_of(
        text,
        lambda given, inner, piped: _ends(given, inner, piped=piped, depth=depth + 1),
        errexit=state.errexit,
        pipefail=state.pipefail,
        depth=depth + 1,
    )


def _one_liner(words: Sequence[ShellWord]) -> ExitOutcomes:
    for flag, code in pairwise(words[1:]):
        if flag.text in ("-e", "--eval", "-r", "eval") and code.literal:
            return ExitOutcomes.OK if _SCRIPT.fullmatch(code.text[:500]) else ExitOutcomes.EITHER
    return ExitOutcomes.EITHER


def _python(words: Sequence[ShellWord]) -> ExitOutcomes:
    for flag, code in pairwise(words[1:]):
        if not flag.text.startswith("-") or flag.text in ("-m", "-"):
            return ExitOutcomes.EITHER
        if flag.text.endswith("c") and not flag.text.startswith("--"):
            return ExitOutcomes.OK if code.literal and _is_idle(code.text) else ExitOutcomes.EITHER
    return ExitOutcomes.EITHER


def _is_idle(code: str) -> bool:
    """Return whether a Python program surely does nothing that can fail."""
    # No trivial program is that long, and the parser's time must stay small.
    if len(code) > 5_000:
        return False
    tree = parse_module(code)
    try:
        return tree is not None and all(_is_idle_statement(statement) for statement in tree.body)
    except RecursionError:  # the text of a deep expression
        return False


def _is_idle_statement(node: ast.stmt) -> bool:
    match node:
        case ast.Pass() | ast.Expr(value=ast.Constant()) | ast.Assign(value=ast.Constant()):
            return True
        case ast.Import(names=names):
            # A module of the project may raise an error when it is imported.
            return all(name.name.partition(".")[0] in sys.stdlib_module_names for name in names)
        case ast.ImportFrom(module=str(module), level=0):
            return module.partition(".")[0] in sys.stdlib_module_names
        case ast.Assert(test=ast.Constant(value=value)):
            return bool(value)
        case ast.Expr(value=ast.Call() as call) | ast.Raise(exc=ast.Call() as call):
            return _is_idle_call(call)
        case ast.Try(body=body, handlers=[handler], orelse=[], finalbody=[]):
            # Every error in the body is caught, except an exit.
            caught = "" if handler.type is None else ast.unparse(handler.type)
            if caught not in ("", "Exception", "BaseException"):
                return False
            quits = any("exit" in ast.unparse(statement).casefold() for statement in body)
            return not quits and all(_is_idle_statement(one) for one in handler.body)
        case _:
            return False


def _is_idle_call(call: ast.Call) -> bool:
    name = ast.unparse(call.func)
    constant = all(isinstance(one, ast.Constant) for one in call.args) and not call.keywords
    if name == "print":
        return constant
    if name in ("exit", "quit", "sys.exit", "os._exit", "SystemExit"):
        values = [one.value for one in call.args if isinstance(one, ast.Constant)]
        return constant and all(value in (0, None, False) for value in values)
    return False
