"""Workspaces that nobody writes in: one for each tree, lent to every attempt that only looks at it.

A checkout costs a git and a file system entry a file, and an attempt often looks before it changes anything, or never changes anything.
"""

import asyncio
import contextlib
import itertools
from dataclasses import dataclass, field
from pathlib import Path

from mimir.errors import WorkspaceError
from mimir.workspace.aio import to_thread_shielded
from mimir.workspace.git.history import GitHistory
from mimir.workspace.tree_removal import remove_tree


@dataclass(slots=True, eq=False)
class SharedCheckout:
    """A lent workspace, shared by all who look at it."""

    where: Path
    source: str
    base: str
    readers: int = 0
    is_filled: bool = False
    filling: asyncio.Lock = field(default_factory=asyncio.Lock)


class SharedCheckouts:
    """The lent workspaces of one process in one run."""

    def __init__(self, history: GitHistory, room: Path) -> None:
        """Lend workspaces below a directory.

        Args:
            history: Where trees are.
            room: This process's own, and nobody's who may write in it.
        """
        self._history = history
        self._room = room
        self._loans: dict[tuple[str, str], SharedCheckout] = {}
        self._numbers = itertools.count(1)

    async def borrow(self, source: str, base: str) -> SharedCheckout:
        """Return a directory that holds exactly a tree, to look at; `give_back` or `keep` ends that.

        Args:
            source: Commit or tree.
            base: Commit or tree whose ignore rules hold.

        Raises:
            WorkspaceError: It cannot be made; nothing was borrowed.
        """
        loan = self._loans.get((source, base))
        if loan is None:
            loan = SharedCheckout(self._room / str(next(self._numbers)), source, base)
            self._loans[source, base] = loan
        loan.readers += 1
        try:
            async with loan.filling:
                if not loan.is_filled:
                    await self._history.fill(source, loan.where, index_of(loan.where), base=base)
                    loan.is_filled = True
        except BaseException:
            loan.readers -= 1
            raise
        return loan

    async def give_back(self, loan: SharedCheckout) -> None:
        """End a loan. The last directory that nobody looks at stays for the next one who would."""
        loan.readers -= 1
        idle = [each for each in self._loans.values() if not each.readers and each is not loan]
        for each in idle:
            del self._loans[each.source, each.base]
        for each in idle:
            with contextlib.suppress(WorkspaceError):  # it goes with the run's room
                await to_thread_shielded(_clear, each.where)

    async def keep(self, loan: SharedCheckout, where: Path) -> bool:
        """Make what was borrowed a workspace of one's own, if nobody else looks at it; False: it stays a loan.

        Args:
            loan: What was borrowed.
            where: The workspace; must not exist.
        """
        if loan.readers > 1:
            return False
        del self._loans[loan.source, loan.base]
        await to_thread_shielded(_move, loan.where, where)
        return True


def index_of(where: Path) -> Path:
    """Return where a workspace's index is kept: beside it."""
    return where.with_name(f"{where.name}.index")


def _with_notes(where: Path) -> list[Path]:
    """Return a workspace and what is kept beside it."""
    return [where, *where.parent.glob(f"{where.name}.index*")]


def _clear(where: Path) -> None:
    for path in _with_notes(where):
        remove_tree(path)


def _move(where: Path, to: Path) -> None:
    to.parent.mkdir(parents=True, exist_ok=True)
    # The directory last: one without its index would be taken for a damaged one.
    for path in reversed(_with_notes(where)):
        path.replace(to.with_name(path.name.replace(where.name, to.name, 1)))
