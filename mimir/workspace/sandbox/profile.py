"""Profile of an agent's program in the sandbox: its access besides its workspace.

A profile opens only the paths that it names. Paths of the home are shown below the private home. Their changes are thrown away, unless
they are named as writable.
"""

import os
from collections.abc import Iterator
from pathlib import Path, PurePosixPath

from mimir.domain.value_class import value_class

PRIVATE_HOME = "/tmp"
RESOLVER = "/etc/resolv.conf"


@value_class
class ProgramProfile:
    """Access of a program that commands do not have."""

    user_home: Path
    network: bool = False
    home: tuple[Path, ...] = ()
    """Files and directories of the user's home; changes are thrown away."""
    home_writable: tuple[Path, ...] = ()
    """Files and directories that the program may change."""
    programs: tuple[Path, ...] = ()
    """Directories with its own files, shown read-only at their places."""
    stdin: bytes = b""
    grace_seconds: float = 10.0
    """From SIGTERM, at the time limit, to SIGKILL."""
    output_bytes: int = 10_000_000
    """With more standard output it is ended."""


def profile_options(profile: ProgramProfile, files: list[bytes], *, has_layers: bool) -> list[str]:
    """Return the options of bubblewrap; the contents of single files are added to `files`."""
    options: list[str] = []
    if profile.network:
        # Names of hosts are resolved by the servers of this machine.
        options += ["--ro-bind-try", RESOLVER, RESOLVER]
    for place in profile.programs:
        options += [*_make_directories(str(place)), "--ro-bind", str(place), str(place)]
    for path in _find_existing(profile.home):
        target = _map_home(path, profile.user_home)
        options += _make_directories(target)
        if not path.is_dir():
            # A copy: programs write to such files, and the user's own must stay as it is.
            files.append(path.read_bytes())
            options += ["--perms", "0666", "--file", f"{{{len(files) - 1}}}", target]
        # The upper layer is in memory and ends with the program.
        elif has_layers:
            options += ["--overlay-src", str(path), "--tmp-overlay", target]
        else:
            options += ["--ro-bind", str(path), target]
    for path in _find_existing(profile.home_writable):
        target = _map_home(path, profile.user_home)
        options += [*_make_directories(target), "--bind", str(path), target]
    return options


def _find_existing(paths: tuple[Path, ...]) -> Iterator[Path]:
    # Shallow ones first: a later mount would hide a deeper one.
    for path in sorted(dict.fromkeys(paths), key=lambda path: len(path.parts)):
        if os.path.exists(path):  # noqa: PTH110  Path.exists raises where a directory above is closed
            yield path


def _map_home(path: Path, home: Path) -> str:
    if path.is_relative_to(home):
        return str(PurePosixPath(PRIVATE_HOME) / path.relative_to(home))
    return str(path)


def _make_directories(target: str) -> list[str]:
    """Create the directories above a path; the program may write to those of its home."""
    options: list[str] = []
    for above in [*reversed(PurePosixPath(target).parents)][1:]:
        if str(above) == PRIVATE_HOME or above.is_relative_to("/usr"):
            continue
        mode = "0777" if above.is_relative_to(PRIVATE_HOME) else "0755"
        options += ["--perms", mode, "--dir", str(above)]
    return options
