"""Parts of this machine for commands: interpreters, environments, system directories.

They are bound read-only. Homes are never bound, only the parts of them that are an interpreter.
"""

import os
import stat
import sys
from collections.abc import Iterable, Iterator, Sequence
from functools import cache
from pathlib import Path

from mimir.domain.value_class import value_class
from mimir.workspace.sandbox.secret_names import may_be_secret

# Bound as a whole.
SYSTEM = ("/usr",)
# Links into /usr on most systems, directories on others.
SYSTEM_ALIASES = ("/bin", "/sbin", "/lib", "/lib32", "/lib64", "/libx32")
# Bound if they exist; without secrets and user data.
SYSTEM_PARTS = (
    "/nix/store",
    "/etc/alternatives",
    # Not their folders, which hold private keys too.
    "/etc/ssl/certs",
    "/etc/ssl/openssl.cnf",
    "/etc/pki/tls/certs",
    "/etc/pki/tls/openssl.cnf",
    "/etc/pki/ca-trust",
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
# In /etc: needed by programs of the system.
_SYSTEM_PATTERNS = ("java-*", "python3*")
# Packages keep the settings of their programs outside of /usr, and link them from here.
_PACKAGE_FOLDERS = ("/usr/lib", "/usr/lib64", "/usr/share")
_LINKED_FOLDERS = ("/etc", "/var/lib")
_SMALL_FILE_BYTES = 256 * 1024
_MOST_SETTINGS = 2000
SYSTEM_PATH = ("/usr/local/sbin", "/usr/local/bin", "/usr/sbin", "/usr/bin", "/sbin", "/bin")
# Python environments of a project, the first that exists.
ENVIRONMENTS = (".venv", "venv")

_PARTS_OF_PYTHON = ("bin", "lib", "lib64", "libexec", "include")
_PARTS_OF_ENVIRONMENT = (*_PARTS_OF_PYTHON, "share", "pyvenv.cfg")


@value_class
class BindMount:
    """A path of this machine, and its path inside."""

    source: Path
    target: str
    is_layer: bool = False
    """True: commands may write to a layer above it, which ends with the command."""


def interpreter() -> Path:
    """Return the interpreter of mimir, without the links of its environment."""
    return Path(os.path.realpath(sys.executable))


@cache
def engine_binds() -> tuple[BindMount, ...]:
    """Return the interpreter and the environment of mimir."""
    binds = [*python_binds(Path(sys.base_prefix)), *python_binds(interpreter().parent.parent)]
    if sys.prefix != sys.base_prefix:
        binds += [
            bind
            for name in _PARTS_OF_ENVIRONMENT
            for bind in bind_with_links(Path(sys.prefix) / name)
        ]
    return tuple(binds)


def engine_path() -> list[str]:
    """Return the program directories of mimir's environment."""
    return list(dict.fromkeys((f"{sys.prefix}/bin", f"{sys.base_prefix}/bin")))


def environment_binds(environment: Path) -> list[BindMount]:
    """Return the interpreter that a Python environment needs, by `pyvenv.cfg` and its link."""
    python = environment / "bin/python"
    linked = Path(os.path.realpath(python)).parent if python.is_symlink() else None
    homes = {_home(environment), linked}
    return [bind for home in homes if home is not None for bind in python_binds(home.parent)]


def python_binds(prefix: Path) -> list[BindMount]:
    """Return the parts of a Python installation, at the given path and at the real one."""
    # Only its parts: a prefix such as `~/.local` has other files too.
    binds: list[BindMount] = []
    for top in dict.fromkeys((prefix, Path(os.path.realpath(prefix)))):
        if not is_system(top) and _is_installation(top):
            for name in _PARTS_OF_PYTHON:
                binds += bind_with_links(top / name)
    return binds


def _is_installation(prefix: Path) -> bool:
    try:
        return any(prefix.glob("lib*/python3*/os.py"))
    except OSError:
        return False


def bind_with_links(path: Path) -> list[BindMount]:
    """Return a path bound where it is and where its links lead, unless the system has it."""
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
    """Return the parts of the system outside of /usr that exist."""
    found = [part for part in SYSTEM_PARTS if Path(part).exists()]
    more = sorted(str(p) for pattern in _SYSTEM_PATTERNS for p in Path("/etc").glob(pattern))
    known = [*found, *more]
    linked = (one for top in _PACKAGE_FOLDERS for one in find_linked_settings(Path(top)))
    return (*known, *sorted({one for one in linked if not _is_below(one, known)}))


@cache
def read_small_file(part: str) -> bytes | None:
    """Return the content of a part of the system. None: a folder, a large or a closed file."""
    try:
        path = Path(part)
        if not path.is_file() or path.stat().st_size > _SMALL_FILE_BYTES:
            return None
        return path.read_bytes()
    except OSError:
        return None


def find_linked_settings(top: Path, places: Sequence[str] = _LINKED_FOLDERS) -> Iterator[str]:
    """Yield targets of links below `top` in `places`, if every user may read them.

    Debian's Maven, for example, reads `/usr/share/maven/conf`, a link to `/etc/maven`.
    """
    for link in _list_links(top):
        target = Path(os.path.realpath(link))
        # A file of the folder itself, such as /etc/environment, belongs to no package.
        in_package = str(target.parent) in places and target.is_dir()
        in_folder = any(target.parent.parent.is_relative_to(place) for place in places)
        if (in_package or in_folder) and _is_open(target):
            yield str(target)


def _list_links(top: Path) -> Iterator[str]:
    """Yield the links in the folders of `top`."""
    for folder in _entries(str(top)):
        if folder.is_dir(follow_symlinks=False):
            yield from (one.path for one in _entries(folder.path) if one.is_symlink())


def _entries(folder: str) -> list[os.DirEntry[str]]:
    try:
        with os.scandir(folder) as found:
            return list(found)
    except OSError:  # it is missing, or closed to this user
        return []


def _is_open(path: Path) -> bool:
    """Return whether every user may read a path and its contents, and no name is secret."""
    try:
        found = [path, *(path.rglob("*") if path.is_dir() else ())]
        return len(found) <= _MOST_SETTINGS and all(
            not may_be_secret(one.name) and (one.is_symlink() or one.stat().st_mode & stat.S_IROTH)
            for one in found
        )
    except OSError:
        return False


def _is_below(path: str, parts: Iterable[str]) -> bool:
    return any(Path(path).is_relative_to(part) for part in parts)


def is_system(path: Path | str) -> bool:
    """Return whether a path is in a directory that is bound as a whole."""
    # Compared as text: each command asks this for dozens of folders.
    return f"{path}/".startswith(_whole_folders())


@cache
def _whole_folders() -> tuple[str, ...]:
    links = (alias for alias in SYSTEM_ALIASES if Path(alias).is_symlink())
    return tuple(f"{folder}/" for folder in (*SYSTEM, *links))


def search_path(first: Iterable[str], named: Iterable[Path] = (), own: Iterable[str] = ()) -> str:
    """Join `first`, mimir's program directories, those of `named`, of the user and the system."""
    of_named = (str(p / "bin") for p in named if os.path.isdir(p / "bin"))  # noqa: PTH112  as above
    return ":".join(
        dict.fromkeys((*first, *engine_path(), *of_named, *own, *SYSTEM_PATH, *_toolchains()))
    )


@cache
def _toolchains() -> tuple[str, ...]:
    # Instructions of toolchains such as Go install there.
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
