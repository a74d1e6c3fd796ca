"""Toolchains of the user: the installations that the PATH of the user leads to.

A directory of programs is shown with its installation (`X` of `X/bin`). Where the installation is the home itself or a folder of many
things, only the programs are shown, and the installations that links among them lead to.
"""

import os
from collections.abc import Iterator
from pathlib import Path

from mimir.workspace.sandbox import toolchain
from mimir.workspace.sandbox.secret_names import may_be_secret
from mimir.workspace.sandbox.sharing.caches import UserMachine
from mimir.workspace.sandbox.toolchain import BindMount

# Launchers look here for the installations: variable, default below the home.
_MANAGERS = {
    "RUSTUP_HOME": ".rustup",
    "PYENV_ROOT": ".pyenv",
    "VOLTA_HOME": ".volta",
    "FNM_DIR": ".local/share/fnm",
    "ASDF_DATA_DIR": ".asdf",
    "MISE_DATA_DIR": ".local/share/mise",
    "UV_PYTHON_INSTALL_DIR": ".local/share/uv/python",
}
_PROGRAM_FOLDERS = ("bin", "sbin", "shims")
# Installations of one user that hold other data too.
_MIXED = (".local", ".cargo", ".config", "")
_MAX_LINKS = 300


def find_toolchains(user: UserMachine) -> list[BindMount]:
    """Return the directories to bind read-only for the programs of the user's PATH."""
    directories = [path for path in user.path if _is_own(path)]
    places = [place for path in directories for place in _installation(path, user)]
    for variable, default in _MANAGERS.items():
        places += _visible(user.directory(variable, default))
    return [bind for place in dict.fromkeys(places) for bind in toolchain.bind_with_links(place)]


def program_directories(user: UserMachine) -> list[str]:
    """Return the directories of the user's PATH that the system does not have."""
    return [str(path) for path in user.path if _is_own(path)]


def manager_variables(user: UserMachine) -> dict[str, str]:
    """Return the variables with which launchers find their installations."""
    known = dict(user.variables)
    found = {
        name: str(place)
        for name, default in _MANAGERS.items()
        if os.path.isdir(place := user.directory(name, default))  # noqa: PTH112  closed directories
    }
    further = ("JAVA_HOME", "GOROOT", "RUSTUP_TOOLCHAIN", "PYENV_VERSION", "GOFLAGS")
    return {**found, **{name: known[name] for name in further if name in known}}


def _is_own(path: Path) -> bool:
    is_directory = path.is_absolute() and os.path.isdir(path)  # noqa: PTH112  closed directories
    return is_directory and not toolchain.is_system(path) and str(path) not in toolchain.SYSTEM_PATH


def _installation(directory: Path, user: UserMachine) -> Iterator[Path]:
    for path in dict.fromkeys((directory, Path(os.path.realpath(directory)))):
        top = path.parent
        if path.name not in _PROGRAM_FOLDERS or _is_mixed(top, user):
            yield path
            yield from _link_targets(path, user)
        else:
            yield from _visible(top)


def _link_targets(directory: Path, user: UserMachine) -> Iterator[Path]:
    with os.scandir(directory) as entries:
        links = [entry.path for entry in entries if entry.is_symlink()]
    for link in links[:_MAX_LINKS]:
        real = Path(os.path.realpath(link))
        if real.is_relative_to(directory) or toolchain.is_system(real):
            continue
        top = real.parent.parent
        is_installation = real.parent.name in _PROGRAM_FOLDERS and not _is_mixed(top, user)
        yield from _visible(top) if is_installation else (real,)


def _is_mixed(top: Path, user: UserMachine) -> bool:
    homes = {user.home, Path(os.path.realpath(user.home))}
    return any(
        home.is_relative_to(top) or top in {home / name for name in _MIXED} for home in homes
    )


def _visible(top: Path) -> list[Path]:
    """Return the parts of an installation, without files that may hold secrets."""
    try:
        parts = [top / name for name in sorted(os.listdir(top))]  # noqa: PTH208  closed directories
    except OSError:
        return []
    return [part for part in parts if not may_be_secret(part.name)]
