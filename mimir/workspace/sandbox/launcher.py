"""Start of a command inside the sandbox: set limits, drop rights, report, exec.

It runs in a bare interpreter (`-I -S`) and imports few modules of the standard library. Its report
is `S` before the exec; after a failed exec `M` (missing) or `X` (not executable). So a broken
sandbox differs from a failed command, and a missing program from one that ends with 127.
"""

import marshal
import os
import resource
import sys

TYPE_CHECKING = False
if TYPE_CHECKING:
    # The import of `typing` takes longer than the rest of this file.
    from typing import TypedDict

    class Specification(TypedDict):
        """The command."""

        argv: tuple[str, ...]
        environment: dict[str, str]
        limits: dict[str, int]
        """Names of `resource`, without `RLIMIT_`."""
        user: int | None
        """User and group id to take on. None: unchanged."""
        directory: str


NOT_EXECUTABLE = 126
NOT_FOUND = 127
# ENOEXEC: a script whose first line names no program.
_NO_FORMAT = 8


def main(specification: int, status: int) -> None:
    """Become the command that the descriptor `specification` describes."""
    with os.fdopen(specification, "rb") as file:
        wanted: Specification = marshal.load(file)
    os.set_inheritable(status, False)
    _limit(wanted["limits"])
    user = wanted["user"]
    if user is not None:
        os.setgroups([])
        os.setresgid(user, user, user)
        os.setresuid(user, user, user)
    # After the change of user: root without its rights may not enter the directory of another user.
    os.chdir(wanted["directory"])
    os.umask(0o022)
    # The interpreter ignores the first two signals, a mimir in the background or under `nohup`
    # others. A program would inherit that. The module `signal` would cost 5 ms.
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
    """Try every directory of the search path; on failure return why and whether it exists."""
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
