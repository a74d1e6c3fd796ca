"""The hidden history of a project: bases, workspaces, snapshots, merges, results.

The rule: this is the only door to git. A workspace never holds a repository; git directory, work tree and index are
named in every call, and nothing in a workspace, a repository or a person's settings configures them. Trees depend on
contents only, commits on their parts only, so what a run makes does not depend on when or where it was made.
"""

import contextlib
import os
import pwd
from collections.abc import Awaitable, Callable, Mapping, Sequence
from pathlib import Path
from typing import TypeVar

from mimir.domain.globs import matches
from mimir.errors import WorkspaceError
from mimir.workspace.git import (
    adoption,
    base_capture,
    checkout,
    commits,
    object_check,
    readonly_view,
    snapshot,
    trees,
    user_refs,
)
from mimir.workspace.git import merge as merging
from mimir.workspace.git import user_branch as person_branch
from mimir.workspace.git.base_capture import BaseCommit
from mimir.workspace.git.commits import is_object
from mimir.workspace.git.git_question import GitQuestion, git_question
from mimir.workspace.git.hidden_repository import HiddenRepository, open_repository
from mimir.workspace.git.ignore_rules import pinned_rules
from mimir.workspace.git.merge import TreeMerge
from mimir.workspace.git.remote import CommitExchange, GitRemote
from mimir.workspace.git.snapshot import WorkspaceSnapshot
from mimir.workspace.git.trees import TreeChange, TreeEntry

__all__ = [
    "MAX_DIFF_BYTES",
    "BaseCommit",
    "GitHistory",
    "GitRemote",
    "TreeChange",
    "TreeEntry",
    "TreeMerge",
    "WorkspaceSnapshot",
]

R = TypeVar("R")

MAX_DIFF_BYTES = 200_000


class GitHistory:
    """One hidden repository; made by `open`."""

    def __init__(self, hidden: HiddenRepository, exchange: CommitExchange | None = None) -> None:
        self._hidden = hidden
        self._exchange = exchange
        self._away = False

    @classmethod
    async def open(
        cls,
        project: Path,
        gitdir: Path,
        *,
        owner: tuple[int, int] | None = None,
        home: Path | None = None,
        program: str = "git",
        remote: GitRemote | None = None,
    ) -> "GitHistory":
        """Open the history of a project, making it if there is none. Several processes may.

        Args:
            project: The person's directory, a git repository (also a part of one, or a linked work tree) or not.
            gitdir: The hidden repository, by custom `<project>/.mimir/work/history.git`.
            owner: User and group id that files of workspaces get (`Sandbox.owner`). None: who runs the engine.
            home: Where the person's global ignore file is looked for. None: the account's home directory.
            program: The git to run.
            remote: Where objects of runs are exchanged with other directories. None: all who serve a run do so in this one.

        Raises:
            WorkspaceError: Git is missing or too old, or the directory cannot be written.
        """
        home = home or Path(pwd.getpwuid(os.getuid()).pw_dir)
        hidden = await open_repository(project, gitdir, program=program, owner=owner, home=home)
        return cls(hidden, CommitExchange(hidden, remote) if remote and remote.url else None)

    async def ask(self, question: GitQuestion, compute: Callable[[], Awaitable[R]], /) -> R:
        """Answer a question to git; recordings override this method."""
        return await compute()

    @property
    def is_repository(self) -> bool:
        """True if the project is in a git repository; its branches are then the person's."""
        return self._hidden.person is not None

    @property
    def is_exchanged(self) -> bool:
        """True if processes in other directories can have what is made here."""
        return self._exchange is not None

    async def share(self) -> None:
        """Let processes in other directories have what was made here since the last time; nothing to do without a remote.

        Raises:
            WorkspaceError: The remote cannot be reached.
        """
        if self._exchange:
            await self._exchange.share()

    async def _have(self, *ids: str | None) -> None:
        """Fetch what is not here, where there is somebody to fetch it from."""
        if self._exchange:
            await self._exchange.have(id for id in ids if id and is_object(id))

    def _made(self, *, tree: str = "", commit: str = "") -> None:
        if self._exchange:
            self._exchange.queue_push(tree=tree, commit=commit)

    async def lineage(self) -> str:
        """Return what all clones of the project have in common; empty: there are no commits, or not the first ones."""
        return await adoption.lineage(self._hidden)

    async def rules(self) -> str:
        """Return what the last base passes over beside its own rules, a line each."""
        return await pinned_rules(self._hidden)

    async def serve(self, run: str, base: str) -> bool:
        """Get ready for a run; False: it was not begun in this directory, and this directory was not admitted yet."""
        if self._exchange:
            self._exchange.serve(run)
        self._away = adoption.is_away(self._hidden, run)
        return await adoption.is_pinned(self._hidden, run, base)

    async def is_related(self, base: str, *, hidden: Sequence[str] = ()) -> bool:
        """Fetch a base and say whether it is of the same project as this directory.

        Raises:
            WorkspaceError: It cannot be had.
        """
        await self._have(base)
        return await adoption.is_related(self._hidden, base, tuple(hidden))

    async def adopt(
        self, run: str, base: str, *, head: str | None, hidden: Sequence[str], rules: str
    ) -> None:
        """Serve a run that another directory began; the arguments are what `base` and `rules` gave there."""
        await self._have(base)
        await adoption.adopt(
            self._hidden, run, base, head=head, left_out=tuple(hidden), rules=rules
        )
        self._away = True

    @property
    def is_away(self) -> bool:
        """True if another directory began the run that is served: its result is not for this one's files and branches."""
        return self._away

    async def base(
        self, run: str, *, hidden: Sequence[str] = (), when: int | None = None
    ) -> BaseCommit:
        """Record the project as it is, uncommitted changes included, and pin it for the run.

        Nothing of the person's is moved, stashed or staged. A clean work tree's base is the person's own commit.

        Args:
            run: Id of the run; `refs/mimir/base/<run>` pins the base against the person's `git gc`.
            hidden: Top-level names that are left out; they are not deleted by any result.
            when: Time of the commit in seconds since 1970. None: that of the person's commit.
        """
        if self._exchange:
            self._exchange.serve(run)
        made = await base_capture.base(self._hidden, run, left_out=hidden, when=when)
        self._made(commit=made.commit)
        return made

    async def fill(self, source: str, where: Path, index: Path, *, base: str | None = None) -> None:
        """Make `where` hold exactly a commit's or tree's files; ignored files survive, the rest goes.

        Args:
            source: Commit or tree.
            where: Made if missing. Left by a killed engine in any state, it is made whole.
            index: The workspace's index file, beside it.
            base: Commit or tree whose ignore rules hold. None: those of the first `source` that this index was filled from.
        """
        await self._have(source, base)
        known = await checkout.rules_of(self._hidden, index, base, first=source)
        await checkout.fill_directory(self._hidden, source, where, index, known)

    async def snapshot(
        self, where: Path, index: Path, *, files: Sequence[str] = (), base: str | None = None
    ) -> WorkspaceSnapshot:
        """Record the workspace as a tree; no process may work in it meanwhile.

        Args:
            where: The workspace.
            index: Its index, as `fill` left it.
            files: Globs whose paths are recorded even if they are ignored.
            base: As in `fill`.
        """
        await self._have(base)
        known = await checkout.rules_of(self._hidden, index, base)
        taken = await snapshot.snapshot(self._hidden, where, index, files=files, base=known)
        self._made(tree=taken.tree)
        return taken

    async def checkout(self, source: str, where: Path) -> None:
        """Make `where` a clean checkout of a commit or tree; what was there is removed."""
        await self._have(source)
        await checkout.checkout(self._hidden, source, where)

    @git_question("commit", str, without="when")
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
        await self._have(tree, *parents)
        made = await commits.commit(self._hidden, tree, parents, message, when=when)
        self._made(commit=made)
        return made

    async def tree(self, source: str) -> str:
        """Return the tree of a commit (a tree is its own)."""
        await self._have(source)
        return await commits.tree_of(self._hidden, source)

    @git_question("merge", TreeMerge, without="labels")
    async def merge(
        self,
        ours: str,
        theirs: str,
        base: str | None = None,
        *,
        labels: tuple[str, str] = (merging.OURS, merging.THEIRS),
    ) -> TreeMerge:
        """Merge two commits, or two trees or commits over `base`; the tree holds the markers of conflicts.

        Edits of one file that do not overlap are merged; renames are not guessed.

        Raises:
            WorkspaceError: One of them does not exist.
        """
        await self._have(ours, theirs, base)
        made = await merging.merge(self._hidden, ours, theirs, base=base, labels=labels)
        self._made(tree=made.tree)
        return made

    @git_question("restrict", tuple[str, tuple[str, ...]])
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
            for change in await self.diff_trees(base, tree)
            if change.path not in allowed and not matches(change.path, files)
        }
        kept = await trees.edit_tree(self._hidden, tree, outside)
        self._made(tree=kept)
        return kept, tuple(outside)

    @git_question("with_files", str)
    async def with_files(self, tree: str, from_tree: str, globs: Sequence[str]) -> str:
        """Return `tree` with the files that `globs` name as they are in `from_tree`; missing there: removed."""
        await self._have(tree, from_tree)
        made = await trees.with_files(
            self._hidden, tree, from_tree, lambda path: matches(path, globs)
        )
        self._made(tree=made)
        return made

    @git_question("changed", tuple[TreeChange, ...])  # name in recordings
    async def diff_trees(self, a: str, b: str) -> tuple[TreeChange, ...]:
        """Say which files differ from `a` to `b` (commits or trees), sorted as git does."""
        await self._have(a, b)
        return await trees.diff_trees(self._hidden, a, b)

    @git_question("diff", str, without="max_bytes")
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
        await self._have(a, b)
        return await trees.diff(self._hidden, a, b, paths=paths, max_bytes=max_bytes)

    @git_question("file", bytes)
    async def file(self, source: str, path: str) -> bytes | None:
        """Return a file's bytes in a commit or tree (of a link: its target); None: there is none."""
        await self._have(source)
        return await trees.file(self._hidden, source, path)

    async def blob(self, id: str) -> bytes:
        """Return the bytes of a blob.

        Raises:
            WorkspaceError: There is none of that id.
        """
        return await trees.blob(self._hidden, id)

    @git_question("paths", tuple[str, ...])
    async def paths(self, source: str, globs: Sequence[str] | None = None) -> tuple[str, ...]:
        """List the paths of a commit or tree that `globs` name, sorted as git does; None: all."""
        await self._have(source)
        return await trees.paths(self._hidden, source, globs)

    async def entries(self, source: str) -> tuple[TreeEntry, ...]:
        """List the files of a commit or tree with mode and blob id, sorted as git does."""
        await self._have(source)
        return tuple(await trees.entries(self._hidden, source))

    @git_question("links_out", tuple[str, ...])
    async def links_out(self, source: str, among: Sequence[str] | None = None) -> tuple[str, ...]:
        """Name the symbolic links of a commit or tree (of `among` only) that lead out of it."""
        await self._have(source)
        return await trees.links_out(self._hidden, source, among)

    async def view(self, commit: str, where: Path | None = None) -> Path:
        """Return a git directory that shows `commit` and what it comes from, and nothing else.

        It is bound read-only into the sandbox (`Sandbox.run(view=…)`). Made once per commit.
        """
        await self._have(commit)
        return await readonly_view.view(self._hidden, commit, where)

    async def branch(self, name: str, commit: str) -> str:
        """Make or move the branch `mimir/<name>` to a commit; return the branch's whole name.

        It is in the person's repository, with its objects and hooks off; in a plain directory it stays hidden. What
        the base left out and what lies beside the project is in it as the person has it. Away, the commit is only pinned.

        Raises:
            WorkspaceError: The branch cannot be made or is checked out; the commit is pinned all the same.
        """
        await self._have(commit)
        if self._away:
            return await user_refs.pin_ref(self._hidden, name, commit)
        return await user_refs.branch(self._hidden, name, commit)

    async def keep(self, name: str, commit: str) -> str:
        """Keep a commit that did not reach the line on a branch of its own, as `branch` does."""
        return await self.branch(name, commit)

    async def trees(self, sources: Sequence[str]) -> list[str]:
        """Return the tree of each commit or tree, in this order; empty: there is no such object."""
        await self._fetch_for_proof(sources)
        return await commits.trees_of(self._hidden, sources)

    async def message(self, commit: str) -> str:
        """Return the message of a commit.

        Raises:
            WorkspaceError: There is no such commit.
        """
        return await commits.message_of(self._hidden, commit)

    async def commit_for_person(
        self, files: Mapping[str, TreeEntry | None], message: str, *, when: int | None = None
    ) -> str:
        """Make one commit of exactly these files (None: removed) on the branch that the person is on.

        Raises:
            WorkspaceError: No repository, a merge or rebase is going on, or git refused.
        """
        return await person_branch.commit_for_person(self._hidden, files, message, when=when)

    async def verify_objects(self, commits: Sequence[str], trees: Sequence[str] = ()) -> list[str]:
        """Name every object reachable from these that is missing or was changed; empty: all is true."""
        await self._fetch_for_proof((*commits, *trees))
        return await object_check.verify(self._hidden, commits, trees)

    async def _fetch_for_proof(self, ids: Sequence[str]) -> None:
        """Bring what others have made; what cannot be had is for the proof to name."""
        with contextlib.suppress(WorkspaceError):
            await self._have(*ids)
