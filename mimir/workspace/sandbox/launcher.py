"""Runs inside the sandbox, before the command: sets limits, gives rights up, says that it got so far, becomes the command.

It is given to a bare interpreter (`-I -S`), so it imports nothing but the standard library, and as little of that as it
can. What it says goes to a pipe of its own, closed by the `exec`: `S` it gets to the command; then, only if
there is no command to become, `M` missing or `X` not to be executed. So the engine can tell a sandbox that broke from a
command that failed, and a program that is not there from one that ended with 127.
"""

import marshal
import os
import resource
import sys

TYPE_CHECKING = False
if TYPE_CHECKING:
    # `typing` would cost more than the rest of this file.
    from typing import TypedDict

    class Specification(TypedDict):
        """What to become."""

        argv: tuple[str, ...]
        environment: dict[str, str]
        limits: dict[str, int]
        """Names as in `resource`, without `RLIMIT_`."""
        user: int | None
        """User and group id to take on. None: as it is."""
        directory: str
        """Where to start."""


NOT_EXECUTABLE = 126
NOT_FOUND = 127
_NO_FORMAT = 8
"""ENOEXEC: a script without a first line that names a program."""


def main(specification: int, status: int) -> None:
    """Become the command that the file descriptor `specification` describes."""
    with os.fdopen(specification, "rb") as file:
        wanted: Specification = marshal.load(file)
    os.set_inheritable(status, False)
    _limit(wanted["limits"])
    user = wanted["user"]
    if user is not None:
        os.setgroups([])
        os.setresgid(user, user, user)
        os.setresuid(user, user, user)
    # Not before: root without its rights may not enter the directory of another user.
    os.chdir(wanted["directory"])
    os.umask(0o022)
    # An interpreter ignores the first two for itself, whoever started mimir in the background or by `nohup` has it ignore the others, and a
    # program would inherit that: it shall not matter how mimir was started. The module `signal` would cost 5 ms.
    signal = __import__("_signal")
    for name in ("SIGPIPE", "SIGXFSZ", "SIGINT", "SIGQUIT", "SIGHUP"):
        signal.signal(getattr(signal, name), signal.SIG_DFL)
    os.write(status, b"S")
    problem, is_there = _execute(wanted["argv"], wanted["environment"])
    os.write(2, f"{problem}\n".encode("utf-8", "surrogateescape"))
    os.write(status, b"X" if is_there else b"M")
    os._exit(NOT_EXECUTABLE if is_there else NOT_FOUND)


def _limit(limits: "dict[str, int]") -> None:
    for name, value in limits.items():
        number: int = getattr(resource, f"RLIMIT_{name}")
        _, most = resource.getrlimit(number)
        allowed = value if most == resource.RLIM_INFINITY else min(value, most)
        resource.setrlimit(number, (allowed, allowed))


def _execute(argv: "tuple[str, ...]", environment: "dict[str, str]") -> "tuple[str, bool]":
    """Try every place of the search path; comes back only if none will do, with why and whether there was one."""
    name = argv[0]
    places = [""] if "/" in name else environment["PATH"].split(":")
    refused = ""
    for place in places:
        path = f"{place}/{name}" if place else name
        try:
            os.execve(path, argv, environment)
        except PermissionError:
            refused = refused or path
        except (FileNotFoundError, NotADirectoryError):
            if os.path.lexists(path):
                return f"{path}: the program that its first line names is not found", False
        except OSError as error:
            if error.errno != _NO_FORMAT:
                return f"{path}: {error.strerror}", True
            os.execve("/bin/sh", ("sh", path, *argv[1:]), environment)
    return (f"{refused}: may not be executed", True) if refused else (f"{name}: not found", False)


if __name__ == "__main__":
    main(int(sys.argv[1]), int(sys.argv[2]))
