"""One attempt's workspace: filled when the lane goes live, its tree taken after each effect, its last tree made a commit."""

import asyncio
import os
import tomllib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import cast

from mimir.attempts.desk import Desk, OpenLane

ENGINES_OWN = ".mimir"
"""Ignored in every project, so that a tree never holds it, whatever a command put there."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Made:
    """The deliverable's tree and what there is to say of it."""

    tree: str
    changed: tuple[str, ...]
    left_out: tuple[str, ...]
    in_base: tuple[str, ...]
    links_out: tuple[str, ...]
    notes: tuple[str, ...]
    tool_table_changed: bool


class Place:
    """The workspace of one attempt and fence."""

    def __init__(self, desk: Desk) -> None:
        self._desk = desk
        self._index = desk.where.with_name(f"{desk.where.name}.index")
        self._notes: list[str] = []
        self.lane: OpenLane | None = None

    async def restore(self, tree: str) -> None:
        """Fill the directory with a recorded tree; "" is the attempt's start."""
        desk = self._desk
        await desk.history.fill(
            tree or desk.start.tree, desk.where, self._index, base=desk.start.base_tree
        )

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

    async def deliverable(self) -> Made:
        """Take the lane's last tree as the deliverable; changes outside the task's `files` are left out."""
        desk = self._desk
        last = (self.lane.tree if self.lane else "") or desk.start.tree
        base = desk.start.base_tree
        tree, left_out = await desk.history.restrict(last, base, files=desk.task.files)
        changes = await desk.history.changed(base, tree)
        changed = tuple(change.path for change in changes)
        return Made(
            tree=tree,
            changed=changed,
            left_out=tuple(left_out),
            in_base=tuple(c.path for c in changes if c.status != "added"),
            links_out=tuple(await desk.history.links_out(tree, changed)),
            notes=tuple(dict.fromkeys(self._notes)),
            tool_table_changed=await self._tool_table_changed(base, tree, changed),
        )

    async def commit(self, made: Made) -> str:
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
