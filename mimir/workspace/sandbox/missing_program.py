"""Detection of commands whose program is missing here, from exit code and output.

A program of the project (`./run.sh`, `python tool.py`) is not missing: a worker can write it.
"""

import re
from collections.abc import Sequence

NOT_FOUND = 127

_SHELLS = frozenset({"sh", "bash", "dash", "zsh", "ksh", "ash"})
_PYTHON = re.compile(r"(?:.*/)?python[0-9.]*$")
_SAID_BY_SHELL = re.compile(
    r"^(?:.*/)?(?:sh|bash|dash|zsh|ksh|ash): (?:line )?\d+: (?P<name>[^\s:/]+): (?:command )?not found$",
    re.MULTILINE,
)
_SAID_BY_WRAPPER = re.compile(
    r"^(?:.*/)?(?:env|timeout|nice|nohup|xargs|time|stdbuf|setsid): .*[‘'](?P<name>[^\s/’']+)[’']: No such file or directory$",
    re.MULTILINE,
)
_SAID_BY_PYTHON = re.compile(
    r"^(?:.*/)?python[0-9.]*: (?:Error while finding module specification for .*)?"
    r"No module named '?(?P<name>[\w.]+)'?\)?$",
    re.MULTILINE,
)


def missing_name(argv: Sequence[str], exit_code: int | None, output: str) -> str | None:
    """Return the program or module that is not on this machine; None: none is missing."""
    if exit_code == NOT_FOUND:
        return _last_match(_SAID_BY_SHELL, output) or _last_match(_SAID_BY_WRAPPER, output)
    if exit_code == 1:
        name = _last_match(_SAID_BY_PYTHON, output)
        return name if name is not None and _starts_module(argv, name) else None
    return None


def is_of_the_machine(program: str) -> bool:
    """Return whether a missing program must be installed, rather than written."""
    return "/" not in program or (program.startswith("/") and not program.startswith("/workspace/"))


def _last_match(pattern: re.Pattern[str], output: str) -> str | None:
    found: str | None = None
    for match in pattern.finditer(output):
        found = match["name"]
    return found


def _starts_module(argv: Sequence[str], name: str) -> bool:
    """Return whether the command itself starts this module, directly or in shell text."""
    for at, word in enumerate(argv[:-1]):
        if word == "-m" and argv[at + 1].split(".")[0] == name.split(".")[0]:
            return any(_PYTHON.match(before) for before in argv[:at])
    shell = argv[0].rpartition("/")[2] in _SHELLS
    return shell and re.search(rf"-m\s+{re.escape(name)}\b", " ".join(argv)) is not None
