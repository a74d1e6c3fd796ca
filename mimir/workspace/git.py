"""The hidden history of a project: bases, workspaces, snapshots, merges, results.

The rule: this is the only door to git. A workspace never holds a repository; git directory, work tree and index are
named in every call, and nothing in a workspace, a repository or a person's settings configures them. Trees depend on
contents only, commits on their parts only, so what a run makes does not depend on when or where it was made.
"""

import os
import pwd
from collections.abc import Mapping, Sequence
from pathlib import Path

from mimir.domain.globs import matches
from mimir.workspace.person import branch as person_branch
from mimir.workspace.repository import (
    base,
    commits,
    filling,
    merging,
    sharing,
    snapshot,
    trees,
    verifying,
    view,
)
from mimir.workspace.repository.base import Base
from mimir.workspace.repository.hidden import Hidden, opened
from mimir.workspace.repository.merging import Merge
from mimir.workspace.repository.snapshot import Snapshot
from mimir.workspace.repository.trees import Change, Entry

__all__ = ["MAX_DIFF_BYTES", "Base", "Change", "Entry", "History", "Merge", "Snapshot"]

MAX_DIFF_BYTES = 200_000


class History:
    """One hidden repository; made by `open`."""

    def __init__(self, hidden: Hidden) -> None:
        self._hidden = hidden

    @classmethod
    async def open(
        cls,
        project: Path,
        gitdir: Path,
        *,
        owner: tuple[int, int] | None = None,
        home: Path | None = None,
        program: str = "git",
    ) -> "History":
        """Open the history of a project, making it if there is none. Several processes may.

        Args:
            project: The person's directory, a git repository (also a part of one, or a linked work tree) or not.
            gitdir: The hidden repository, by custom `<project>/.mimir/work/history.git`.
            owner: User and group id that files of workspaces get (`Sandbox.owner`). None: who runs the engine.
            home: Where the person's global ignore file is looked for. None: the account's home directory.
            program: The git to run.

        Raises:
            WorkspaceError: Git is missing or too old, or the directory cannot be written.
        """
        home = home or Path(pwd.getpwuid(os.getuid()).pw_dir)
        return cls(await opened(project, gitdir, program=program, owner=owner, home=home))

    @property
    def is_repository(self) -> bool:
        """True if the project is in a git repository; its branches are then the person's."""
        return self._hidden.person is not None

    async def base(self, run: str, *, hidden: Sequence[str] = (), when: int | None = None) -> Base:
        """Record the project as it is, uncommitted changes included, and pin it for the run.

        Nothing of the person's is moved, stashed or staged. A clean work tree's base is the person's own commit.

        Args:
            run: Id of the run; `refs/mimir/base/<run>` pins the base against the person's `git gc`.
            hidden: Top-level names that are left out; they are not deleted by any result.
            when: Time of the commit in seconds since 1970. None: that of the person's commit.
        """
        return await base.base(self._hidden, run, left_out=hidden, when=when)

    async def fill(self, source: str, where: Path, index: Path, *, base: str | None = None) -> None:
        """Make `where` hold exactly a commit's or tree's files; ignored files survive, the rest goes.

        Args:
            source: Commit or tree.
            where: Made if missing. Left by a killed engine in any state, it is made whole.
            index: The workspace's index file, beside it.
            base: Commit or tree whose ignore rules hold. None: those of the first `source` that this index was filled from.
        """
        known = await filling.rules_of(self._hidden, index, base, first=source)
        await filling.fill(self._hidden, source, where, index, known)

    async def snapshot(
        self, where: Path, index: Path, *, files: Sequence[str] = (), base: str | None = None
    ) -> Snapshot:
        """Record the workspace as a tree; no process may work in it meanwhile.

        Args:
            where: The workspace.
            index: Its index, as `fill` left it.
            files: Globs whose paths are recorded even if they are ignored.
            base: As in `fill`.
        """
        known = await filling.rules_of(self._hidden, index, base)
        return await snapshot.snapshot(self._hidden, where, index, files=files, base=known)

    async def checkout(self, source: str, where: Path) -> None:
        """Make `where` a clean checkout of a commit or tree; what was there is removed."""
        await filling.checkout(self._hidden, source, where)

    async def commit(
        self, tree: str, parents: Sequence[str], message: str, *, when: int | None = None
    ) -> str:
        """Make a commit and return its id; the same parts always give the same id.

        Args:
            tree: Its tree.
            parents: Its parents, the line's first.
            message: Its text.
            when: Seconds since 1970. None: the time of the newest parent.
        """
        return await commits.commit(self._hidden, tree, parents, message, when=when)

    async def tree(self, source: str) -> str:
        """Return the tree of a commit (a tree is its own)."""
        return await commits.tree_of(self._hidden, source)

    async def merge(
        self,
        ours: str,
        theirs: str,
        base: str | None = None,
        *,
        labels: tuple[str, str] = (merging.OURS, merging.THEIRS),
    ) -> Merge:
        """Merge two commits, or two trees or commits over `base`; the tree holds the markers of conflicts.

        Edits of one file that do not overlap are merged; renames are not guessed.

        Raises:
            WorkspaceError: One of them does not exist.
        """
        return await merging.merge(self._hidden, ours, theirs, base=base, labels=labels)

    async def restrict(
        self, tree: str, base: str, *, files: Sequence[str], touched: Sequence[str] = ()
    ) -> tuple[str, tuple[str, ...]]:
        """Undo changes outside of `files`; return the tree and the paths that were left out.

        Args:
            tree: What was made.
            base: What it was made from; commit or tree.
            files: Globs that may change; none of them: all may.
            touched: Paths that may change all the same.
        """
        if not files:
            return await commits.tree_of(self._hidden, tree), ()
        allowed = frozenset(touched)
        outside = {
            change.path: change.old
            for change in await self.changed(base, tree)
            if change.path not in allowed and not matches(change.path, files)
        }
        return await trees.edited(self._hidden, tree, outside), tuple(outside)

    async def with_files(self, tree: str, from_tree: str, globs: Sequence[str]) -> str:
        """Return `tree` with the files that `globs` name as they are in `from_tree`; missing there: removed."""
        return await trees.with_files(
            self._hidden, tree, from_tree, lambda path: matches(path, globs)
        )

    async def changed(self, a: str, b: str) -> tuple[Change, ...]:
        """Say which files differ from `a` to `b` (commits or trees), sorted as git does."""
        return await trees.changed(self._hidden, a, b)

    async def diff(
        self, a: str, b: str, *, paths: Sequence[str] = (), max_bytes: int = MAX_DIFF_BYTES
    ) -> str:
        """Return the patch from `a` to `b`, cut with a mark after `max_bytes`.

        Args:
            a: Commit or tree.
            b: Commit or tree.
            paths: Only these. None of them: all.
            max_bytes: Bound.
        """
        return await trees.diff(self._hidden, a, b, paths=paths, max_bytes=max_bytes)

    async def file(self, source: str, path: str) -> bytes | None:
        """Return a file's bytes in a commit or tree (of a link: its target); None: there is none."""
        return await trees.file(self._hidden, source, path)

    async def blob(self, id: str) -> bytes:
        """Return the bytes of a blob.

        Raises:
            WorkspaceError: There is none of that id.
        """
        return await trees.blob(self._hidden, id)

    async def paths(self, source: str, globs: Sequence[str] | None = None) -> tuple[str, ...]:
        """List the paths of a commit or tree that `globs` name, sorted as git does; None: all."""
        return await trees.paths(self._hidden, source, globs)

    async def entries(self, source: str) -> tuple[Entry, ...]:
        """List the files of a commit or tree with mode and blob id, sorted as git does."""
        return tuple(await trees.entries(self._hidden, source))

    async def links_out(self, source: str, among: Sequence[str] | None = None) -> tuple[str, ...]:
        """Name the symbolic links of a commit or tree (of `among` only) that lead out of it."""
        return await trees.links_out(self._hidden, source, among)

    async def view(self, commit: str, where: Path | None = None) -> Path:
        """Return a git directory that shows `commit` and what it comes from, and nothing else.

        It is bound read-only into the sandbox (`Sandbox.run(view=…)`). Made once per commit.
        """
        return await view.view(self._hidden, commit, where)

    async def branch(self, name: str, commit: str) -> str:
        """Make or move the branch `mimir/<name>` to a commit; return the branch's whole name.

        It is in the person's repository, with its objects and hooks off; in a plain directory it stays hidden. What
        the base left out and what lies beside the project is in it as the person has it.

        Raises:
            WorkspaceError: The branch cannot be made or is checked out; the commit is pinned all the same.
        """
        return await sharing.branch(self._hidden, name, commit)

    async def keep(self, name: str, commit: str) -> str:
        """Keep a commit that did not reach the line on a branch of its own, as `branch` does."""
        return await sharing.branch(self._hidden, name, commit)

    async def trees(self, sources: Sequence[str]) -> list[str]:
        """Return the tree of each commit or tree, in this order; empty: there is no such object."""
        return await commits.trees_of(self._hidden, sources)

    async def message(self, commit: str) -> str:
        """Return the message of a commit.

        Raises:
            WorkspaceError: There is no such commit.
        """
        return await commits.message_of(self._hidden, commit)

    async def commit_for_person(
        self, files: Mapping[str, Entry | None], message: str, *, when: int | None = None
    ) -> str:
        """Make one commit of exactly these files (None: removed) on the branch that the person is on.

        Raises:
            WorkspaceError: No repository, a merge or rebase is going on, or git refused.
        """
        return await person_branch.commit_for_person(self._hidden, files, message, when=when)

    async def verify_objects(self, commits: Sequence[str], trees: Sequence[str] = ()) -> list[str]:
        """Name every object reachable from these that is missing or was changed; empty: all is true."""
        return await verifying.verify(self._hidden, commits, trees)
