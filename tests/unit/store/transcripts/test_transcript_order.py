"""The lane goes live once, from the right tree, and commits in the order of its numbers."""

import asyncio

import pytest

from mimir.domain.call_outcome import CallOutcome
from mimir.domain.event import EventKind
from mimir.errors import Paused
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

# Going live


async def test_workspace_is_restored_once_before_the_first_live_call(store, run, world):
    first = await opened(store)
    await three(first, world)
    trees = []

    async def restore(tree):
        trees.append((tree, list(world.made)))

    again = await opened(store)
    again.on_live = restore
    await three(again, world)
    assert trees == []
    await look(again, world, "l3")
    await edit(again, world, "e4")
    await ask(again, world, "m5")

    assert trees == [("tree of e1", ["m0", "e1", "m2"])]
    assert again.tree == "tree of e4"


async def test_new_transcript_becomes_live_without_a_tree(store, run, world):
    trees = []

    async def restore(tree):
        trees.append(tree)

    lane = await opened(store)
    lane.on_live = restore
    await three(lane, world)

    assert trees == [""]


async def test_reads_that_go_live_together_wait_for_one_restore(store, run, world):
    first = await opened(store)
    await edit(first, world, "e0")
    trees, gate = [], asyncio.Event()

    async def restore(tree):
        trees.append(tree)
        await gate.wait()
        trees.append("restored")

    lane = await opened(store)
    lane.on_live = restore
    await edit(lane, world, "e0")
    reads = [asyncio.ensure_future(look(lane, world, f"l{i}")) for i in range(4)]
    await asyncio.sleep(0)
    await asyncio.sleep(0)
    assert world.made == ["e0"]
    gate.set()
    await asyncio.gather(*reads)

    assert trees == ["tree of e0", "restored"]
    assert sorted(world.made) == ["e0", "l0", "l1", "l2", "l3"]


async def test_failed_restore_fails_every_call_that_waits_for_it(store, run, world):
    async def restore(tree):
        await asyncio.sleep(0)
        raise Paused("no room", reason="disk")

    lane = await opened(store)
    lane.on_live = restore
    ended = await asyncio.gather(
        *(look(lane, world, f"l{i}") for i in range(3)), return_exceptions=True
    )

    assert [type(e) for e in ended] == [Paused] * 3
    assert world.made == []


async def test_effect_in_flight_is_made_again_from_the_tree_before_it(store, run, world):
    first = await opened(store)
    await edit(first, world, "e0")
    await look(first, world, "l1")
    world.crash_in = "e2"
    with pytest.raises(Crash):
        await edit(first, world, "e2")
    world.crash_in = None
    trees = []

    async def restore(tree):
        trees.append(tree)

    lane = await opened(store)
    lane.on_live = restore
    await edit(lane, world, "e0")
    await look(lane, world, "l1")
    await edit(lane, world, "e2")

    assert trees == ["tree of e0"]
    assert world.made == ["e0", "l1", "e2", "e2"]


# Order


async def test_effect_waits_for_the_reads_before_it(store, run, world):
    lane = await opened(store)
    reading, go_on, log = asyncio.Event(), asyncio.Event(), []

    async def slow():
        reading.set()
        await go_on.wait()
        log.append("read")
        return CallOutcome(value={})

    async def effect():
        log.append("effect")
        return CallOutcome(value={}, tree="t")

    read = asyncio.ensure_future(lane.call("tool", {}, {}, slow, effectful=False))
    await reading.wait()
    act = asyncio.ensure_future(lane.call("tool", {}, {}, effect, effectful=True))
    await asyncio.sleep(0)
    go_on.set()
    await asyncio.gather(read, act)

    assert log == ["read", "effect"]
    assert await recorded(store) == [(0, "tool", True), (1, "tool", True)]


async def test_outcomes_are_committed_in_call_order(store, run, world):
    lane = await opened(store)
    gates = [asyncio.Event() for _ in range(3)]

    def reading(i):
        async def work():
            await gates[i].wait()
            return CallOutcome(value={"n": i})

        return lane.call("tool", {"n": i}, {}, work, effectful=False)

    reads = [asyncio.ensure_future(reading(i)) for i in range(3)]
    await asyncio.sleep(0)
    for i in (2, 0):
        gates[i].set()
        await reads[i]
    await lane.flush()
    half = await recorded(store)
    gates[1].set()
    await reads[1]
    await lane.flush()

    assert [seq for seq, *_ in half] == [0]
    assert [seq for seq, *_ in await recorded(store)] == [0, 1, 2]
    assert [e.data["calls"] for e in await events_of_kind(store, EventKind.TOOL_CALLED)] == [
        1,
        2,
        3,
    ]
    assert await store.read(lambda r: find_broken_link(r, lane.name)) == []


async def test_effect_behind_a_read_that_fails_is_not_made(store, run, world):
    lane = await opened(store)
    reading, go_on = asyncio.Event(), asyncio.Event()

    async def failing():
        reading.set()
        await go_on.wait()
        raise Paused("gone", reason="sandbox")

    read = asyncio.ensure_future(lane.call("tool", {}, {}, failing, effectful=False))
    await reading.wait()
    act = asyncio.ensure_future(edit(lane, world, "e1"))
    await asyncio.sleep(0)
    go_on.set()
    ended = await asyncio.gather(read, act, return_exceptions=True)

    assert [type(e) for e in ended] == [Paused, Paused]
    assert (world.made, await recorded(store)) == ([], [])
