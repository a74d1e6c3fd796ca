"""The lane under other requests, other holders and edits: cut, refused, found."""

import pytest

from mimir.domain.call_outcome import CallOutcome
from mimir.domain.event import EventKind
from mimir.domain.usage import TokenUsage
from mimir.errors import LeaseLost
from mimir.store.operations import claims
from mimir.store.transcripts import call_rows
from tests.support.transcripts import (
    Crash,
    ask,
    edit,
    events_of_kind,
    find_broken_link,
    look,
    opened,
    recorded,
    three,
)

# Cuts


async def test_differing_request_cuts_the_transcript_at_its_call(store, run, world):
    first = await opened(store)
    await three(first, world)
    await edit(first, world, "e3")
    trees = []

    async def restore(tree):
        trees.append(tree)

    lane = await opened(store)
    lane.on_live = restore
    await ask(lane, world, "m0")
    await edit(lane, world, "e1")
    other = await ask(lane, world, "other", request={"ask": "m2", "model": "another"})
    await edit(lane, world, "e3")

    assert other.value == {"said": "other"}
    assert world.made == ["m0", "e1", "m2", "e3", "other", "e3"]
    assert trees == ["tree of e1"]
    (cut,) = await events_of_kind(store, EventKind.LANE_CUT)
    assert (cut.task, cut.attempt) == ("a", 1)
    assert {k: cut.data[k] for k in ("lane", "seq", "removed")} == {
        "lane": lane.name,
        "seq": 2,
        "removed": 2,
    }
    assert cut.data["recorded"].startswith("model ")
    assert cut.data["recorded"] != cut.data["asked"]
    rows = await store.read(lambda r: call_rows.rows(r, lane.name))
    assert [row["name"] for row in rows] == ["m0", "e1", "other", "e3"]
    assert await store.read(lambda r: find_broken_link(r, lane.name)) == []


async def test_call_of_another_kind_cuts_too(store, run, world):
    await ask(await opened(store), world, "m0", request={"same": 1})

    lane = await opened(store)
    await edit(lane, world, "e0", request={"same": 1})

    assert world.made == ["m0", "e0"]
    assert await recorded(store) == [(0, "tool", True)]


async def test_open_intent_of_another_request_is_cut_and_its_reservation_is_spent(
    store, run, world
):
    first = await opened(store)
    await ask(first, world, "m0", usage=TokenUsage(input_tokens=1, output_tokens=1), reserve=5)
    world.crash_in = "m1"
    with pytest.raises(Crash):
        await ask(first, world, "m1", reserve=100)
    world.crash_in = None

    lane = await opened(store)
    await ask(lane, world, "m0", reserve=5)
    await ask(
        lane, world, "m1", request={"ask": "changed"}, reserve=50, usage=TokenUsage(output_tokens=3)
    )

    row = await store.read(lambda r: r.get("Run", "r1"))
    assert (row["callsUsed"], row["tokensUsed"], row["tokensReserved"]) == (3, 2 + 100 + 3, 0)
    assert len(await events_of_kind(store, EventKind.LANE_CUT)) == 1


async def test_record_behind_a_failed_call_is_cut_when_that_call_is_made(store, run, world):
    first = await opened(store)
    await ask(first, world, "m0")
    world.crash_in = "m1"
    with pytest.raises(Crash):
        await ask(first, world, "m1")
    world.crash_in = None
    await ask(first, world, "m2")
    assert [done for *_, done in await recorded(store)] == [True, False, True]

    lane = await opened(store)
    for name in ("m0", "m1", "m2"):
        await ask(lane, world, name)

    assert world.made == ["m0", "m1", "m2", "m1", "m2"]
    assert [done for *_, done in await recorded(store)] == [True] * 3
    assert (await events_of_kind(store, EventKind.LANE_CUT))[0].data["removed"] == 1


# Fences


async def steal(store):
    return await store.write(
        lambda ops: claims.claim(ops, "r1", "w2", lease_seconds=300, dead=("w1",))
    )


@pytest.mark.parametrize("call", [ask, edit])
async def test_call_with_an_old_fence_is_refused_before_it_is_made(store, run, world, call):
    lane = await opened(store)
    await ask(lane, world, "m0")
    await steal(store)

    with pytest.raises(LeaseLost):
        await call(lane, world, "x1")

    assert world.made == ["m0"]
    assert await recorded(store) == [(0, "model", True)]


async def test_outcome_with_an_old_fence_is_refused(store, run, world):
    lane = await opened(store)

    async def work():
        await steal(store)
        return CallOutcome(value={"late": True})

    with pytest.raises(LeaseLost):
        await lane.call("model", {"ask": "m0"}, {}, work, effectful=True)
    assert await recorded(store) == [(0, "model", False)]

    again = await opened(store, fence=2)
    assert (await ask(again, world, "m0")).value == {"said": "m0"}


async def test_waiting_reads_with_an_old_fence_are_refused(store, run, world):
    lane = await opened(store)
    await look(lane, world, "l0")
    await steal(store)

    with pytest.raises(LeaseLost):
        await lane.flush()
    assert await recorded(store) == []


async def test_cut_with_an_old_fence_is_refused(store, run, world):
    await three(await opened(store), world)
    lane = await opened(store)
    await steal(store)

    with pytest.raises(LeaseLost):
        await ask(lane, world, "other")
    assert len(await recorded(store)) == 3


async def test_new_holder_replays_the_calls_of_the_old_one(store, run, world):
    await three(await opened(store), world)
    (second,) = await steal(store)

    await three(await opened(store, fence=second.fence), world)

    assert world.made == ["m0", "e1", "m2"]


async def test_transcript_without_a_task_needs_no_fence(store, run, world):
    lane = await opened(store, task="plan", role="pm", fence=None)
    await ask(lane, world, "m0")

    assert lane.name == "r1/plan/1/pm"
    (event,) = await events_of_kind(store, EventKind.MODEL_CALLED)
    assert (event.task, event.data["role"]) == ("", "pm")


async def test_transcripts_are_separate(store, run, world):
    await ask(await opened(store), world, "m0")
    await ask(await opened(store, role="qc"), world, "m0")
    await ask(await opened(store, role="qc", lane="r1/a/1/qc.2"), world, "m0")

    assert world.made == ["m0"] * 3


# Events, counts, hashes


async def test_each_outcome_has_its_event_and_is_counted(store, run, world):
    lane = await opened(store)
    await ask(lane, world, "m0", usage=TokenUsage(input_tokens=30, output_tokens=12))
    await look(lane, world, "l1", value={"denied": True})
    await edit(lane, world, "e2")
    await ask(lane, world, "m3", reserve=70)

    events = await events_of_kind(
        store, EventKind.MODEL_CALLED, EventKind.TOOL_CALLED, EventKind.TOOL_DENIED
    )
    assert [(e.kind, e.task, e.attempt) for e in events] == [
        (EventKind.MODEL_CALLED, "a", 1), (EventKind.TOOL_DENIED, "a", 1), (EventKind.TOOL_CALLED, "a", 1),
        (EventKind.MODEL_CALLED, "a", 1),
    ]  # fmt: skip
    assert [e.data for e in events] == [
        {"role": "worker", "seq": 0, "tool": "", "title": "m0", "tokens": 42, "calls": 1},
        {"role": "worker", "seq": 1, "tool": "look", "title": "l1", "tokens": 0, "calls": 1},
        {"role": "worker", "seq": 2, "tool": "edit", "title": "e2", "tokens": 0, "calls": 2},
        {"role": "worker", "seq": 3, "tool": "", "title": "m3", "tokens": 70, "calls": 2},
    ]
    task_row = await store.read(lambda r: r.get("Task", "r1/a"))
    assert task_row["outcomes"] == 4


async def test_tool_call_numbers_continue_after_a_resume(store, run, world):
    await edit(await opened(store), world, "e0")
    lane = await opened(store)
    await edit(lane, world, "e0")
    await edit(lane, world, "e1")

    assert [e.data["calls"] for e in await events_of_kind(store, EventKind.TOOL_CALLED)] == [1, 2]


async def test_transcript_hash_does_not_depend_on_time_or_fence(store, run, world, frozen_clock):
    first = await opened(store)
    await three(first, world)
    frozen_clock.advance(1000)
    (held,) = await steal(store)
    await three(await opened(store, fence=held.fence, lane="again"), world)

    rows = await store.read(lambda r: (call_rows.rows(r, first.name), call_rows.rows(r, "again")))
    assert [r["requestHash"] for r in rows[0]] == [r["requestHash"] for r in rows[1]]
    assert rows[0][0]["hash"] != rows[1][0]["hash"]  # another name is another chain


@pytest.mark.parametrize(
    ("props", "broken"),
    [
        ({"valueJson": '{"said":"x"}'}, [1]), ({"requestHash": "0"}, [1]), ({"deltaJson": "{}"}, [1]),
        ({"tree": "other"}, [1]), ({"inputTokens": 9}, [1]), ({"kind": "model"}, [1]), ({"hash": "0"}, [1, 2]),
    ],
)  # fmt: skip
async def test_edited_call_is_found(store, run, world, props, broken):
    lane = await opened(store)
    await three(lane, world)
    assert await store.read(lambda r: find_broken_link(r, lane.name)) == []

    await store.write(lambda ops: ops.patch("Call", f"{lane.name}#00001", props))

    assert await store.read(lambda r: find_broken_link(r, lane.name)) == [
        f"{lane.name}#{n:05d}" for n in broken
    ]


async def test_storage_holds_deltas_not_histories(store, run, world):
    lane = await opened(store)
    history = {"messages": ["x" * 1000] * 50}
    for i in range(10):
        await lane.call("model", {**history, "n": i}, {"n": i}, world.work(f"m{i}"), effectful=True)

    rows = await store.read(lambda r: call_rows.rows(r, lane.name))
    assert max(len(str(row)) for row in rows) < 1500


async def test_commit_that_is_run_twice_counts_once(store, run, world, monkeypatch):
    write = store.write

    async def twice(work, **how):
        await write(work, **how)
        return await write(work, **how)

    lane = await opened(store)
    await look(lane, world, "l0")
    monkeypatch.setattr(store, "write", twice)
    await lane.flush()
    monkeypatch.undo()

    assert (await store.read(lambda r: r.get("Task", "r1/a")))["outcomes"] == 1
    assert len(await events_of_kind(store, EventKind.TOOL_CALLED)) == 1
