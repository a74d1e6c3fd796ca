"""Deaths, and the moves that no holder makes: release, block, cancel."""

import pytest

from mimir.domain.event import EventKind
from mimir.domain.task_states import TaskStatus, TransitionActor
from mimir.errors import IllegalMove, LeaseLost, StoreError
from mimir.store.operations import claims
from tests.support.claims import claim, events, move, row
from tests.support.stored_rows import task_rows
from tests.support.stored_run import start, task

S = TaskStatus


# Deaths


async def die(store, n, gained=0):
    """Let the holder gain outcomes and die; the claim that takes over."""
    (held,) = await claim(store, f"w{n}", dead=(f"w{n - 1}",))
    if gained:
        await store.write(lambda ops: claims.record_progress(ops, "r1", "a", held.fence, gained))
    return held


async def test_third_death_in_a_row_without_an_outcome_fails_the_task(store):
    await start(store, task("a"))

    assert [(await die(store, n)).died for n in range(5)] == [False, False, False, True, True]


async def test_any_gained_outcome_begins_the_count_again(store):
    await start(store, task("a"))

    died = [(await die(store, n, gained=1 if n in (2, 4) else 0)).died for n in range(9)]

    assert died == [False] * 7 + [False, True]


async def test_given_back_lease_is_no_death(store):
    await start(store, task("a"))

    for n in range(6):
        (held,) = await claim(store, f"w{n}")
        assert held.died is False
        await store.write(lambda ops, f=held.fence: claims.release_claim(ops, "r1", "a", f))


async def twice_dead(store, *tasks):
    """Start a run whose tasks have lost two holders, w1 and w2, without gaining anything."""
    await start(store, *tasks)
    await claim(store, "w1", limit=9)
    assert len(await claim(store, "w2", limit=9, dead=("w1",))) == len(tasks)


async def test_tasks_that_one_more_death_would_end_are_taken_one_at_a_time(store):
    await twice_dead(store, task("a"), task("b"))

    (held,) = await claim(store, "w3", limit=9, dead=("w2",))
    assert (held.task, held.suspect) == ("a", True)
    more = {"limit": 9, "dead": ("w2",), "has_suspect": True}
    assert await claim(store, "w3", **more) == [], "b waits until a has come to rest"
    assert [c.task for c in await claim(store, "w4", limit=9, dead=("w2",))] == ["b"]


async def test_only_the_suspected_task_of_dead_processes_counts_its_death(store):
    await twice_dead(store, task("guilty"), task("innocent"))
    (held,) = await claim(store, "w3", limit=9, dead=("w2",))
    assert held.task == "guilty"

    last = await claim(store, "w4", limit=9, dead=("w3", "w2"))

    assert {c.task: c.died for c in last} == {"guilty": True, "innocent": False}


async def test_outcome_is_written_only_under_the_fence(store):
    await start(store, task("a"))
    (held,) = await claim(store)

    await store.write(lambda ops: claims.record_progress(ops, "r1", "a", held.fence, 2))
    await store.write(lambda ops: claims.record_progress(ops, "r1", "a", held.fence, 0))
    with pytest.raises(LeaseLost):
        await store.write(lambda ops: claims.record_progress(ops, "r1", "a", held.fence - 1, 1))

    assert (await row(store))["outcomes"] == 2


# Scheduling's moves


async def test_release_of_a_task_has_one_event(store):
    await start(store, task("a"), task("b"), released=False)

    async def release(*ready):
        return await store.write(lambda ops: claims.release_task(ops, "r1", ready))

    assert await release(("a", 2.5), ("b", 1.0)) == 2
    assert await release(("a", 9.0)) == 0

    told = await events(store, EventKind.TASK_READY)
    assert [(e.task, e.data) for e in told] == [("a", {"priority": 2.5}), ("b", {"priority": 1.0})]
    assert (await row(store))["released"] is True


async def test_release_of_a_running_task_is_nothing(store):
    await start(store, task("a"))
    await claim(store)

    assert await store.write(lambda ops: claims.release_task(ops, "r1", [("a", 1.0)])) == 0
    assert (await row(store))["claimState"] == "held"


async def test_blocked_task_has_its_cause_and_one_event(store):
    await start(store, task("a"), task("b", "a"), released=False)

    assert await store.write(lambda ops: claims.block_task(ops, "r1", "b", "a")) is True
    assert await store.write(lambda ops: claims.block_task(ops, "r1", "b", "a")) is False

    kept = await row(store, "b")
    assert (kept["status"], kept["cause"], kept["blockedBy"]) == ("blocked", "dependency", "a")
    (event,) = await events(store, EventKind.TASK_BLOCKED)
    assert (event.task, event.data) == ("b", {"because": "a", "from": "pending", "to": "blocked"})


async def test_running_or_unknown_task_cannot_be_blocked(store):
    await start(store, task("a"))
    await claim(store)

    with pytest.raises(IllegalMove):
        await store.write(lambda ops: claims.block_task(ops, "r1", "a", "x"))
    with pytest.raises(StoreError, match="ghost"):
        await store.write(lambda ops: claims.block_task(ops, "r1", "ghost", "x"))


async def test_cancel_ends_open_tasks_and_refuses_their_holders(store):
    await start(store, *(task(t) for t in "abcd"))
    held = {c.task: c for c in await claim(store, limit=3)}
    await move(store, held["a"], S.FAILED, TransitionActor.SCHEDULING, kind=EventKind.TASK_FAILED)
    await move(
        store, held["b"], S.PREPARING_RETRY, TransitionActor.SCHEDULING, kind=EventKind.TASK_RETRIED
    )

    assert await store.write(lambda ops: claims.cancel(ops, "r1")) == ["b", "c", "d"]
    assert await store.write(lambda ops: claims.cancel(ops, "r1")) == []

    rows = await store.read(lambda r: task_rows(r, "r1"))
    assert [r["status"] for r in rows] == ["failed", "cancelled", "cancelled", "cancelled"]
    assert await claim(store, "w2", limit=9) == []
    with pytest.raises(LeaseLost):
        await move(store, held["c"], S.WORKER_COMPLETED)
    with pytest.raises(LeaseLost):
        await store.read(lambda r: claims.load_claimed_task(r, "r1", "c", held["c"].fence))
    told = await events(store, EventKind.TASK_CANCELLED)
    assert [(e.task, e.data["from"]) for e in told] == [
        ("b", "preparing_retry"),
        ("c", "worker_executing"),
        ("d", "pending"),
    ]
    attempt = await store.read(lambda r: r.get("Attempt", "r1/c/1"))
    assert attempt["status"] == "cancelled"


async def test_pending_task_may_be_completed_by_scheduling_without_a_lease(store):
    await start(store, task("a"), released=False)

    await store.write(
        lambda ops: claims.move(
            ops, "r1", "a", 0, S.COMPLETED, TransitionActor.SCHEDULING, kind=EventKind.TASK_COMPLETED
        )
    )  # fmt: skip

    assert (await row(store))["status"] == "completed"
    assert await claim(store) == []
