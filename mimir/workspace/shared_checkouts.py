"""Read-only workspaces, one for each tree, shared by attempts (decision 0009).

They save a checkout: one git and one write for each file. Switched off, wall time over httpx2 rose
from 1.70 to 2.47 (2026-11-26, alternating runs of the engine benchmark's subject process, loaded
machine).
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
    """A read-only workspace with its number of readers."""

    where: Path
    source: str
    base: str
    readers: int = 0
    is_filled: bool = False
    filling: asyncio.Lock = field(default_factory=asyncio.Lock)


class SharedCheckouts:
    """The shared workspaces of one process in one run."""

    def __init__(self, history: GitHistory, room: Path) -> None:
        """Share workspaces below `room`, a directory of this process alone."""
        self._history = history
        self._room = room
        self._loans: dict[tuple[str, str], SharedCheckout] = {}
        self._numbers = itertools.count(1)

    async def borrow(self, source: str, base: str) -> SharedCheckout:
        """Return a directory of exactly a tree, to read until `give_back` or `keep`."""
        loan = self._loans.get((source, base))
        if loan is None:
            loan = SharedCheckout(self._room / str(next(self._numbers)), source, base)
            self._loans[source, base] = loan
        # Counted before the wait: a checkout that is in use is never removed.
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
        """End a loan. The last unused directory stays for the next reader."""
        loan.readers -= 1
        idle = [each for each in self._loans.values() if not each.readers and each is not loan]
        for each in idle:
            del self._loans[each.source, each.base]
        for each in idle:
            with contextlib.suppress(WorkspaceError):  # removed with the run
                await to_thread_shielded(_clear, each.where)

    async def keep(self, loan: SharedCheckout, where: Path) -> bool:
        """Move a loan to `where` as its own workspace; False: it has other readers."""
        if loan.readers > 1:
            return False
        del self._loans[loan.source, loan.base]
        await to_thread_shielded(_move, loan.where, where)
        return True


def index_of(where: Path) -> Path:
    """Return the path of the index of a workspace, next to it."""
    return where.with_name(f"{where.name}.index")


def _with_notes(where: Path) -> list[Path]:
    return [where, *where.parent.glob(f"{where.name}.index*")]


def _clear(where: Path) -> None:
    for path in _with_notes(where):
        remove_tree(path)


def _move(where: Path, to: Path) -> None:
    to.parent.mkdir(parents=True, exist_ok=True)
    # The directory last: without its index it would count as damaged.
    for path in reversed(_with_notes(where)):
        path.replace(to.with_name(path.name.replace(where.name, to.name, 1)))
