"""Was the program that a command names not on the machine? Pure: read from how it ended and what it said.

A program that belongs to the project (`./run.sh`, `python tool.py`) is not missing from the machine when it is not
there: whoever works on the project can write it.
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
    """Return the program or module that is not on the machine; None: the command ran, or ended for another reason.

    Args:
        argv: The command, whose program was started.
        exit_code: None: it was killed.
        output: What it said; both ends are enough.
    """
    if exit_code == NOT_FOUND:
        return _named(_SAID_BY_SHELL, output) or _named(_SAID_BY_WRAPPER, output)
    if exit_code == 1:
        name = _named(_SAID_BY_PYTHON, output)
        return name if name is not None and _starts_module(argv, name) else None
    return None


def is_of_the_machine(program: str, workspace: str = "/workspace") -> bool:
    """Say whether a program that was not found should have been installed, rather than written."""
    return "/" not in program or (
        program.startswith("/") and not program.startswith(f"{workspace}/")
    )


def _named(pattern: re.Pattern[str], output: str) -> str | None:
    found: str | None = None
    for match in pattern.finditer(output):
        found = match["name"]
    return found


def _starts_module(argv: Sequence[str], name: str) -> bool:
    """Say whether the command itself asks for this module, directly or in a shell's text."""
    for at, word in enumerate(argv[:-1]):
        if word == "-m" and argv[at + 1].split(".")[0] == name.split(".")[0]:
            return any(_PYTHON.match(before) for before in argv[:at])
    shell = argv[0].rpartition("/")[2] in _SHELLS
    return shell and re.search(rf"-m\s+{re.escape(name)}\b", " ".join(argv)) is not None
