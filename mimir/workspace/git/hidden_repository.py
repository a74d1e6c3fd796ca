"""The hidden repository: its place, its creation, its caches and its scratch files."""

import asyncio
import contextlib
import itertools
import os
from collections.abc import Generator
from dataclasses import dataclass, field, replace
from pathlib import Path

from mimir.domain.value_class import value_class
from mimir.workspace.aio import gather_both
from mimir.workspace.atomic_write import write_atomically
from mimir.workspace.git.discovery import UserRepository, find
from mimir.workspace.git.git_command import GitCommand, require_version
from mimir.workspace.tree_removal import remove_tree

# Bytes stay bytes. Git ranks this file above any `.gitattributes` of a work tree.
ATTRIBUTES = (
    "* -text -ident -filter -eol !merge !diff !working-tree-encoding !whitespace "
    "!conflict-marker-size !delta\n"
)

# Seconds since 1970: time of commits without parent and given time.
DEFAULT_TIME = 1_700_000_000

_numbers = itertools.count()


@value_class
class IgnoredPaths:
    """Paths that snapshots of workspaces on one base leave out."""

    file: Path
    """Ignore rules in git's form, relative to the top of the workspace."""
    defaults: Path
    """The engine's own rules; they apply even to wildcards of a task's `files`."""
    submodules: frozenset[str]

    def is_fixed(self, path: str) -> bool:
        """Return whether a path is a submodule or inside one."""
        return bool(self.submodules) and any(
            path == one or path.startswith(f"{one}/") for one in self.submodules
        )


@dataclass(frozen=True, slots=True, kw_only=True, eq=False, repr=False)
class HiddenRepository:
    """The hidden repository of one project."""

    directory: Path
    git: GitCommand
    """Reads the user's objects too."""
    project: Path
    user: UserRepository | None
    """None: the project is a plain directory."""
    owner: tuple[int, int] | None
    """User and group id of files in workspaces. None: those of the engine."""
    home: Path
    """Directory of the user's global ignore file."""
    environment: Path | None = None
    """Python environment of the project in another directory. None: it has none."""
    known_rules: dict[str, IgnoredPaths] = field(default_factory=dict[str, IgnoredPaths])
    """Base → its ignored paths; cleared when a run pins rules."""
    trees: dict[str, str] = field(default_factory=dict[str, str])
    """Commit or tree → its tree."""
    times: dict[str, int] = field(default_factory=dict[str, int])
    """Commit → its time."""
    parents: dict[str, tuple[str, ...]] = field(default_factory=dict[str, tuple[str, ...]])
    """Commit that was created here → its parents."""
    listings: dict[str, tuple[object, ...]] = field(default_factory=dict[str, tuple[object, ...]])
    """Latest answers of git about object ids (see `trees`)."""
    pins: dict[str, str] = field(default_factory=dict[str, str])
    """Ref → commit that it was pinned to here."""

    def remember_tree(self, tree: str) -> str:
        """Remember a tree that was just written, and return its id."""
        self.trees[tree] = tree
        return tree

    @property
    def engine_dir(self) -> Path:
        """Directory of the engine's own files."""
        return self.directory / "mimir"

    @property
    def id_length(self) -> int:
        """Hexadecimal digits of an object id."""
        return 64 if self.user and self.user.object_format == "sha256" else 40

    def packs(self) -> list[Path]:
        """Return its pack files."""
        return sorted((self.directory / "objects/pack").glob("*.pack"))

    def scratch(self, kind: str) -> Path:
        """Return an unused path in the file system of the repository."""
        return self.engine_dir / "scratch" / f"{kind}-{os.getpid()}-{next(_numbers)}"

    @contextlib.contextmanager
    def index(self) -> Generator[Path]:
        """Provide a temporary index file."""
        path = self.scratch("index")
        # In a container that starts again, a killed process had the same id and names.
        _forget(path)
        try:
            yield path
        finally:
            _forget(path)


def _forget(index: Path) -> None:
    index.unlink(missing_ok=True)
    index.with_name(f"{index.name}.lock").unlink(missing_ok=True)


async def open_repository(
    project: Path,
    directory: Path,
    *,
    program: str,
    owner: tuple[int, int] | None,
    home: Path,
    environment: Path | None = None,
) -> HiddenRepository:
    """Open the hidden repository; create it if it is missing."""
    _, user = await gather_both(
        require_version(GitCommand(directory=None, program=program)), find(project, program)
    )
    git = GitCommand(
        directory=directory, alternates=(user.objects,) if user else (), program=program
    )
    if not await asyncio.to_thread((directory / "HEAD").exists):
        await _make(git, directory, user.object_format if user else "sha1")
    hidden = HiddenRepository(
        directory=directory,
        git=git,
        project=project,
        user=user,
        owner=owner,
        home=home,
        environment=environment,
    )
    await asyncio.to_thread(_create_files, hidden)
    return hidden


async def _make(git: GitCommand, directory: Path, object_format: str) -> None:
    # Created under another name, then renamed: another process may do the same.
    beside = directory.with_name(f".{directory.name}-{os.getpid()}-{next(_numbers)}")
    await asyncio.to_thread(_prepare_directory, directory, beside)
    own = replace(git, directory=beside, alternates=())
    await own.run("init", "-q", "--bare", f"--object-format={object_format}", str(beside))
    await asyncio.to_thread(_put_in_place, beside, directory)


def _prepare_directory(directory: Path, beside: Path) -> None:
    directory.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
    remove_tree(beside)
    beside.mkdir(mode=0o700)
    if directory.is_dir() and not (directory / "HEAD").exists():
        # Without HEAD it is no repository, so nothing of value is in it.
        remove_tree(directory)


def _put_in_place(made: Path, directory: Path) -> None:
    try:
        made.rename(directory)
    except OSError:
        remove_tree(made)
        if not (directory / "HEAD").exists():
            raise


def _create_files(hidden: HiddenRepository) -> None:
    for room in ("scratch", "rules", "bases", "views"):
        (hidden.engine_dir / room).mkdir(parents=True, exist_ok=True)
    info = hidden.directory / "info"
    info.mkdir(exist_ok=True)
    write_atomically(info / "attributes", ATTRIBUTES.encode())
    shallow = hidden.user.shallow() if hidden.user else None
    if shallow is None:
        (hidden.directory / "shallow").unlink(missing_ok=True)
    else:
        write_atomically(hidden.directory / "shallow", shallow)
