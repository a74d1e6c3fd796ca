"""Parser of command lines: the programs that wrappers and shells start. Pure.

Nothing is executed. A line that cannot be parsed has no programs.
"""

import posixpath
import re
import shlex
from collections.abc import Container, Iterable, Iterator, Mapping, Sequence
from dataclasses import replace

from mimir.domain.value_class import value_class

SHELLS = frozenset(("bash", "sh", "dash", "zsh", "ksh", "ash"))
_WRAPPERS: Mapping[str, tuple[str, ...]] = {
    **dict.fromkeys(("nohup", "setsid", "busybox", "command", "builtin", "npx"), ()),
    **dict.fromkeys(("dbus-run-session", "xargs"), ()),
    "env": ("-u", "-C"),
    "nice": ("-n",),
    "ionice": ("-c", "-n"),
    "taskset": ("-c",),
    "stdbuf": ("-i", "-o", "-e"),
    "sudo": ("-u", "-g"),
    "timeout": ("-k", "-s", "--signal"),
    "exec": ("-a",),
    "xvfb-run": ("-n", "-s"),
    "time": ("-o", "-f"),
}
"""Programs that run another program → their options whose value is the next word."""
_RUN_WRAPPERS = frozenset(("uv", "poetry", "pipenv", "pdm", "hatch", "rye", "bundle"))
"""Programs whose `run` or `exec` starts the program that follows."""
_HAVE_VALUES = frozenset(
    (
        *("--directory", "--env", "--env-file", "--extra", "--group", "--only-group", "--package"),
        *("--project", "--python", "--with", "--with-editable", "--with-requirements"),
        *("-C", "-e", "-s"),
    )
)
"""Options of these whose value is the next word."""
_KEYWORDS = frozenset(("!", "do", "elif", "else", "if", "then", "until", "while", "{"))
_LINE_FOLLOWS = re.compile(r"-[a-zA-Z]*c")
"""Option of a shell before its command line, alone or with others: `-c`, `-lc`, `-euc`."""
PYTHON = re.compile(r"(?:python|pypy)[0-9.]*")
_OPERATORS = frozenset("();<>|&")
_MODES: Mapping[str, tuple[str, ...]] = {
    "node": ("--test",),
    "cargo": ("clippy", "fmt"),
    "rails": ("test", "spec"),
    "crystal": ("spec",),
    **dict.fromkeys(
        ("artisan", "bun", "dart", "deno", "dotnet", "flutter", "lein", "manage.py", "mix", "ng"),
        ("test",),
    ),
    **dict.fromkeys(("bazel", "meson", "playwright", "swift"), ("test",)),
}
"""Programs with another purpose before these words: `node --test`, `cargo clippy`."""
_INTERPRETERS = frozenset(("node", "perl", "php", "ruby"))
_LAUNCHED = frozenset(
    (
        *("artisan", "ava", "eslint", "jest", "manage.py", "mocha", "phpunit", "playwright"),
        *("prettier", "prove", "pytest", "rails", "rake", "rspec", "tsc", "vitest"),
    )
)
"""Programs that an interpreter may start by their path: `python manage.py test`."""
_SCRIPT_ENDS = re.compile(r"\.(?:[cm]?js|php|rb)$")
_WRAPPED_TOOLS = {"gradlew": "gradle", "mvnw": "mvn"}
"""Scripts of a project that wrap a program and take its arguments."""


@value_class
class ProgramCall:
    """Call of one program."""

    program: str
    """Name without directory: `pytest` for `python -m pytest`, but both words of `bun test`."""
    arguments: tuple[str, ...]
    """With the script itself if the program is or reads one (`./check.sh`, `python check.py`)."""
    module: bool = False
    """True: a Python module, started with `-m`."""
    below: str = "."
    """Directory of the call, relative to the workspace."""

    @property
    def path(self) -> str:
        """Path of the program, if a path names it; empty: it is found by its name."""
        first = self.arguments[0] if self.arguments else ""
        return first if "/" in first and posixpath.basename(first) == self.program else ""

    def locate(self, path: str) -> str:
        """Return a path or glob of the call, relative to the workspace."""
        return posixpath.normpath(posixpath.join(self.below, path))


def find_programs(argv: Sequence[str]) -> tuple[ProgramCall, ...]:
    """Return the programs that `argv` starts, in order."""
    line = shell_line(argv)
    if line is None:
        return tuple(_program_calls(argv))
    found: list[ProgramCall] = []
    below = "."
    for part in _split_line(line):
        # Later parts of the line run in the new directory.
        if part[0] == "cd" and len(part) > 1:
            below = posixpath.normpath(posixpath.join(below, part[1]))
            continue
        found += [
            replace(one, below=posixpath.normpath(posixpath.join(below, one.below)))
            for one in find_programs(part)
        ]
    return tuple(found)


def shell_line(argv: Sequence[str]) -> str | None:
    """Return the line that a shell receives with `-c`; None: there is none."""
    if not argv or posixpath.basename(argv[0]) not in SHELLS:
        return None
    at = next((at for at, word in enumerate(argv) if _LINE_FOLLOWS.fullmatch(word)), len(argv))
    return argv[at + 1] if at + 1 < len(argv) else None


def _program_calls(argv: Sequence[str]) -> Iterator[ProgramCall]:
    words = strip_wrappers(list(argv))
    if not words:
        return
    program = posixpath.basename(words[0])
    python = PYTHON.fullmatch(program) is not None
    # `coverage run -m pytest` starts pytest, as `python -m` does.
    if (python or program == "coverage") and "-m" in words[:-1]:
        at = words.index("-m") + 1
        if words[at] == "coverage" and "-m" in words[at + 1 : -1]:
            yield from _program_calls(words[at:])
            return
        if words[at] == "django":
            yield from _program_calls(["manage.py", *words[at + 1 :]])
            return
        yield ProgramCall(program=words[at], arguments=tuple(words[at + 1 :]), module=True)
    elif (python or program in _INTERPRETERS) and (launched := _launched_program(words[1:])):
        yield from _program_calls(launched)
    elif mode := next((word for word in words[1:] if word in _MODES.get(program, ())), ""):
        words.remove(mode)
        yield ProgramCall(program=f"{program} {mode}", arguments=tuple(words[1:]))
    else:
        tool = _WRAPPED_TOOLS.get(program, program)
        is_script = "/" in words[0] and tool == program
        yield ProgramCall(program=tool, arguments=tuple(words if is_script else words[1:]))


def _launched_program(words: Sequence[str]) -> Sequence[str]:
    """Return the words from a known program's path on; empty: the interpreter runs another."""
    at = next((at for at, word in enumerate(words) if not word.startswith("-")), len(words))
    script = _SCRIPT_ENDS.sub("", words[at]) if at < len(words) else ""
    return [script, *words[at + 1 :]] if posixpath.basename(script) in _LAUNCHED else []


def strip_wrappers(words: list[str]) -> list[str]:
    """Remove `A=b`, `env`, `timeout 10`, `uv run` … from the front."""
    while words:
        if words[0] in _KEYWORDS:
            words = words[1:]
            continue
        program = posixpath.basename(words[0])
        if program in _RUN_WRAPPERS and words[1:2] in (["run"], ["exec"]):
            words = _without_options(words[2:], _HAVE_VALUES)
        elif program in _WRAPPERS:
            words = _without_options(words[1:], _WRAPPERS[program])
        elif re.match(r"[A-Za-z_]\w*=", words[0]):
            words = words[1:]
        else:
            break
    return words


def _without_options(words: list[str], valued: Container[str]) -> list[str]:
    while words and (words[0].startswith("-") or re.fullmatch(r"[0-9.]+[smhd]?", words[0])):
        words = words[2 if words[0] in valued else 1 :]
    return words


def _split_line(line: str) -> Iterable[list[str]]:
    """Split a shell line at its operators."""
    # shlex, not `domain.shell_lexer`: redirections and unknown syntax must still yield programs.
    lexer = shlex.shlex(line, posix=True, punctuation_chars=True)
    lexer.whitespace_split = True
    parts: list[list[str]] = [[]]
    try:
        for token in lexer:
            if token and set(token) <= _OPERATORS:
                parts.append([])
            else:
                parts[-1].append(token)
    except ValueError:
        return []
    return [part for part in parts if part]
