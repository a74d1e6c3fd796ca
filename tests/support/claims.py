"""Claims and moves of run "r1", short."""

from mimir.domain.event import EventKind
from mimir.domain.task_states import TransitionActor
from mimir.store.operations import claims, runs


async def claim(store, owner="w1", **how):
    """Claim tasks of run "r1"."""
    return await store.write(
        lambda ops: claims.claim(ops, "r1", owner, **{"lease_seconds": 300, **how})
    )


async def move(
    store,
    held,
    to,
    mover=TransitionActor.MACHINE,
    *,
    fence=None,
    props=None,
    kind=EventKind.WORK_ANSWERED,
    **how,
):
    """Move a claimed task."""
    fence = held.fence if fence is None else fence

    def work(ops):
        if props:
            ops.patch("Task", f"r1/{held.task}", props)
        claims.move(ops, "r1", held.task, fence, to, mover, kind=kind, **how)

    return await store.write(work)


async def row(store, task="a"):
    """Return a task's row."""
    return await store.read(lambda r: r.get("Task", f"r1/{task}"))


async def events(store, *kinds):
    """Return the run's events; of these kinds, if any are named."""
    return [
        e for e in await store.read(lambda r: runs.events(r, "r1")) if not kinds or e.kind in kinds
    ]


def lock_of(row):
    """Return what a row says of its lease."""
    return {k: row[k] for k in ("lockedBy", "lockedAt", "expiresAt", "claimState") if k in row}
