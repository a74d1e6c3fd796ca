"""Audit of git objects in records: each exists unchanged, commits hold the sealed tree."""

from collections.abc import Sequence
from dataclasses import dataclass

from mimir.domain.deliverable import Deliverable
from mimir.domain.json_value import as_member
from mimir.domain.task_states import RUN_ENDED
from mimir.errors import StoreError, WorkspaceError
from mimir.reporting.audit.audit_data import AuditData
from mimir.store.records.audited_records import AuditedAttemptRecord
from mimir.workspace.git.history import GitHistory

MOST_PLACED = 20
"""Damaged objects whose record is searched; the others are reported for the run."""


@dataclass(frozen=True, slots=True)
class _NamedObject:
    """Git object that a record or a node names."""

    owner: str
    id: str
    tree: str
    """Tree that it must have. Equal to `id`: it is a tree."""

    @property
    def is_tree(self) -> bool:
        """Whether it is a tree, not a commit."""
        return self.id == self.tree


async def problems(data: AuditData, history: GitHistory) -> list[str]:
    """Return the problems of the objects that the records and nodes of a run name."""
    named = _list_objects(data)
    trees = await history.trees([one.id for one in named])
    found = [_describe_problem(one, tree) for one, tree in zip(named, trees, strict=True)]
    there = [one for one, tree in zip(named, trees, strict=True) if tree]
    # Missing objects are reported already; a search from them would repeat that.
    found += await _find_damaged(data.id, there, history)
    found += await _trailer(data, history)
    return [problem for problem in found if problem]


def _describe_problem(one: _NamedObject, tree: str) -> str:
    if not tree:
        return f"{one.owner}: the {'tree' if one.is_tree else 'commit'} {one.id[:12]} that it names is missing or was changed"
    if tree != one.tree:
        return f"{one.owner}: commit {one.id[:12]} does not hold the tree {one.tree[:12]} that was sealed"
    return ""


def _list_objects(data: AuditData) -> list[_NamedObject]:
    """Return the objects, each once, with the record that names it first."""
    found: dict[tuple[str, str], _NamedObject] = {}

    def add(owner: str, id: str, tree: str) -> None:
        if id:
            found.setdefault((id, tree), _NamedObject(owner, id, tree))

    for name, chain in data.chains.items():
        for one in chain.records:
            for member in ("tree", "baseTree"):
                add(one.id, one.text(member), one.text(member))
        delivered = chain.deliverable
        if delivered and name in data.stored.attempts:
            add(delivered.id, _commit(data.stored.attempts[name]), delivered.text("tree"))
    for task in data.stored.tasks.values():
        add(task.id, task.integrated_commit, task.integrated_tree)
    for commit in (data.stored.run.head, data.stored.run.final_commit):
        add(data.id, commit, data.stored.run.head_tree)
    return list(found.values())


def _commit(attempt: AuditedAttemptRecord) -> str:
    """Return the commit of an attempt's deliverable; empty: none."""
    try:
        return attempt.deliverable.decode(Deliverable).commit
    except StoreError:
        return ""  # `attempt_audit` reports it


async def _find_damaged(run: str, named: Sequence[_NamedObject], history: GitHistory) -> list[str]:
    """Return changed objects, each with the first record that leads to it."""
    left = dict.fromkeys(await _verify(named, history))
    found: list[str] = []
    rest = list(named)
    while left and rest and len(found) < MOST_PLACED:
        place = await _first_bad(rest, history)
        if place is None:
            break
        here = await _verify([rest[place]], history)
        found += [f"{rest[place].owner}: {fault}" for fault in here if fault in left]
        for fault in here:
            left.pop(fault, None)
        rest = rest[place + 1 :]
    return [*found, *(f"{run}: {fault}" for fault in left)]


async def _first_bad(named: Sequence[_NamedObject], history: GitHistory) -> int | None:
    """Return the place of the first one that leads to a damaged object, by bisection."""
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


async def _verify(named: Sequence[_NamedObject], history: GitHistory) -> list[str]:
    return await history.verify_objects(
        [one.id for one in named if not one.is_tree], [one.id for one in named if one.is_tree]
    )


async def _trailer(data: AuditData, history: GitHistory) -> list[str]:
    """Compare the seal in the final commit's message with the run's."""
    run, commit = data.stored.run, data.stored.run.final_commit
    if as_member(run.status, RUN_ENDED) is None:
        return []
    if not commit:
        is_lost = run.head != run.base_commit and bool(run.seal)
        return [f"{data.id}: the final commit, which holds the seal, is gone"] if is_lost else []
    try:
        message = await history.message(commit)
    except WorkspaceError:
        return []  # `_describe_problem` reports it
    wanted = f"Mimir-Seal: {run.seal}"
    if wanted in message.splitlines():
        return []
    return [f"{data.id}: the seal in commit {commit[:12]} is not the run's"]
