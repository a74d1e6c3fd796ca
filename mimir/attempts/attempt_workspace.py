"""Workspace of one attempt: created for its first effect, committed as the deliverable.

Until the first effect, tools read a shared checkout of the same tree.
"""

import asyncio
import os
import tomllib
from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path

from mimir.attempts.conflicts import ConflictedFile, find_unsettled, original_path
from mimir.attempts.deliverable import HIDDEN, find_protected_changes
from mimir.attempts.delivered_paths import find_left_out, may_touch_repository
from mimir.attempts.services import AttemptServices
from mimir.attempts.write_scopes import WriteScope, load_write_scope, refuse_changes
from mimir.domain.json_value import as_object
from mimir.domain.message import Message
from mimir.domain.value_class import value_class
from mimir.qc.checks.check_products import describe_products, select_products
from mimir.qc.integrity.check_files import find_snapshots
from mimir.qc.scope.write_scope import WriteRefusal
from mimir.store.transcripts.stored_transcript import StoredTranscript
from mimir.workspace.git.trees import LINK, TreeChange
from mimir.workspace.shared_checkouts import SharedCheckout, index_of

MOST_NOTES = 20
"""Paths of one snapshot that are named one by one."""
STATE_DIRECTORY = ".mimir"
"""Ignored in every project, so no tree contains it."""


@value_class
class WorkspaceDiff:
    """Tree of a deliverable, compared with its base."""

    tree: str
    changed: tuple[str, ...]
    left_out: tuple[str, ...]
    in_base: tuple[str, ...]
    links_out: tuple[str, ...]
    notes: tuple[str, ...]
    tool_table_changed: bool
    filtered: tuple[str, ...]
    """New contents of files that git stores through a filter."""
    oversized: tuple[str, ...]
    """Largest files, without which it would not be too large. Empty: it is not."""
    whole_tree: str
    """Last tree, with the changes that the deliverable leaves out."""


class AttemptWorkspace:
    """Workspace of one attempt under one fence."""

    def __init__(self, services: AttemptServices) -> None:
        self._services = services
        self._index = index_of(services.directory)
        self._notes: list[str] = []
        self._tree = services.start.tree
        self._loan: SharedCheckout | None = None
        self._is_created = False
        self._scope: WriteScope | None = None
        self.transcript: StoredTranscript | None = None

    def restore(self, tree: str) -> None:
        """Start with a recorded tree; "" is the start of the attempt."""
        self._tree = tree or self._services.start.tree

    async def stand(self, effectful: bool, /) -> Path:
        """Return the directory for a call: a shared checkout until the first effectful one."""
        services = self._services
        # Reading calls too must see the changes of earlier ones.
        if self._is_created:
            return services.directory
        if effectful:
            await self._create()
            return services.directory
        if self._loan is None:
            self._loan = await services.checkouts.borrow(self._tree, services.start.base_tree)
        return self._loan.where

    def note(self, text: str) -> None:
        """Note a finding about the deliverable."""
        self._notes.append(text)

    async def leave(self) -> None:
        """Return the shared checkout, if one is used."""
        loan, self._loan = self._loan, None
        if loan is not None:
            await self._services.checkouts.give_back(loan)

    async def _create(self) -> None:
        services, loan = self._services, self._loan
        # A shared checkout that can be taken over saves a second checkout.
        if loan is not None and await services.checkouts.keep(loan, services.directory):
            self._loan = None
        else:
            base = services.start.base_tree
            await services.history.fill(self._tree, services.directory, self._index, base=base)
            await self.leave()
        self._is_created = True

    async def snapshot(self) -> str:
        """Record the current tree; nested repositories are removed first, with a note."""
        services = self._services
        # The base decides which files are ignored: a recorded tree may contain a worker's `.gitignore`.
        taken = await services.history.snapshot(
            services.directory,
            self._index,
            files=services.task.files,
            base=services.start.base_tree,
        )
        self._notes += [
            f"The nested repository {path!r} was removed; a deliverable cannot contain it."
            for path in taken.nested
        ]
        self._notes += [
            f"{path!r} is not in the deliverable: it is a pipe, a socket or a device, its path is too long, or git refuses its name."
            for path in taken.special[:MOST_NOTES]
        ]
        if len(taken.special) > MOST_NOTES:
            self._notes.append(
                f"{len(taken.special)} paths of this kind are not in the deliverable."
            )
        if await asyncio.to_thread(os.path.lexists, services.directory / STATE_DIRECTORY):
            self._notes.append(
                f"Files in {STATE_DIRECTORY!r} are not in the deliverable: the folder belongs to the engine."
            )
        return taken.tree

    async def write_scope(self) -> WriteScope:
        """Return the write scope of the task on the attempt's base."""
        if self._scope is None:
            services = self._services
            plan, base = services.facts.plan, services.start.base_tree
            scope = await load_write_scope(services.history, plan, services.task, base)
            own = services.agent.files if services.agent else ()
            self._scope = replace(scope, within=own)
        return self._scope

    async def deliverable(self) -> WorkspaceDiff:
        """Compare the last tree with the base; changes outside the write scope are left out."""
        services = self._services
        last = (self.transcript.tree if self.transcript else "") or services.start.tree
        base = services.start.base_tree
        # Changes outside the task's `files` must not reach the run branch.
        files = services.task.files
        files = (*files, *find_snapshots(files))
        tree, left_out = await services.history.restrict(last, base, files=files)
        changes = await services.history.diff_trees(base, tree)
        if refused := await self._refused(changes):
            tree = await services.history.with_files(tree, base, tuple(refused))
            self._notes += [reason.message(path) for path, reason in refused.items()]
            left_out = (*left_out, *refused)
            changes = await services.history.diff_trees(base, tree)
        new = [change.path for change in changes if change.status == "added"]
        if made := select_products(services.start.products, new, files):
            tree = await services.history.with_files(tree, base, made)
            self._notes.append(describe_products(made))
            changes = await services.history.diff_trees(base, tree)
        changed = tuple(change.path for change in changes)
        if any(path.rpartition("/")[2] == ".gitignore" for path in changed):
            shown = await services.history.unignored(base, tree)
            if shown:
                self._notes.append(
                    f"The change of the ignore rules shows existing files of the user to git: {len(shown)} paths. The user is asked before it is applied."
                )
        if unsafe := await self._find_left_out(tree, changed):
            tree = await services.history.with_files(tree, base, unsafe)
            left_out = (*left_out, *unsafe)
            changes = await services.history.diff_trees(base, tree)
            changed = tuple(change.path for change in changes)
        return WorkspaceDiff(
            tree=tree,
            changed=changed,
            left_out=tuple(left_out),
            in_base=tuple(c.path for c in changes if c.status != "added"),
            links_out=tuple(
                dict.fromkeys(
                    (
                        *await services.history.links_out(tree, changed),
                        *await self._find_hidden_links(tree, changes),
                    )
                )
            ),
            # A snapshot follows each effect, so the same note may repeat.
            notes=tuple(dict.fromkeys(self._notes)),
            tool_table_changed=await self._tool_table_changed(base, tree, changed),
            filtered=await services.history.filtered(
                (base, tree),
                [c.path for c in changes if c.new_blob is not None and c.new_blob != c.old_blob],
            ),
            oversized=await services.history.oversized(
                base, tree, services.facts.deliverable_limits.most_bytes
            ),
            whole_tree=last,
        )

    async def find_unsettled(self, tree: str, messages: Sequence[Message]) -> tuple[str, ...]:
        """Return the conflicts of the start that a tree and the calls leave unsettled."""
        start, history = self._services.start, self._services.history
        if not start.conflicts:
            return ()
        trees = (start.base_tree, start.earlier_tree, start.tree, tree)
        touched = {change.path for change in await history.diff_trees(start.tree, tree)}
        files: list[ConflictedFile] = []
        for path in start.conflicts:
            ours, theirs, written, delivered = [await history.file(one, path) for one in trees]
            files.append(
                ConflictedFile(
                    path=path,
                    ours=ours,
                    theirs=theirs,
                    written=written,
                    delivered=delivered,
                    is_unchanged=path not in touched,
                )
            )
        return find_unsettled(files, messages)

    async def restore_earlier(self, tree: str, unsettled: Sequence[str]) -> str:
        """Return `tree` with these paths as in the attempt before, so that the conflict returns."""
        paths = dict.fromkeys((*unsettled, *map(original_path, unsettled)))
        earlier = self._services.start.earlier_tree
        return await self._services.history.with_files(tree, earlier, tuple(paths))

    async def _refused(self, changes: Sequence[TreeChange]) -> Mapping[str, WriteRefusal]:
        scope = await self.write_scope()
        # A changed protected file rejects the attempt: checks restore it, and the verdict names it.
        in_base = [change.path for change in changes if change.status != "added"]
        protected = find_protected_changes(self._services.task, in_base, in_base)
        refused = await refuse_changes(scope, self._services.history, changes)
        return {path: reason for path, reason in refused.items() if path not in protected}

    async def _find_hidden_links(self, tree: str, changes: Sequence[TreeChange]) -> tuple[str, ...]:
        # Few deliverables have links: others need no list of the tree.
        links = [change.path for change in changes if change.mode == LINK]
        base = self._services.start.base_tree
        return await self._services.history.hidden_links(base, tree, links, HIDDEN) if links else ()

    async def _find_left_out(self, tree: str, changed: Sequence[str]) -> tuple[str, ...]:
        # Few deliverables have such names: others need no list of the tree.
        asks = may_touch_repository(changed)
        paths = await self._services.history.paths(tree) if asks else ()
        unsafe, notes = find_left_out(changed, paths)
        self._notes += notes
        return unsafe

    async def commit(self, diff: WorkspaceDiff) -> str:
        """Commit the deliverable on its base; return "" if nothing was changed."""
        services = self._services
        # Without a change the verdict is on the answer alone.
        if not diff.changed:
            return ""
        message = f"{services.task.id}: {services.task.title}\n\nMimir-Attempt: {services.chain}\n"
        return await services.history.commit(diff.tree, [services.start.base_commit], message)

    async def _tool_table_changed(self, base: str, tree: str, changed: Sequence[str]) -> bool:
        # [tool.mimir] would change the settings of the user's next run.
        if "pyproject.toml" not in changed:
            return False
        history = self._services.history
        before = await history.file(base, "pyproject.toml")
        after = await history.file(tree, "pyproject.toml")
        return _mimir_table(before) != _mimir_table(after)


def _mimir_table(content: bytes | None) -> object:
    """Return [tool.mimir] of a pyproject.toml; an unreadable file is compared by its bytes."""
    if content is None:
        return None
    try:
        document: object = tomllib.loads(content.decode("utf-8"))
    except (UnicodeDecodeError, tomllib.TOMLDecodeError):
        return None if b"mimir" not in content else content
    return as_object(as_object(document).get("tool")).get("mimir")
