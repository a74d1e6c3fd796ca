"""Claims, leases, fences and moves."""

import pytest

from mimir.domain.event import EventKind
from mimir.domain.task_states import TaskStatus, TransitionActor
from mimir.errors import IllegalMove, LeaseLost
from mimir.store.operations import claims, runs
from mimir.store.records.task_changes import WorkAnsweredChange
from mimir.store.records.task_records import TaskRecord
from tests.support.claims import claim, events, lock_of, move, row
from tests.support.stored_run import start, task

S = TaskStatus


# Claiming


async def test_fresh_claim_starts_an_attempt_with_phase_two(store):
    await start(store, task("a"))

    (held,) = await claim(store)

    assert (held.task, held.fence, held.attempt, held.fresh, held.died) == ("a", 1, 1, True, False)
    taken = await row(store)
    assert held.record == TaskRecord.from_row(taken)
    kept = {
        k: taken[k]
        for k in (
            "status",
            "attemptNumber",
            "isRetry",
            "workerStartTime",
            "lockedBy",
            "lockedAt",
            "expiresAt",
            "fence",
        )
    }
    assert kept == {
        "status": "worker_executing", "attemptNumber": 1, "isRetry": False, "workerStartTime": "2030-01-02T03:04:05.000000Z",
        "lockedBy": "w1", "lockedAt": "2030-01-02T03:04:05.000000Z", "expiresAt": "2030-01-02T03:09:05.000000Z", "fence": 1,
    }  # fmt: skip
    attempt = await store.read(lambda r: r.get("Attempt", "r1/a/1"))
    assert (attempt["attemptNumber"], attempt["isRetry"], attempt["status"]) == (
        1,
        False,
        "worker_executing",
    )
    assert await store.read(lambda r: r.edges_among(["r1/a", "r1/a/1"])) == [
        ("r1/a", "HAS_ATTEMPT", "r1/a/1")
    ]
    (event,) = await events(store, EventKind.ATTEMPT_STARTED)
    assert (event.task, event.attempt) == ("a", 1)
    assert event.data == {"owner": "w1", "fence": 1, "from": "pending", "to": "worker_executing"}


async def test_held_task_is_not_claimed_again(store, frozen_clock):
    await start(store, task("a"))
    await claim(store)
    frozen_clock.advance(299)

    assert await claim(store, "w2") == []


async def test_unreleased_task_cannot_be_claimed(store):
    await start(store, task("a"), task("b", "a"), released=False)
    await store.write(lambda ops: claims.release_task(ops, "r1", [("a", 1.0)]))

    assert [c.task for c in await claim(store, limit=5)] == ["a"]


async def test_highest_priority_goes_first_then_the_id(store):
    await start(store, *(task(t) for t in "edcba"), released=False)
    await store.write(
        lambda ops: claims.release_task(
            ops, "r1", [("a", 1), ("b", 5.5), ("c", 5.5), ("d", 0.25), ("e", 7)]
        )
    )

    assert [c.task for c in await claim(store, limit=3)] == ["e", "b", "c"]
    assert [c.task for c in await claim(store, limit=3)] == ["a", "d"]


async def test_expired_task_is_claimed_in_order_with_free_ones(store, frozen_clock):
    await start(store, *(task(t) for t in "abc"), released=False)
    await store.write(lambda ops: claims.release_task(ops, "r1", [("a", 1), ("b", 2), ("c", 3)]))
    await claim(store, limit=2)
    frozen_clock.advance(301)

    taken = await claim(store, "w2", limit=5)

    assert [(c.task, c.fresh) for c in taken] == [("c", False), ("b", False), ("a", True)]


async def test_claims_of_another_run_are_left_alone(store):
    await start(store, task("a"))
    await start(store, task("a"), id="r2")
    await claim(store)

    assert await claim(store) == []
    assert (await store.read(lambda r: r.get("Task", "r2/a")))["status"] == "pending"


@pytest.mark.parametrize("end", ["expired", "dead", "given back"])
async def test_ended_lease_is_taken_over_in_the_phase_where_it_was_left(store, frozen_clock, end):
    await start(store, task("a"))
    (first,) = await claim(store)
    await move(store, first, S.WORKER_COMPLETED, props={"workerOutput": "x"})
    dead = ()
    if end == "expired":
        frozen_clock.advance(300)
    elif end == "dead":
        dead = ("w0", "w1")
    else:
        assert (
            await store.write(lambda ops: claims.release_claim(ops, "r1", "a", first.fence)) is True
        )
        assert lock_of(await row(store)) == {"claimState": "free"}

    (second,) = await claim(store, "w2", dead=dead)

    assert (second.task, second.fence, second.attempt, second.fresh) == ("a", 2, 1, False)
    assert (second.record.status, second.record.worker_output) == (S.WORKER_COMPLETED, "x")
    (event,) = await events(store, EventKind.LEASE_TAKEN)
    assert (event.attempt, event.data) == (1, {"owner": "w2", "fence": 2})
    with pytest.raises(LeaseLost):
        await move(store, first, S.QC_EXECUTING)


async def test_retry_is_a_new_attempt(store):
    await start(store, task("a"))
    (first,) = await claim(store)
    await move(
        store,
        first,
        S.PREPARING_RETRY,
        TransitionActor.SCHEDULING,
        kind=EventKind.TASK_RETRIED,
        props={"retryReason": "qc_failure"},
    )
    assert lock_of(await row(store)) == {"claimState": "free"}

    (second,) = await claim(store, "w2")

    assert (second.attempt, second.fence, second.fresh) == (2, 2, True)
    taken = await row(store)
    assert (taken["isRetry"], taken["retryReason"]) == (True, "qc_failure")
    attempt = await store.read(lambda r: r.get("Attempt", "r1/a/2"))
    assert (attempt["isRetry"], attempt["retryReason"]) == (True, "qc_failure")
    assert (await store.read(lambda r: r.get("Attempt", "r1/a/1")))["status"] == "preparing_retry"
    assert [e.attempt for e in await events(store, EventKind.ATTEMPT_STARTED)] == [1, 2]


# Leases


async def test_heartbeat_renews_leases_and_names_lost_tasks(store, frozen_clock):
    await start(store, task("a"), task("b"), task("c"))
    held = {c.task: c for c in await claim(store, limit=3)}
    await move(store, held["c"], S.FAILED, TransitionActor.SCHEDULING, kind=EventKind.TASK_FAILED)
    frozen_clock.advance(200)
    await claim(store, "w2", dead=("w1",), limit=1)

    lost = await store.write(
        lambda ops: claims.heartbeat(
            ops, "r1", [(c.task, c.fence) for c in held.values()], "w1", 300
        )
    )
    frozen_clock.advance(299)

    assert lost == ["a", "c"]
    assert await claim(store, "w3") == []
    frozen_clock.advance(1)
    assert [c.task for c in await claim(store, "w3", limit=5)] == ["a", "b"]


async def test_expired_lease_without_another_holder_may_be_renewed(store, frozen_clock):
    await start(store, task("a"))
    (held,) = await claim(store)
    frozen_clock.advance(1000)

    assert (
        await store.write(lambda ops: claims.heartbeat(ops, "r1", [("a", held.fence)], "w1", 300))
        == []
    )
    assert await claim(store, "w2") == []


async def test_lost_lease_cannot_be_given_back(store):
    await start(store, task("a"))
    (first,) = await claim(store)
    await claim(store, "w2", dead=("w1",))

    assert await store.write(lambda ops: claims.release_claim(ops, "r1", "a", first.fence)) is False
    assert (await row(store))["lockedBy"] == "w2"


async def test_ended_task_is_not_given_back_into_the_line(store):
    await start(store, task("a"))
    (held,) = await claim(store)
    await move(store, held, S.FAILED, TransitionActor.SCHEDULING, kind=EventKind.TASK_FAILED)

    assert await store.write(lambda ops: claims.release_claim(ops, "r1", "a", held.fence)) is False
    assert lock_of(await row(store)) == {}
    assert await claim(store, "w2") == []


async def test_fence_is_checked(store):
    await start(store, task("a"))
    (held,) = await claim(store)

    found = await store.read(lambda r: claims.load_claimed_task(r, "r1", "a", held.fence))
    assert found.task_id == "a"
    for task_id, fence in (("a", 0), ("a", 2), ("ghost", 1)):
        with pytest.raises(LeaseLost, match=task_id):
            await store.read(lambda r, t=task_id, f=fence: claims.load_claimed_task(r, "r1", t, f))


# Moving


async def test_move_writes_status_values_copy_and_event_together(store):
    await start(store, task("a"))
    (held,) = await claim(store)

    answer = WorkAnsweredChange(
        worker_output="done", worker_duration=2.5, worker_tokens=7, worker_tool_calls=3,
        worker_message_count=4, worker_completed_at="2030-01-02T03:04:05.000000Z",
    )  # fmt: skip

    await move(store, held, S.WORKER_COMPLETED, changes=(answer,), data={"tokens": 7})

    moved = await row(store)
    assert (moved["status"], moved["workerOutput"], moved["lockedBy"]) == (
        "worker_completed",
        "done",
        "w1",
    )
    attempt = await store.read(lambda r: r.get("Attempt", "r1/a/1"))
    assert (attempt["status"], attempt["workerTokens"]) == ("worker_completed", 7)
    (event,) = await events(store, EventKind.WORK_ANSWERED)
    assert (event.task, event.attempt) == ("a", 1)
    assert event.data == {"tokens": 7, "from": "worker_executing", "to": "worker_completed"}


async def test_illegal_move_changes_nothing(store):
    await start(store, task("a"))
    (held,) = await claim(store)
    before = await store.read(lambda r: list(r.dump()))

    for to, mover in (
        (S.COMPLETED, TransitionActor.SCHEDULING),
        (S.WORKER_COMPLETED, TransitionActor.WORKER),
        (S.PENDING, TransitionActor.SCHEDULING),
    ):
        with pytest.raises(IllegalMove):
            await move(store, held, to, mover, props={"a": 1})

    assert await store.read(lambda r: list(r.dump())) == before


async def test_move_with_an_old_fence_changes_nothing(store):
    await start(store, task("a"))
    (held,) = await claim(store)
    await claim(store, "w2", dead=("w1",))
    before = await store.read(lambda r: list(r.dump()))

    for fence in (0, held.fence, 3):
        with pytest.raises(LeaseLost):
            await move(store, held, S.WORKER_COMPLETED, fence=fence)

    assert await store.read(lambda r: list(r.dump())) == before


@pytest.mark.parametrize(
    "path", [(S.FAILED,), (S.WORKER_COMPLETED, S.QC_EXECUTING, S.QC_PASSED, S.COMPLETED)]
)
async def test_ended_task_has_no_lease_and_is_never_claimed(store, path):
    await start(store, task("a"))
    (held,) = await claim(store)
    for to in path:
        mover = (
            TransitionActor.SCHEDULING if to in (S.FAILED, S.COMPLETED) else TransitionActor.MACHINE
        )
        await move(store, held, to, mover)

    assert lock_of(await row(store)) == {}
    assert await claim(store, "w2", dead=("w1",)) == []


async def test_move_and_head_are_one_transaction(store):
    await start(store, task("a"))
    (held,) = await claim(store)

    def work(ops):
        assert runs.advance_head(ops, "r1", "c0", "c1", "t1")
        claims.move(
            ops,
            "r1",
            "a",
            held.fence + 9,
            S.COMPLETED,
            TransitionActor.SCHEDULING,
            kind=EventKind.TASK_COMPLETED,
        )

    with pytest.raises(LeaseLost):
        await store.write(work)

    assert (await store.read(lambda r: r.get("Run", "r1")))["head"] == "c0"
