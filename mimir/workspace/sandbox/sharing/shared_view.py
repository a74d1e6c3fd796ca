"""All that commands share with project and user; looked up once for each project."""

import glob
import os
from collections.abc import Mapping, Sequence
from dataclasses import field
from pathlib import Path

from mimir.domain.value_class import value_class
from mimir.errors import ConfigurationError, SandboxError
from mimir.workspace.sandbox.secret_names import may_be_secret
from mimir.workspace.sandbox.sharing.caches import (
    SharedCache,
    UserMachine,
    cache_variables,
    find_caches,
)
from mimir.workspace.sandbox.sharing.generated_files import find_generated_files, find_ignored
from mimir.workspace.sandbox.sharing.outside_environment import find_outside_environment
from mimir.workspace.sandbox.sharing.project_folders import (
    SharedPath,
    find_hoisted_folders,
    find_submodules,
    find_tool_folders,
)
from mimir.workspace.sandbox.sharing.user_toolchains import (
    find_toolchains,
    manager_variables,
    program_directories,
)
from mimir.workspace.sandbox.toolchain import ENVIRONMENTS, BindMount

_MAX_NAMES = 12


@value_class
class SharedView:
    """Files, folders, caches and toolchains for the commands of one project."""

    folders: tuple[SharedPath, ...] = ()
    """Directories; commands write to a layer that ends with them."""
    files: tuple[SharedPath, ...] = ()
    """Copied into workspaces that lack them."""
    generated: tuple[SharedPath, ...] = ()
    """Those of `files` that no setting names."""
    ignored: tuple[str, ...] = ()
    """All paths that git ignores in the project."""
    caches: tuple[SharedCache, ...] = ()
    toolchains: tuple[BindMount, ...] = ()
    """Shown read-only."""
    path: tuple[str, ...] = ()
    """Program directories of the user."""
    variables: Mapping[str, str] = field(default_factory=dict[str, str])

    def describe(self) -> tuple[str, ...]:
        """Return the shared paths, as lines for the user."""
        groups = (
            ("folders", [path.name for path in self.folders]),
            ("generated files", [path.name for path in self.generated]),
            ("caches", [f"~/{cache.below_home}" for cache in self.caches]),
        )
        return tuple(f"{title}: {_format_names(names)}" for title, names in groups if names)

    def describe_generated(self) -> tuple[str, ...]:
        """Return a notice with the generated files that commands see; empty: there are none."""
        names = _format_names([path.name for path in self.generated])
        notice = f"Commands see generated files that git ignores: {names}."
        return (notice,) if names else ()

    def require_present(self) -> None:
        """Raise SandboxError if a shared path vanished."""
        for path in (*self.folders, *self.files):
            if not os.path.exists(path.source):  # noqa: PTH110  Path.exists raises
                raise SandboxError(
                    f"The shared path {path.name!r} vanished: it existed when the run began.",
                    next_step="Restore it (such as by installing the dependencies), then: mimir resume",
                )


def build_shared_view(
    project: Path | None,
    share: Sequence[str],
    read_only: Sequence[Path],
    user: UserMachine | None,
) -> SharedView:
    """Look for all that is shared. Blocking.

    Raises:
        ConfigurationError: An entry of `share` or `read_only` matches nothing.
    """
    require_directories(read_only)
    machine = _machine_view(user)
    if project is None:
        return machine
    project = Path(os.path.realpath(project))
    named = find_named_paths(project, share)
    folders = [
        *named,
        *find_tool_folders(project),
        *find_submodules(project),
        *find_hoisted_folders(project),
    ]
    shared = {path.name: path for path in reversed(folders)}
    has_own = not shared.keys().isdisjoint(ENVIRONMENTS)
    if user and not has_own and (outside := find_outside_environment(project, user)):
        # There commands look first, and Poetry and Pipenv too.
        shared[ENVIRONMENTS[0]] = SharedPath(source=outside, name=ENVIRONMENTS[0])
    ignored = find_ignored(project)
    generated = find_generated_files(project, ignored)
    directories = {name: path for name, path in shared.items() if path.source.is_dir()}
    files = {name: path for name, path in shared.items() if name not in directories}
    return SharedView(
        folders=tuple(path for _, path in sorted(directories.items())),
        files=(*files.values(), *(one for one in generated if one.name not in files)),
        generated=tuple(generated),
        ignored=tuple(ignored),
        caches=machine.caches,
        toolchains=machine.toolchains,
        path=machine.path,
        variables=machine.variables,
    )


def _format_names(names: Sequence[str]) -> str:
    more = f" and {len(names) - _MAX_NAMES} more" if len(names) > _MAX_NAMES else ""
    return ", ".join(names[:_MAX_NAMES]) + more


def _machine_view(user: UserMachine | None) -> SharedView:
    if user is None:
        return SharedView()
    caches = find_caches(user)
    return SharedView(
        caches=tuple(caches),
        toolchains=tuple(find_toolchains(user)),
        path=tuple(program_directories(user)),
        variables={**manager_variables(user), **cache_variables(user, caches)},
    )


def find_named_paths(project: Path, share: Sequence[str]) -> list[SharedPath]:
    """Return the paths that `share` names, in its order.

    Raises:
        ConfigurationError: An entry matches nothing.
    """
    return [path for entry in share for path in _match(project, entry)]


def require_directories(paths: Sequence[Path]) -> None:
    """Raise ConfigurationError if a path of `sandbox.read_only` does not exist."""
    for path in paths:
        if not os.path.exists(path):  # noqa: PTH110  Path.exists raises
            raise ConfigurationError(
                f"sandbox.read_only names {str(path)!r}, which does not exist.",
                next_step="Correct or remove the entry in your own settings.",
            )


def _match(project: Path, entry: str) -> list[SharedPath]:
    has_glob = glob.has_magic(entry)
    whole = os.path.normpath(project / entry)
    if has_glob:
        top, pattern = (Path("/"), entry.lstrip("/")) if entry.startswith("/") else (project, entry)
        # A glob must not share a secret that its author did not think of.
        found = [str(path) for path in sorted(top.glob(pattern)) if not may_be_secret(path.name)]
    else:
        found = [whole] if os.path.exists(whole) else []  # noqa: PTH110  Path.exists raises
    if not found:
        raise ConfigurationError(
            f"sandbox.share names {entry!r}, and nothing in {project} matches it.",
            next_step="Correct or remove the entry in your own settings.",
        )
    return [_share_path(project, os.path.normpath(path)) for path in found]


def _share_path(project: Path, path: str) -> SharedPath:
    inside = Path(path).is_relative_to(project)
    name = str(Path(path).relative_to(project)) if inside else path
    return SharedPath(source=Path(os.path.realpath(path)), name=name)
