"""Caches of package managers in the user's home, found as the tools find them."""

import os
from collections.abc import Mapping
from pathlib import Path

from mimir.domain.value_class import value_class


@value_class
class UserMachine:
    """Facts of the user's environment that decide where tools and caches are."""

    home: Path
    path: tuple[Path, ...] = ()
    """Directories of programs, in the user's order."""
    variables: tuple[tuple[str, str], ...] = ()
    """Variables that name directories."""

    def directory(self, variable: str, default: str) -> Path:
        """Return the directory that a variable names, or the tool's default below the home."""
        value = dict(self.variables).get(variable, "")
        return Path(value) if value.startswith("/") else self.home / default


@value_class
class SharedCache:
    """A directory of downloads or build results."""

    source: Path
    below_home: str
    """Path below the home of the sandbox, where the tool looks by default."""


# Variable, default below the home, and the parts that hold no secret; "": all of it.
_CACHES = (
    ("GOMODCACHE", "go/pkg/mod", ("",)),
    ("GOCACHE", ".cache/go-build", ("",)),
    ("CARGO_HOME", ".cargo", ("registry", "git")),
    ("npm_config_cache", ".npm", ("_cacache",)),
    ("npm_config_store_dir", ".local/share/pnpm/store", ("",)),
    ("YARN_CACHE_FOLDER", ".cache/yarn", ("",)),
    ("YARN_GLOBAL_FOLDER", ".yarn/berry", ("cache",)),
    ("PIP_CACHE_DIR", ".cache/pip", ("",)),
    ("UV_CACHE_DIR", ".cache/uv", ("",)),
    ("PRE_COMMIT_HOME", ".cache/pre-commit", ("",)),
    ("MAVEN_REPOSITORY", ".m2", ("repository", "wrapper")),
    ("GRADLE_USER_HOME", ".gradle", ("caches", "wrapper", "native", "jdks")),
    ("COMPOSER_CACHE_DIR", ".cache/composer", ("",)),
    ("BUNDLE_USER_CACHE", ".bundle/cache", ("",)),
    ("DENO_DIR", ".cache/deno", ("",)),
    ("PUB_CACHE", ".pub-cache", ("hosted", "git")),
    ("NUGET_PACKAGES", ".nuget/packages", ("",)),
)
# The cached results name the source files by path, so it must stay the user's.
_BY_PATH = ("GOMODCACHE", "CARGO_HOME", "PRE_COMMIT_HOME")
# These write beside the cache, so they look below the home of the sandbox.
VARIABLES = ("GOFLAGS", "GOPATH", "RUSTUP_HOME", "RUSTUP_TOOLCHAIN", "PYENV_ROOT", "PYENV_VERSION",
             "NVM_DIR", "VOLTA_HOME", "FNM_DIR", "SDKMAN_DIR", "JAVA_HOME", "GOROOT", "ASDF_DIR", "ASDF_DATA_DIR",
             "MISE_DATA_DIR", "UV_PYTHON_INSTALL_DIR", "POETRY_CACHE_DIR", "POETRY_VIRTUALENVS_PATH", "WORKON_HOME",
             *(variable for variable, _, _ in _CACHES))  # fmt: skip


def find_caches(user: UserMachine) -> list[SharedCache]:
    """Return the caches that exist."""
    found: list[SharedCache] = []
    for variable, default, parts in _CACHES:
        top = user.directory(variable, _default(user, variable, default))
        for part in parts:
            source = Path(os.path.realpath(top / part))
            if os.path.isdir(source):  # noqa: PTH112  Path.is_dir raises at a closed directory
                below = f"{default}/{part}".rstrip("/")
                found.append(SharedCache(source=source, below_home=below))
    return found


def cache_variables(user: UserMachine, caches: list[SharedCache]) -> Mapping[str, str]:
    """Return the variables with which tools find caches at the user's path."""
    shared = {cache.source for cache in caches}
    found: dict[str, str] = {}
    for variable, default, parts in _CACHES:
        top = user.directory(variable, _default(user, variable, default))
        # A part that is a link elsewhere is shared at another path than the tool would look at.
        if variable in _BY_PATH and any(top / part in shared for part in parts):
            found[variable] = str(top)
    return found


def _default(user: UserMachine, variable: str, default: str) -> str:
    # GOPATH moves the module cache.
    gopath = dict(user.variables).get("GOPATH", "").split(":")[0]
    return f"{gopath}/pkg/mod" if variable == "GOMODCACHE" and gopath else default
