"""Mounts of the sandbox, as options of bubblewrap; it starts nothing.

Shallow mounts come before deep ones, `/tmp` before everything that may be in it. Paths in the
project appear in the workspace. The finished root is read-only.
"""

import os
import sys
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import field, replace
from itertools import accumulate, islice
from pathlib import Path, PurePosixPath

from mimir.domain.value_class import value_class
from mimir.errors import ToolError
from mimir.workspace.paths import make_directories
from mimir.workspace.sandbox import toolchain
from mimir.workspace.sandbox.limits.seccomp import socket_filter
from mimir.workspace.sandbox.profile import ProgramProfile, profile_options
from mimir.workspace.sandbox.sharing.shared_view import SharedView
from mimir.workspace.sandbox.toolchain import BindMount
from mimir.workspace.tree_removal import remove_tree

WORKSPACE = "/workspace"
HOME = "/tmp"
VIEW = "/git-view"
# User and group id inside; also outside if root runs the engine.
USER = 65534


@value_class
class MountRequest:
    """Paths that one command can see."""

    workspace: Path
    writable: bool
    project: Path | None
    """Its path leads to the workspace, its dependency folders are shown. None: neither."""
    view: Path | None
    """Git directory to show. None: the workspace is in no repository."""
    shared: SharedView = field(default_factory=SharedView)
    read_only: Sequence[Path] = ()
    has_layers: bool = True
    """False: shared folders are read-only, because the kernel refuses overlays."""
    extra: Mapping[str, Path] | None = None
    """More read-only files and directories, by path inside."""
    extra_rw: Mapping[str, Path] | None = None
    """More directories that can be written to, in the same form."""
    first: Mapping[str, str] | None = None
    """Values to put before those of variables that hold lists."""
    tmp_bytes: int = 1 << 30
    profile: ProgramProfile | None = None
    """None: an ordinary command."""


@value_class
class MountLayout:
    """Options of bubblewrap and facts for the command."""

    options: tuple[str, ...]
    """`{n}` is the file descriptor of the n-th content."""
    contents: tuple[bytes, ...]
    path: str
    has_project_python: bool
    """True: the project's interpreter is first in the search path."""


def lay_out(wanted: MountRequest, *, as_root: bool) -> MountLayout:
    """Compose the mounts of one command; creates mount points in the workspace.

    `as_root`: without a user namespace, by the rights of root, which the launcher gives up.
    """
    files: list[bytes] = []
    own = [place for place in _places_of(wanted.project) if not place.is_relative_to(WORKSPACE)]
    dependencies = _dependencies(wanted, own)
    binds = [*toolchain.engine_binds(), *_bases(dependencies)]
    binds += [bind for path in wanted.read_only for bind in toolchain.bind_with_links(path)]
    binds += [*wanted.shared.toolchains, *_layers_outside(wanted.shared)]
    outer, inner = _split_binds(binds, own, wanted.workspace, dependencies)
    into_workspace = [*dependencies, *inner]
    options = [
        *_namespaces(as_root, has_network=bool(wanted.profile and wanted.profile.network)),
        *_seccomp(files),
        *_system(wanted.tmp_bytes, files),
        *("--bind" if wanted.writable else "--ro-bind", str(wanted.workspace), WORKSPACE),
        *_git(wanted, files),
        *_mount(outer, wanted),
        *_mount(into_workspace, wanted),
        *_alias(wanted, own, outer, into_workspace),
        *_links_of_home(wanted.shared),
        *_extra(wanted.extra or {}, files),
        *_extra_rw(wanted.extra_rw or {}),
        *_profile(wanted, files),
        # The kernel lets the real root set /proc/sys, even without rights.
        *(() if as_root or os.geteuid() != 0 else ("--remount-ro", "/proc")),
        *("--remount-ro", "/dev", "--remount-ro", "/"),
    ]
    first, has_python = _first_places(wanted.workspace, dependencies)
    path = toolchain.search_path(first, wanted.read_only, wanted.shared.path)
    if wanted.profile:
        # Programs of the project come last: with the rights of a profile, none may replace another.
        path = ":".join((toolchain.search_path((), wanted.read_only, wanted.shared.path), *first))
    return MountLayout(
        options=tuple(options),
        contents=tuple(files),
        path=path,
        has_project_python=has_python,
    )


def _add_file(contents: list[bytes], content: bytes, target: str) -> tuple[str, ...]:
    contents.append(content)
    number = f"{{{len(contents) - 1}}}"
    return ("--perms", "0444", "--ro-bind-data", number, target)


def _copy_file(contents: list[bytes], content: bytes, target: str) -> tuple[str, ...]:
    """Put a file into the root, which becomes read-only.

    A copy costs less than a mount: for each mount, bubblewrap reads the table of all mounts again.
    """
    contents.append(content)
    return ("--perms", "0444", "--file", f"{{{len(contents) - 1}}}", target)


def _namespaces(as_root: bool, *, has_network: bool) -> tuple[str, ...]:
    common = (
        # A new session: the command must not write into the terminal of the user.
        *("--die-with-parent", "--new-session", "--clearenv"),
        *("--hostname", "mimir", "--cap-drop", "ALL"),
    )
    if as_root:
        # No user namespace: root's processes are not counted in one. The launcher changes the user.
        unshared = ("ipc", "pid", *(() if has_network else ("net",)), "uts", "cgroup-try")
        spaces = [f"--unshare-{name}" for name in unshared]
        return (*spaces, *common, "--cap-add", "CAP_SETUID", "--cap-add", "CAP_SETGID")
    network = ("--share-net",) if has_network else ()
    own = ("--unshare-user", "--uid", str(USER), "--gid", str(USER))
    return ("--unshare-all", *network, *own, *common)


def _seccomp(files: list[bytes]) -> tuple[str, ...]:
    program = socket_filter()
    if program is None:
        return ()
    files.append(program)
    return ("--seccomp", f"{{{len(files) - 1}}}")


def _system(tmp_bytes: int, files: list[bytes]) -> list[str]:
    options = [word for path in toolchain.SYSTEM for word in ("--ro-bind", path, path)]
    for alias in map(Path, toolchain.SYSTEM_ALIASES):
        if alias.is_symlink():
            options += ["--symlink", str(alias.readlink()).removeprefix("/"), str(alias)]
        elif alias.is_dir():
            options += ["--ro-bind", str(alias), str(alias)]
    options += ["--proc", "/proc", "--dev", "/dev"]
    for place in ("/tmp", "/dev/shm"):
        options += ["--perms", "1777", "--size", str(tmp_bytes), "--tmpfs", place]
    options += ["--perms", "0755", "--dir", "/etc", "--perms", "0755", "--dir", "/var"]
    options += ["--symlink", "/tmp", "/var/tmp"]
    for part in toolchain.system_parts():
        content = toolchain.read_small_file(part)
        if content is None:
            options += ["--ro-bind-try", part, part]
        else:
            options += [*_parents(part), *_copy_file(files, content, part)]
    options += _copy_file(
        files,
        f"root:x:0:0::/root:/bin/sh\nmimir:x:{USER}:{USER}::/tmp:/bin/sh\n".encode(),
        "/etc/passwd",
    )
    options += _copy_file(files, f"root:x:0:\nmimir:x:{USER}:\n".encode(), "/etc/group")
    options += _copy_file(files, b"127.0.0.1 localhost mimir\n::1 localhost\n", "/etc/hosts")
    # Workspace and view have different owners; and a test that commits needs a name.
    options += _copy_file(
        files,
        b"[safe]\n\tdirectory = *\n[user]\n\tname = mimir\n\temail = mimir@localhost\n",
        "/etc/gitconfig",
    )
    return options


def _git(wanted: MountRequest, files: list[bytes]) -> list[str]:
    """Make `/workspace/.git` a read-only file that leads to the view.

    Changes of git there end with the command, so `git mv` changes the workspace alone.
    """
    place = wanted.workspace / ".git"
    if wanted.view is None:
        return []
    # A worker may have created a repository of its own.
    if place.is_symlink() or place.is_dir() or (place.exists() and place.stat().st_size > 0):
        remove_tree(place)
    place.touch(mode=0o644)
    layer = wanted.writable and wanted.has_layers
    return [
        *_bind(str(wanted.view), VIEW, is_layer=layer),
        *_add_file(files, f"gitdir: {VIEW}\n".encode(), f"{WORKSPACE}/.git"),
    ]


def _places_of(project: Path | None) -> list[Path]:
    if project is None:
        return []
    places = dict.fromkeys((project, Path(os.path.realpath(project))))
    return [place for place in places if str(place) not in ("/", "/tmp")]


def _alias(
    wanted: MountRequest,
    own: Sequence[Path],
    outer: Sequence[BindMount],
    inner: Sequence[BindMount],
) -> list[str]:
    # Scripts and editable installs contain the project's own path.
    options: list[str] = []
    for place in own:
        if toolchain.is_system(place) or any(place.is_relative_to(bind.target) for bind in outer):
            # The path exists, read-only: no link can be created there, so it is mounted over.
            bind = "--bind" if wanted.writable else "--ro-bind"
            options += [bind, str(wanted.workspace), str(place)]
            moved = (
                replace(bind, target=bind.target.replace(WORKSPACE, str(place), 1))
                for bind in inner
            )
            options += _mount(moved, wanted)
        else:
            options += [*_parents(str(place)), "--symlink", WORKSPACE, str(place)]
    return options


def _dependencies(wanted: MountRequest, own: Sequence[Path]) -> list[BindMount]:
    """Bind the project's dependency folders where the workspace has none."""
    if wanted.project is None:
        return []
    engine = Path(sys.prefix)
    inside = [str(engine.relative_to(place)) for place in own if engine.is_relative_to(place)]
    found = [
        *((path.name, path.source) for path in wanted.shared.folders if path.name[0] != "/"),
        *((name, engine) for name in inside),
    ]
    return [
        BindMount(source=source, target=f"{WORKSPACE}/{name}", is_layer=True)
        for name, source in dict(found).items()
        if _is_made(wanted.workspace, name)
    ]


def _layers_outside(shared: SharedView) -> list[BindMount]:
    """Bind caches and folders outside of the project."""
    caches = [
        BindMount(source=c.source, target=str(c.source), is_layer=True) for c in shared.caches
    ]
    return caches + [
        BindMount(source=path.source, target=path.name, is_layer=True)
        for path in shared.folders
        if path.name[0] == "/"
    ]


def _links_of_home(shared: SharedView) -> list[str]:
    """Link caches to where tools look for them, below a home that they can write to."""
    options: list[str] = []
    for cache in shared.caches:
        place = PurePosixPath(HOME) / cache.below_home
        if str(place) == str(cache.source):
            continue
        above = [path for path in reversed(place.parents) if path.is_relative_to(HOME)][1:]
        options += [word for path in above for word in ("--perms", "0777", "--dir", str(path))]
        options += ["--symlink", str(cache.source), str(place)]
    return options


def _split_binds(
    binds: Iterable[BindMount],
    own: Sequence[Path],
    workspace: Path,
    dependencies: Sequence[BindMount],
) -> tuple[list[BindMount], list[BindMount]]:
    """Split off the binds inside of the project, and move them into the workspace."""
    outer: list[BindMount] = []
    inner: list[BindMount] = []
    for bind in binds:
        inside = [place for place in own if Path(bind.target).is_relative_to(place)]
        if not inside:
            outer.append(bind)
            continue
        name = str(Path(bind.target).relative_to(inside[0]))
        target = f"{WORKSPACE}/{name}"
        covered = any(PurePosixPath(target).is_relative_to(one.target) for one in dependencies)
        if name != "." and not covered and bind.source.is_dir() and _is_made(workspace, name):
            inner.append(BindMount(source=bind.source, target=target))
    return outer, inner


def _is_made(workspace: Path, name: str) -> bool:
    # False: the workspace has something of its own there.
    path = workspace / name
    if path.is_symlink() or (path.exists() and not path.is_dir()):
        return False
    if path.is_dir() and next(path.iterdir(), None) is not None:
        return False
    try:
        make_directories(workspace, name)
    except ToolError:
        return False
    return True


def _bases(dependencies: Iterable[BindMount]) -> list[BindMount]:
    # The project's Python environments need their interpreters, at the given and the real path.
    return [
        base
        for bind in dependencies
        if PurePosixPath(bind.target).name in toolchain.ENVIRONMENTS
        for base in (
            *toolchain.environment_binds(bind.source),
            *toolchain.bind_with_links(bind.source),
        )
    ]


def _mount(binds: Iterable[BindMount], wanted: MountRequest) -> list[str]:
    # Shallow mounts first: a later one would hide a deeper one.
    options: list[str] = []
    done: set[str] = set()
    for bind in sorted(binds, key=lambda bind: bind.target.count("/")):
        if bind.target in done:
            continue
        done.add(bind.target)
        options += _parents(bind.target)
        layer = bind.is_layer and wanted.has_layers and os.path.isdir(bind.source)  # noqa: PTH112  closed directories
        options += _bind(str(bind.source), bind.target, is_layer=layer)
    return options


def _bind(source: str, target: str, *, is_layer: bool) -> tuple[str, ...]:
    if is_layer:
        return ("--overlay-src", source, "--tmp-overlay", target)
    return ("--ro-bind", source, target)


def _parents(target: str) -> list[str]:
    # Created explicitly, so that every user of the sandbox can read them.
    above = accumulate(target.split("/")[1:-1], "{}/{}".format, initial="")
    return [
        word
        for path in islice(above, 1, None)
        if not toolchain.is_system(path) and not path.startswith(WORKSPACE)
        for word in ("--perms", "0755", "--dir", path)
    ]


def _extra(extra: Mapping[str, Path], files: list[bytes]) -> list[str]:
    options: list[str] = []
    for target, source in sorted(extra.items()):
        options += _parents(target)
        if source.is_dir():
            options += ["--ro-bind", str(source), target]
        else:
            # Copied, so that the file may be unreadable for the user of the sandbox.
            options += _add_file(files, source.read_bytes(), target)
    return options


def _profile(wanted: MountRequest, files: list[bytes]) -> list[str]:
    if wanted.profile is None:
        return []
    return profile_options(wanted.profile, files, has_layers=wanted.has_layers)


def _extra_rw(extra: Mapping[str, Path]) -> Iterable[str]:
    for target, source in sorted(extra.items()):
        yield from (*_parents(target), "--bind", str(source), target)


def _first_places(workspace: Path, dependencies: Sequence[BindMount]) -> tuple[list[str], bool]:
    """Return the search path before mimir's own, and whether a Python is in it."""
    sources = {bind.target.removeprefix(f"{WORKSPACE}/"): bind.source for bind in dependencies}
    places: list[str] = []
    has_python = False
    for name in toolchain.ENVIRONMENTS:
        environment = sources.get(name, workspace / name)
        if not has_python and (environment / "bin").is_dir():
            places.append(f"{WORKSPACE}/{name}/bin")
            has_python = os.path.lexists(environment / "bin/python")
    if (sources.get("node_modules", workspace / "node_modules") / ".bin").is_dir():
        places.append(f"{WORKSPACE}/node_modules/.bin")
    return places, has_python
