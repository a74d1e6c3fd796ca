"""The hidden repository itself: where it is, how it is made, and room for throw-away files."""

import asyncio
import contextlib
import itertools
import os
from collections.abc import Generator
from dataclasses import dataclass, field, replace
from pathlib import Path

from mimir.workspace.aio import gather_both
from mimir.workspace.atomic_write import write_atomically
from mimir.workspace.git.discovery import UserRepository, find
from mimir.workspace.git.git_command import GitCommand, require_version
from mimir.workspace.tree_removal import remove_tree

ATTRIBUTES = (
    "* -text -ident -filter -eol !merge !diff !working-tree-encoding !whitespace "
    "!conflict-marker-size !delta\n"
)
"""Bytes stay bytes. Git ranks this file above any `.gitattributes` of a work tree."""

DEFAULT_TIME = 1_700_000_000
"""Seconds since 1970: the time of commits that have no parent and were given none."""

_numbers = itertools.count()


@dataclass(frozen=True, slots=True, kw_only=True)
class IgnoredPaths:
    """What snapshots of workspaces on one base pass over."""

    file: Path
    """Ignore rules in git's form, relative to the workspace's top."""
    defaults: Path
    """The engine's own rules alone; they hold even for paths that a task's `files` name by wildcard."""
    submodules: frozenset[str]
    """Paths that stay as they are."""

    def is_fixed(self, path: str) -> bool:
        """Say whether a path is a submodule or lies in one."""
        return bool(self.submodules) and any(
            path == one or path.startswith(f"{one}/") for one in self.submodules
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class HiddenRepository:
    """The hidden repository of one project."""

    directory: Path
    git: GitCommand
    """Reads the person's objects too."""
    project: Path
    person: UserRepository | None
    """None: the project is a plain directory."""
    owner: tuple[int, int] | None
    """User and group id that files of workspaces get. None: whoever runs the engine."""
    home: Path
    """Where the person's global ignore file is looked for."""
    known_rules: dict[str, IgnoredPaths] = field(
        default_factory=dict[str, IgnoredPaths], compare=False, repr=False
    )
    """What is ignored on which tree, as far as it was asked; it changes only when a run pins rules anew."""
    trees: dict[str, str] = field(default_factory=dict[str, str], compare=False, repr=False)
    """Commit or tree that was looked up → its tree."""
    times: dict[str, int] = field(default_factory=dict[str, int], compare=False, repr=False)
    """Commit → its committer's time, as far as it was made or looked up here."""
    parents: dict[str, tuple[str, ...]] = field(
        default_factory=dict[str, tuple[str, ...]], compare=False, repr=False
    )
    """Commit → its parents, as far as it was made here."""
    listings: dict[str, tuple[object, ...]] = field(
        default_factory=dict[str, tuple[object, ...]], compare=False, repr=False
    )
    """Answers of git that can never be others, since an object's id names its content: the latest few (see `trees`)."""

    pins: dict[str, str] = field(default_factory=dict[str, str], compare=False, repr=False)
    """Ref → commit that it was pinned to here."""

    def wrote(self, tree: str) -> str:
        """Return the id of a tree that was just written, and know it from now on."""
        self.trees[tree] = tree
        return tree

    @property
    def room(self) -> Path:
        """Where the engine keeps its own files beside git's."""
        return self.directory / "mimir"

    @property
    def id_length(self) -> int:
        """Number of hexadecimal digits of an object id."""
        return 64 if self.person and self.person.object_format == "sha256" else 40

    @property
    def empty_tree(self) -> str:
        """Id of the tree without entries."""
        if self.id_length == 64:
            return "6ef19b41225c5369f1c104d45d8d85efa9b057b53b14b4b9b939dd74decc5321"
        return "4b825dc642cb6eb9a060e54bf8d69288fbee4904"

    def packs(self) -> int:
        """Return how many packs its objects are in."""
        return sum(1 for _ in (self.directory / "objects/pack").glob("*.pack"))

    def scratch(self, kind: str) -> Path:
        """Return a path that nobody uses, in the same file system as the repository."""
        return self.room / "scratch" / f"{kind}-{os.getpid()}-{next(_numbers)}"

    @contextlib.contextmanager
    def index(self) -> Generator[Path]:
        """Give an index file that is gone afterwards."""
        path = self.scratch("index")
        # Where process ids begin anew with each start, one that was killed had the same names.
        _forget(path)
        try:
            yield path
        finally:
            _forget(path)


def _forget(index: Path) -> None:
    index.unlink(missing_ok=True)
    index.with_name(f"{index.name}.lock").unlink(missing_ok=True)


async def open_repository(
    project: Path, directory: Path, *, program: str, owner: tuple[int, int] | None, home: Path
) -> HiddenRepository:
    """Open the hidden repository, making it if there is none.

    Raises:
        WorkspaceError: Git is missing, too old, or the directory cannot be written.
    """
    _, person = await gather_both(
        require_version(GitCommand(directory=None, program=program)), find(project, program)
    )
    git = GitCommand(
        directory=directory,
        alternates=(person.objects,) if person else (),
        program=program,
    )
    if not await asyncio.to_thread((directory / "HEAD").exists):
        await _make(git, directory, person.object_format if person else "sha1")
    hidden = HiddenRepository(
        directory=directory, git=git, project=project, person=person, owner=owner, home=home
    )
    await asyncio.to_thread(_furnish, hidden)
    return hidden


async def _make(git: GitCommand, directory: Path, object_format: str) -> None:
    """Make the repository beside its place, then put it there: another process may do the same."""
    beside = directory.with_name(f".{directory.name}-{os.getpid()}-{next(_numbers)}")
    await asyncio.to_thread(_make_room, directory, beside)
    made = replace(git, directory=beside, alternates=())
    await made.run("init", "-q", "--bare", f"--object-format={object_format}", str(beside))
    await asyncio.to_thread(_put_in_place, beside, directory)


def _make_room(directory: Path, beside: Path) -> None:
    directory.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
    remove_tree(beside)
    beside.mkdir(mode=0o700)
    if directory.is_dir() and not (directory / "HEAD").exists():
        # A process died while it put files there by hand; nothing of value can be in it.
        remove_tree(directory)


def _put_in_place(made: Path, directory: Path) -> None:
    try:
        made.rename(directory)
    except OSError:
        remove_tree(made)
        if not (directory / "HEAD").exists():
            raise


def _furnish(hidden: HiddenRepository) -> None:
    """Write what has to be there each time: attributes, and which commits of the person have no parents here."""
    for room in ("scratch", "rules", "bases", "views"):
        (hidden.room / room).mkdir(parents=True, exist_ok=True)
    info = hidden.directory / "info"
    info.mkdir(exist_ok=True)
    write_atomically(info / "attributes", ATTRIBUTES.encode())
    shallow = hidden.person.shallow() if hidden.person else None
    if shallow is None:
        (hidden.directory / "shallow").unlink(missing_ok=True)
    else:
        write_atomically(hidden.directory / "shallow", shallow)
