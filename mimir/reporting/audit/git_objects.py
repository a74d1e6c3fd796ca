"""The git objects that records name: is each there, is each what its name says, does each commit hold the tree that was sealed?"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Protocol

from mimir.attempts.results import WORK
from mimir.domain.task_states import RUN_ENDED, RunStatus
from mimir.errors import StoreError, WorkspaceError
from mimir.reporting.audit.audit_data import AuditData, text
from mimir.store.protocol import Row

MOST_PLACED = 20
"""Damaged objects whose record is looked for; the others are named of the run."""


class History(Protocol):
    """What is asked of the hidden history."""

    async def trees(self, sources: Sequence[str]) -> Sequence[str]:
        """Return the tree of each commit or tree, in this order; empty: there is no such object."""
        ...

    async def message(self, commit: str) -> str:
        """Return the message of a commit.

        Raises:
            WorkspaceError: There is no such commit.
        """
        ...

    async def verify_objects(self, commits: Sequence[str], trees: Sequence[str] = ()) -> list[str]:
        """Name every object reachable from these that is missing or was changed."""
        ...


@dataclass(frozen=True, slots=True)
class _NamedObject:
    """An object that a record, or a node, names."""

    owner: str
    id: str
    tree: str
    """The tree that it must have; its own for a tree."""

    @property
    def is_tree(self) -> bool:
        """True if a tree is named, no commit."""
        return self.id == self.tree


async def problems(books: AuditData, history: History) -> list[str]:
    """Name what does not hold of the objects that the run's records and rows name."""
    named = _named(books)
    trees = await history.trees([one.id for one in named])
    found = [_wrong(one, tree) for one, tree in zip(named, trees, strict=True)]
    there = [one for one, tree in zip(named, trees, strict=True) if tree]
    found += await _damaged(books.id, there, history)
    found += await _trailer(books, history)
    return [problem for problem in found if problem]


def _wrong(one: _NamedObject, tree: str) -> str:
    if not tree:
        return f"{one.owner}: the {'tree' if one.is_tree else 'commit'} {one.id[:12]} that it names is missing or was changed"
    if tree != one.tree:
        return f"{one.owner}: commit {one.id[:12]} does not hold the tree {one.tree[:12]} that was sealed"
    return ""


def _named(books: AuditData) -> list[_NamedObject]:
    """Return the objects, each once, with the record that names it first."""
    found: dict[tuple[str, str], _NamedObject] = {}

    def add(owner: str, id: str, tree: str) -> None:
        if id:
            found.setdefault((id, tree), _NamedObject(owner, id, tree))

    for name, chain in books.chains.items():
        for one in chain.records:
            for member in ("tree", "baseTree"):
                add(one.id, one.text(member), one.text(member))
        delivered = chain.deliverable
        if delivered and name in books.attempts:
            add(delivered.id, _commit(books.attempts[name]), delivered.text("tree"))
    for row in books.tasks.values():
        add(str(row["id"]), text(row, "integratedCommit"), text(row, "integratedTree"))
    for commit in ("head", "finalCommit"):
        add(books.id, text(books.run, commit), text(books.run, "headTree"))
    return list(found.values())


def _commit(row: Row) -> str:
    """Return the commit of an attempt's deliverable; empty: it has none, or it cannot be read (which is named elsewhere)."""
    try:
        return WORK.decode(text(row, "workJson")).commit
    except StoreError:
        return ""


async def _damaged(run: str, named: Sequence[_NamedObject], history: History) -> list[str]:
    """Name objects that are not what they were, each of the first record that leads to it."""
    left = dict.fromkeys(await _verify(named, history))
    found: list[str] = []
    rest = list(named)
    while left and rest and len(found) < MOST_PLACED:
        place = await _first_bad(rest, history)
        if place is None:
            break
        here = await _verify([rest[place]], history)
        found += [f"{rest[place].owner}: {what}" for what in here if what in left]
        for what in here:
            left.pop(what, None)
        rest = rest[place + 1 :]
    return [*found, *(f"{run}: {what}" for what in left)]


async def _first_bad(named: Sequence[_NamedObject], history: History) -> int | None:
    """Return the place of the first one that leads to a damaged object, in few looks."""
    if not await _verify(named, history):
        return None
    low, high = 0, len(named)
    while high - low > 1:
        middle = (low + high) // 2
        if await _verify(named[low:middle], history):
            high = middle
        else:
            low = middle
    return low


async def _verify(named: Sequence[_NamedObject], history: History) -> list[str]:
    return await history.verify_objects(
        [one.id for one in named if not one.is_tree], [one.id for one in named if one.is_tree]
    )


async def _trailer(books: AuditData, history: History) -> list[str]:
    """Compare the seal in the final commit's message with the run's."""
    run, commit = books.run, text(books.run, "finalCommit")
    ended: Mapping[str, RunStatus] = {status.value: status for status in RUN_ENDED}
    if text(run, "status") not in ended:
        return []
    if not commit:
        moved = text(run, "head") != text(run, "baseCommit")
        gone = moved and bool(text(run, "seal"))
        return [f"{books.id}: the final commit, which holds the seal, is gone"] if gone else []
    try:
        message = await history.message(commit)
    except WorkspaceError:
        return []  # that it is not there is named already
    wanted = f"Mimir-Seal: {text(run, 'seal')}"
    if wanted in message.splitlines():
        return []
    return [f"{books.id}: the seal in commit {commit[:12]} is not the run's"]
