"""What a command needs of this machine: interpreters, environments, the system's directories.

Looks at the file system, starts nothing. What is found is bound read-only; homes are never bound, only the parts of
them that an interpreter consists of.
"""

import os
import sys
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from functools import cache
from pathlib import Path

SYSTEM = ("/usr",)
"""Bound whole."""
SYSTEM_ALIASES = ("/bin", "/sbin", "/lib", "/lib32", "/lib64", "/libx32")
"""Links into /usr on most systems, directories on others."""
SYSTEM_PARTS = (
    "/nix/store",
    "/etc/alternatives",
    "/etc/ssl",
    "/etc/pki",
    "/etc/ca-certificates",
    "/etc/ca-certificates.conf",
    "/etc/ld.so.cache",
    "/etc/ld.so.conf",
    "/etc/ld.so.conf.d",
    "/etc/nsswitch.conf",
    "/etc/localtime",
    "/etc/mime.types",
    "/etc/services",
    "/etc/protocols",
    "/etc/fonts",
    "/etc/os-release",
    "/etc/debian_version",
)
"""Bound where they exist; nothing here is secret or a person's."""
_SYSTEM_PATTERNS = ("java-*", "python3*")
"""In /etc: what the system's own programs cannot start without."""
SYSTEM_PATH = (
    "/usr/local/sbin",
    "/usr/local/bin",
    "/usr/sbin",
    "/usr/bin",
    "/sbin",
    "/bin",
)
ENVIRONMENTS = (".venv", "venv")
"""Where a project keeps its Python environment, the first that exists."""
DEPENDENCIES = (*ENVIRONMENTS, "node_modules")

_PARTS_OF_PYTHON = ("bin", "lib", "lib64", "libexec", "include")
_PARTS_OF_ENVIRONMENT = (*_PARTS_OF_PYTHON, "share", "pyvenv.cfg")


@dataclass(frozen=True, slots=True, kw_only=True)
class BindMount:
    """A directory or file of this machine, and where the sandbox has it."""

    source: Path
    target: str


def interpreter() -> Path:
    """Return the interpreter that runs mimir, without the links of its environment."""
    return Path(os.path.realpath(sys.executable))


@cache
def engine_binds() -> tuple[BindMount, ...]:
    """Return the interpreter and the environment that run mimir."""
    binds = [*python_binds(Path(sys.base_prefix)), *python_binds(interpreter().parent.parent)]
    if sys.prefix != sys.base_prefix:
        binds += [
            bind
            for name in _PARTS_OF_ENVIRONMENT
            for bind in bind_with_links(Path(sys.prefix) / name)
        ]
    return tuple(binds)


def engine_path() -> list[str]:
    """Return where the programs of mimir's environment are."""
    return list(dict.fromkeys((f"{sys.prefix}/bin", f"{sys.base_prefix}/bin")))


def environment_binds(environment: Path) -> list[BindMount]:
    """Return what a Python environment rests on: the interpreter that `pyvenv.cfg` calls its home."""
    homes = {_home(environment), _target(environment / "bin/python")}
    return [bind for home in homes if home is not None for bind in python_binds(home.parent)]


def python_binds(prefix: Path) -> list[BindMount]:
    """Return the parts of a Python installation, under the path given and under the real one.

    Only what is part of it: a prefix such as `~/.local` holds other things too. What is no installation gives nothing.
    """
    binds: list[BindMount] = []
    for top in dict.fromkeys((prefix, Path(os.path.realpath(prefix)))):
        if not is_system(top) and _is_installation(top):
            for name in _PARTS_OF_PYTHON:
                binds += bind_with_links(top / name)
    return binds


def _is_installation(prefix: Path) -> bool:
    """Say whether a Python is installed there that this user can read."""
    try:
        return any(prefix.glob("lib*/python3*/os.py"))
    except OSError:
        return False


def bind_with_links(path: Path) -> list[BindMount]:
    """Return a path bound where it is, and where its links lead; nothing if the system has it anyway."""
    real = Path(os.path.realpath(path))
    if not os.path.exists(real):  # noqa: PTH110  Path.exists raises where a directory above is closed
        return []
    return [
        BindMount(source=real, target=str(place))
        for place in dict.fromkeys((path, real))
        if not is_system(place)
    ]


@cache
def system_parts() -> tuple[str, ...]:
    """Return the parts of the system outside /usr that exist here."""
    found = [part for part in SYSTEM_PARTS if Path(part).exists()]
    more = sorted(str(p) for pattern in _SYSTEM_PATTERNS for p in Path("/etc").glob(pattern))
    return (*found, *more)


def is_system(path: Path) -> bool:
    """Say whether a path lies in a directory that is bound whole."""
    return path.is_relative_to("/usr") or any(
        path.is_relative_to(alias) and Path(alias).is_symlink() for alias in SYSTEM_ALIASES
    )


def dependencies(project: Path, share: Sequence[str]) -> list[tuple[str, Path]]:
    """Return the project's dependency folders: where they are in it, and the real directory."""
    found: list[tuple[str, Path]] = []
    for name in dict.fromkeys((*DEPENDENCIES, *share)):
        real = Path(os.path.realpath(project / name))
        if os.path.isdir(real):  # noqa: PTH112  as above
            found.append((name.strip("/"), real))
    return found


def search_path(first: Iterable[str], named: Iterable[Path] = ()) -> str:
    """Join the places where programs are looked for.

    Last come those below /usr/local that a toolchain has to itself: Go's own instructions put it there.

    Args:
        first: These before all others; mimir's environment follows.
        named: Folders that the person has named for commands to read: what they have in `bin` comes before the system's.
    """
    of_named = (str(p / "bin") for p in named if os.path.isdir(p / "bin"))  # noqa: PTH112  as above
    return ":".join(
        dict.fromkeys((*first, *engine_path(), *of_named, *SYSTEM_PATH, *_toolchains()))
    )


@cache
def _toolchains() -> tuple[str, ...]:
    return tuple(sorted(str(path) for path in Path("/usr/local").glob("*/bin")))


def _home(environment: Path) -> Path | None:
    try:
        text = (environment / "pyvenv.cfg").read_text(encoding="utf-8", errors="replace")
    except OSError:
        return None
    for line in text.splitlines():
        key, _, value = line.partition("=")
        if key.strip().lower() == "home" and value.strip().startswith("/"):
            return Path(value.strip())
    return None


def _target(python: Path) -> Path | None:
    """Return the directory of the interpreter that an environment's link leads to."""
    return Path(os.path.realpath(python)).parent if python.is_symlink() else None
