"""One attempt's workspace: made for its first effect, its tree taken after each, its last tree made a commit.

Until then its tools look at a lent one of the same tree.
"""

import asyncio
import os
import tomllib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import cast

from mimir.attempts.services import AttemptServices, OpenLane
from mimir.workspace.shared_checkouts import SharedCheckout, index_of

ENGINES_OWN = ".mimir"
"""Ignored in every project, so that a tree never holds it, whatever a command put there."""


@dataclass(frozen=True, slots=True, kw_only=True)
class WorkspaceDiff:
    """The deliverable's tree and what there is to say of it."""

    tree: str
    changed: tuple[str, ...]
    left_out: tuple[str, ...]
    in_base: tuple[str, ...]
    links_out: tuple[str, ...]
    notes: tuple[str, ...]
    tool_table_changed: bool


class AttemptWorkspace:
    """The workspace of one attempt and fence."""

    def __init__(self, desk: AttemptServices) -> None:
        self._desk = desk
        self._index = index_of(desk.where)
        self._notes: list[str] = []
        self._tree = desk.start.tree
        self._loan: SharedCheckout | None = None
        self._is_made = False
        self.lane: OpenLane | None = None

    def restore(self, tree: str) -> None:
        """Begin with a recorded tree; "" is the attempt's start."""
        self._tree = tree or self._desk.start.tree

    async def stand(self, effectful: bool, /) -> Path:
        """Return the directory in which a call works; made if it is not there yet.

        Args:
            effectful: True: the call may change something; it and all later ones work in the attempt's own.
        """
        desk = self._desk
        if self._is_made:
            return desk.where
        if effectful:
            await self._make()
            return desk.where
        if self._loan is None:
            self._loan = await desk.lending.borrow(self._tree, desk.start.base_tree)
        return self._loan.where

    async def leave(self) -> None:
        """Give back what was borrowed."""
        loan, self._loan = self._loan, None
        if loan is not None:
            await self._desk.lending.give_back(loan)

    async def _make(self) -> None:
        desk, loan = self._desk, self._loan
        if loan is not None and await desk.lending.keep(loan, desk.where):
            self._loan = None
        else:
            base = desk.start.base_tree
            await desk.history.fill(self._tree, desk.where, self._index, base=base)
            await self.leave()
        self._is_made = True

    async def snapshot(self) -> str:
        """Take the tree as it is now; nested repositories are removed first and noted."""
        desk = self._desk
        # A recorded tree may hold a worker's own `.gitignore`: what is ignored is said by the base.
        taken = await desk.history.snapshot(
            desk.where, self._index, files=desk.task.files, base=desk.start.base_tree
        )
        self._notes += [
            f"The nested repository {path!r} was removed; it would have vanished."
            for path in taken.nested
        ]
        if await asyncio.to_thread(os.path.lexists, desk.where / ENGINES_OWN):
            self._notes.append(
                f"What was put into {ENGINES_OWN!r} is not in the deliverable: that folder is the engine's own."
            )
        return taken.tree

    async def deliverable(self) -> WorkspaceDiff:
        """Take the lane's last tree as the deliverable; changes outside the task's `files` are left out."""
        desk = self._desk
        last = (self.lane.tree if self.lane else "") or desk.start.tree
        base = desk.start.base_tree
        tree, left_out = await desk.history.restrict(last, base, files=desk.task.files)
        changes = await desk.history.diff_trees(base, tree)
        changed = tuple(change.path for change in changes)
        return WorkspaceDiff(
            tree=tree,
            changed=changed,
            left_out=tuple(left_out),
            in_base=tuple(c.path for c in changes if c.status != "added"),
            links_out=tuple(await desk.history.links_out(tree, changed)),
            notes=tuple(dict.fromkeys(self._notes)),
            tool_table_changed=await self._tool_table_changed(base, tree, changed),
        )

    async def commit(self, made: WorkspaceDiff) -> str:
        """Commit the deliverable on its base; "" if nothing was changed."""
        desk = self._desk
        if not made.changed:
            return ""
        message = f"{desk.task.id}: {desk.task.title}\n\nMimir-Attempt: {desk.chain}\n"
        return await desk.history.commit(made.tree, [desk.start.base_commit], message)

    async def _tool_table_changed(self, base: str, tree: str, changed: Sequence[str]) -> bool:
        if "pyproject.toml" not in changed:
            return False
        history = self._desk.history
        before = await history.file(base, "pyproject.toml")
        after = await history.file(tree, "pyproject.toml")
        return _table(before) != _table(after)


def _table(content: bytes | None) -> object:
    """Return [tool.mimir] of a pyproject.toml; what cannot be read is compared by its bytes."""
    if content is None:
        return None
    try:
        tool: object = tomllib.loads(content.decode("utf-8")).get("tool")
    except (UnicodeDecodeError, tomllib.TOMLDecodeError):
        return None if b"mimir" not in content else content
    return cast("Mapping[str, object]", tool).get("mimir") if isinstance(tool, dict) else None
