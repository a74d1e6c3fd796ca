"""The hidden history of a project: bases, workspaces, snapshots, merges, results.

Every package enters git here. Trees depend on contents alone and commits on their parts alone, so
the commits and trees of a run do not depend on time or place.
"""

import contextlib
import os
import pwd
from collections.abc import Collection, Mapping, Sequence
from pathlib import Path

from mimir.domain.globs import matches
from mimir.errors import WorkspaceError
from mimir.workspace.git import (
    adoption,
    base_capture,
    checkout,
    commits,
    filtered_files,
    hidden_files,
    object_check,
    readonly_view,
    snapshot,
    trees,
    user_branch,
    user_refs,
)
from mimir.workspace.git import merge as merging
from mimir.workspace.git.base_capture import BaseCommit
from mimir.workspace.git.commits import is_object
from mimir.workspace.git.git_question import GitAnswers, git_question
from mimir.workspace.git.hidden_repository import HiddenRepository, open_repository
from mimir.workspace.git.ignore_rules import pinned_rules
from mimir.workspace.git.merge import TreeMerge
from mimir.workspace.git.remote import CommitExchange, GitRemote
from mimir.workspace.git.snapshot import WorkspaceSnapshot
from mimir.workspace.git.trees import TreeChange, TreeEntry
from mimir.workspace.installed_modules import list_installed_modules

MAX_DIFF_BYTES = 200_000


class GitHistory(GitAnswers):
    """The history of one project; created by `open`."""

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
        environment: Path | None = None,
        program: str = "git",
        remote: GitRemote | None = None,
    ) -> "GitHistory":
        """Open the history of a project, creating it if it is missing; several processes may.

        Args:
            project: The user's directory: a git repository, a part of one, or a plain directory.
            gitdir: The hidden repository.
            owner: User and group id of files in workspaces. None: those of the engine.
            home: Directory of the user's global ignore file. None: the home of the account.
            environment: Python environment of the project in another directory.
            program: The git to run.
            remote: Where objects are exchanged. None: all processes work in this directory.
        """
        home = home or Path(pwd.getpwuid(os.getuid()).pw_dir)
        hidden = await open_repository(
            project, gitdir, program=program, owner=owner, home=home, environment=environment
        )
        return cls(hidden, CommitExchange(hidden, remote) if remote and remote.url else None)

    @property
    def is_repository(self) -> bool:
        """True if the project is in a git repository."""
        return self._hidden.user is not None

    @property
    def is_exchanged(self) -> bool:
        """True if processes in other directories can fetch the objects that are created here."""
        return self._exchange is not None

    async def share(self) -> None:
        """Push the objects since the last time, if there is a remote."""
        if self._exchange:
            await self._exchange.share()

    async def _have(self, *ids: str | None) -> None:
        if self._exchange:
            await self._exchange.have(id for id in ids if id and is_object(id))

    def _made(self, *, tree: str = "", commit: str = "") -> None:
        if self._exchange:
            self._exchange.queue_push(tree=tree, commit=commit)

    async def lineage(self) -> str:
        """Return a hash that all clones of the project share; empty: there is none."""
        return await adoption.lineage(self._hidden)

    async def rules(self) -> str:
        """Return the rules of the last base besides its own ignore files, a line each."""
        return await pinned_rules(self._hidden)

    async def serve(self, run: str, base: str) -> bool:
        """Prepare for a run; False: this directory neither started nor adopted it."""
        if self._exchange:
            self._exchange.serve(run)
        self._away = adoption.is_away(self._hidden, run)
        return await adoption.is_pinned(self._hidden, run, base)

    async def is_related(self, base: str, *, hidden: Sequence[str] = ()) -> bool:
        """Fetch a base and return whether it is of the same project as this directory."""
        await self._have(base)
        return await adoption.is_related(self._hidden, base, tuple(hidden))

    async def adopt(
        self, run: str, base: str, *, head: str | None, hidden: Sequence[str], rules: str
    ) -> None:
        """Serve a run of another directory; the arguments are its `base` and `rules`."""
        await self._have(base)
        await adoption.adopt(
            self._hidden, run, base, head=head, left_out=tuple(hidden), rules=rules
        )
        self._away = True

    @property
    def is_away(self) -> bool:
        """True if another directory started the run: its result stays out of this one."""
        return self._away

    async def base(
        self, run: str, *, hidden: Sequence[str] = (), when: int | None = None
    ) -> BaseCommit:
        """Record the project as it is, with uncommitted changes, and pin it for the run.

        The base of a clean work tree is the user's commit; its time is the default of `when`.
        Top-level names of `hidden` are left out.
        """
        if self._exchange:
            self._exchange.serve(run)
        captured = await base_capture.base(self._hidden, run, left_out=hidden, when=when)
        self._made(commit=captured.commit)
        return captured

    async def fill(self, source: str, where: Path, index: Path, *, base: str | None = None) -> None:
        """Make `where` hold exactly a commit or tree; ignored files survive.

        The ignore rules are those of `base`, else of the first `source` of this index.
        """
        await self._have(source, base)
        known = await checkout.rules_of(self._hidden, index, base, first=source)
        await checkout.fill_directory(self._hidden, source, where, index, known)

    async def snapshot(
        self, where: Path, index: Path, *, files: Sequence[str] = (), base: str | None = None
    ) -> WorkspaceSnapshot:
        """Record a workspace as a tree, `files` even if ignored; no process may work in it."""
        await self._have(base)
        known = await checkout.rules_of(self._hidden, index, base)
        taken = await snapshot.snapshot(self._hidden, where, index, files=files, base=known)
        self._made(tree=taken.tree)
        return taken

    async def checkout(self, source: str, where: Path) -> None:
        """Make `where` a clean checkout of a commit or tree."""
        await self._have(source)
        await checkout.checkout(self._hidden, source, where)

    async def make_repository(self, where: Path) -> None:
        """Make a directory a git repository of its own; its one commit holds every file."""
        await checkout.make_repository(self._hidden, where)

    @git_question("commit", str, without="when")
    async def commit(
        self, tree: str, parents: Sequence[str], message: str, *, when: int | None = None
    ) -> str:
        """Create a commit and return its id; equal parts give an equal id."""
        await self._have(tree, *parents)
        commit_id = await commits.commit(self._hidden, tree, parents, message, when=when)
        self._made(commit=commit_id)
        return commit_id

    async def tree(self, source: str) -> str:
        """Return the tree of a commit or tree."""
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
        """Merge two commits, or two trees or commits over `base`; edits of one file merge too."""
        await self._have(ours, theirs, base)
        merged = await merging.merge(self._hidden, ours, theirs, base=base, labels=labels)
        self._made(tree=merged.tree)
        return merged

    @git_question("restrict", tuple[str, tuple[str, ...]])
    async def restrict(
        self, tree: str, base: str, *, files: Sequence[str], touched: Sequence[str] = ()
    ) -> tuple[str, tuple[str, ...]]:
        """Undo changes outside of `files` and `touched`; return the tree and the undone paths."""
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
        """Return `tree` with the files that `globs` match as in `from_tree`."""
        await self._have(tree, from_tree)
        changes = await trees.diff_trees(self._hidden, tree, from_tree)
        exact = frozenset(globs)  # thousands of paths are found at once
        edits = {
            one.path: one.new for one in changes if one.path in exact or matches(one.path, globs)
        }
        edited_tree = await trees.edit_tree(self._hidden, tree, edits)
        self._made(tree=edited_tree)
        return edited_tree

    async def edit_files(self, tree: str, files: Mapping[str, tuple[str, bytes] | None]) -> str:
        """Return `tree` with each of these files as (mode, content); None: removed."""
        await self._have(tree)
        edits = {
            path: None
            if one is None
            else TreeEntry(mode=one[0], blob=await trees.put_blob(self._hidden, one[1]), path=path)
            for path, one in files.items()
        }
        return await trees.edit_tree(self._hidden, tree, edits)

    @git_question("changed", tuple[TreeChange, ...])  # name in recordings
    async def diff_trees(self, a: str, b: str) -> tuple[TreeChange, ...]:
        """Return the files that differ from `a` to `b` (commits or trees)."""
        await self._have(a, b)
        return await trees.diff_trees(self._hidden, a, b)

    @git_question("filtered", tuple[str, ...])
    async def filtered(self, trees: Sequence[str], paths: Sequence[str]) -> tuple[str, ...]:
        """Return those of `paths` that git stores through a filter, by the attributes of `trees`."""
        await self._have(*trees)
        return await filtered_files.find_filtered(self._hidden, trees, paths)

    @git_question("oversized", tuple[str, ...])
    async def oversized(self, a: str, b: str, most_bytes: int) -> tuple[str, ...]:
        """Return the largest files of `b` without which its changes since `a` fit `most_bytes`."""
        await self._have(a, b)
        return await trees.find_oversized(self._hidden, a, b, most_bytes)

    @git_question("diff", str, without="max_bytes")
    async def diff(
        self, a: str, b: str, *, paths: Sequence[str] = (), max_bytes: int = MAX_DIFF_BYTES
    ) -> str:
        """Return the patch from `a` to `b`, cut with a mark after `max_bytes`."""
        await self._have(a, b)
        return await trees.diff(self._hidden, a, b, paths=paths, max_bytes=max_bytes)

    @git_question("file", bytes)
    async def file(self, source: str, path: str) -> bytes | None:
        """Return the bytes of a file, or the target of a link; None: there is none."""
        await self._have(source)
        return await trees.file(self._hidden, source, path)

    async def may_hold_text(self, tree: str, text: str) -> bool:
        """Return whether a file of a tree holds a text; True also if git cannot tell."""
        await self._have(tree)
        return await trees.may_hold_text(self._hidden, tree, text)

    async def blob(self, id: str) -> bytes:
        """Return the bytes of a blob; raise WorkspaceError if there is none."""
        return await trees.blob(self._hidden, id)

    @git_question("paths", tuple[str, ...])
    async def paths(self, source: str, globs: Sequence[str] | None = None) -> tuple[str, ...]:
        """List the paths of a commit or tree that `globs` match; None: all."""
        await self._have(source)
        listed = [entry.path for entry in await trees.entries(self._hidden, source)]
        return tuple(path for path in listed if globs is None or matches(path, globs))

    @property
    def installed_modules(self) -> Collection[str]:
        """Python modules that commands in the project can import from installed packages."""
        return list_installed_modules(self._hidden.project, self._hidden.environment)

    @git_question("installed", tuple[str, ...])
    async def find_installed(self, names: Sequence[str]) -> tuple[str, ...]:
        """List those of `names` that are modules of installed packages."""
        return tuple(name for name in names if name in self.installed_modules)

    async def entries(self, source: str) -> tuple[TreeEntry, ...]:
        """List the files of a commit or tree with mode and blob id."""
        await self._have(source)
        return tuple(await trees.entries(self._hidden, source))

    @git_question("links_out", tuple[str, ...])
    async def links_out(self, source: str, among: Sequence[str] | None = None) -> tuple[str, ...]:
        """Return the links of a commit or tree (of `among` only) that lead out of it."""
        await self._have(source)
        return await trees.links_out(self._hidden, source, among)

    @git_question("hidden_links", tuple[str, ...])
    async def hidden_links(
        self, base: str, tree: str, among: Sequence[str], tops: Sequence[str]
    ) -> tuple[str, ...]:
        """Return the links (of `among`) of a tree to paths that `base` ignores or to `tops`."""
        await self._have(base, tree)
        return await hidden_files.find_hidden_links(self._hidden, base, tree, among, tops)

    @git_question("unignored", tuple[str, ...])
    async def unignored(self, base: str, tree: str) -> tuple[str, ...]:
        """Return existing files of the user that `base` ignores and `tree` does not."""
        await self._have(base, tree)
        return await hidden_files.find_unignored(self._hidden, base, tree)

    async def show_files(self, paths: Sequence[str]) -> None:
        """Record that the user accepts these files, ignored earlier, in later runs."""
        await hidden_files.show_files(self._hidden, paths)

    async def view(self, commit: str, where: Path | None = None) -> Path:
        """Return a read-only git directory of `commit` and its history, for the sandbox."""
        await self._have(commit)
        return await readonly_view.view(self._hidden, commit, where)

    async def branch(self, name: str, commit: str) -> str:
        """Create or move the branch `mimir/<name>` to a commit; return the full name.

        For a plain directory it is hidden; away, the commit is only pinned. A branch that is
        checked out is not moved: WorkspaceError, and the commit is pinned.
        """
        await self._have(commit)
        if self._away:
            return await user_refs.pin_ref(self._hidden, name, commit)
        return await user_refs.branch(self._hidden, name, commit)

    async def trees(self, sources: Sequence[str]) -> list[str]:
        """Return the tree of each commit or tree, in this order; empty: there is none."""
        await self._fetch_for_proof(sources)
        return await commits.trees_of(self._hidden, sources)

    async def message(self, commit: str) -> str:
        """Return the message of a commit; raise WorkspaceError if there is none."""
        return await commits.message_of(self._hidden, commit)

    async def commit_for_person(
        self, files: Mapping[str, TreeEntry | None], message: str, *, when: int | None = None
    ) -> str:
        """Commit exactly these files (None: removed) on the user's current branch."""
        return await user_branch.commit_for_person(self._hidden, files, message, when=when)

    async def verify_objects(self, commits: Sequence[str], trees: Sequence[str] = ()) -> list[str]:
        """Describe every object reachable from these that is missing or changed."""
        await self._fetch_for_proof((*commits, *trees))
        return await object_check.verify(self._hidden, commits, trees)

    async def _fetch_for_proof(self, ids: Sequence[str]) -> None:
        # The proof itself names objects that cannot be fetched.
        with contextlib.suppress(WorkspaceError):
            await self._have(*ids)
