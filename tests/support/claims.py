"""Claims and moves of run "r1", short."""

from typing import Any

from mimir.domain.event import Event, EventKind
from mimir.domain.task_states import TaskStatus, TransitionActor
from mimir.store.operations import claims, runs
from mimir.store.operations.claims import Claim
from mimir.store.protocol import Row, Transactions, Value, WriteOps


async def claim(
    store: Transactions, owner: str = "w1", *, lease_seconds: float = 300, **how: Any
) -> list[Claim]:
    """Claim tasks of run "r1"."""
    return await store.write(
        lambda ops: claims.claim(ops, "r1", owner, lease_seconds=lease_seconds, **how)
    )


async def move(
    store: Transactions,
    held: Claim,
    to: TaskStatus,
    mover: TransitionActor = TransitionActor.MACHINE,
    *,
    fence: int | None = None,
    props: Row | None = None,
    kind: EventKind = EventKind.WORK_ANSWERED,
    **how: Any,
) -> None:
    """Move a claimed task."""
    fence = held.fence if fence is None else fence

    def work(ops: WriteOps) -> None:
        if props:
            ops.patch("Task", f"r1/{held.task}", props)
        claims.move(ops, "r1", held.task, fence, to, mover, kind=kind, **how)

    await store.write(work)


async def row(store: Transactions, task: str = "a") -> Row:
    """Return a task's row."""
    found = await store.read(lambda reads: reads.get("Task", f"r1/{task}"))
    assert found is not None
    return found


async def events(store: Transactions, *kinds: EventKind) -> list[Event]:
    """Return the run's events; of these kinds, if any are named."""
    return [
        e for e in await store.read(lambda r: runs.events(r, "r1")) if not kinds or e.kind in kinds
    ]


def lock_of(row: Row) -> dict[str, Value]:
    """Return the lease of a row."""
    return {k: row[k] for k in ("lockedBy", "lockedAt", "expiresAt", "claimState") if k in row}
