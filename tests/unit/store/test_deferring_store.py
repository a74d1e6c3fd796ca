"""Deferred writes are committed with the next write: nothing that follows from one is done before, and a failure loses none."""

import pytest

from mimir.errors import Paused
from mimir.store.deferring_store import DeferringStore
from tests.support.transcripts import ask, edit, look, opened, recorded


@pytest.fixture
def door(store):
    """An attempt's door to the store."""
    return DeferringStore(store)


def put(name):
    """Return a write of one node."""
    return lambda ops: ops.upsert("Artifact", [{"id": name}])


async def names(store):
    """Return the existing names."""
    return [row["id"] for row in await store.read(lambda r: r.find("Artifact", {}, order=("id",)))]


async def test_deferred_writes_precede_the_next_write_in_its_transaction(store, door):
    seen = []
    door.later(put("first"))
    door.later(lambda ops: seen.append(ops.get("Artifact", "first")))
    assert await names(store) == []

    assert await door.write(lambda ops: ops.get("Artifact", "first")["id"]) == "first"

    assert [row["id"] for row in seen] == ["first"]
    assert await names(store) == ["first"]


async def test_deferred_writes_survive_a_failed_write(store, door):
    def refuse(_ops):
        raise Paused("no", reason="budget")

    door.later(put("kept"))
    with pytest.raises(Paused):
        await door.write(refuse)
    assert await names(store) == []

    await door.settle()
    assert await names(store) == ["kept"]


async def test_nothing_is_written_when_nothing_waits(store, door):
    async def write(_work):
        raise AssertionError("there is nothing to write")

    door.later(put("once"))
    await door.settle()
    store.write = write
    await door.settle()


async def test_an_answer_is_stored_with_the_call_that_follows_from_it(store, run, world, door):
    lane = await opened(door, later=door.later)
    await ask(lane, world, "m0")
    await look(lane, world, "l1")
    assert await recorded(store) == [(0, "model", False)]

    await edit(lane, world, "e2")
    done = [(0, "model", True), (1, "tool", True), (2, "tool", True)]
    assert await recorded(store) == done

    await ask(lane, world, "m3")
    await lane.flush()
    assert await recorded(store) == [*done, (3, "model", False)]
    await door.settle()
    assert await recorded(store) == [*done, (3, "model", True)]


async def test_process_that_dies_with_a_deferred_answer_repeats_one_call(store, run, world, door):
    lane = await opened(door, later=door.later)
    await ask(lane, world, "m0")
    await ask(lane, world, "m1")  # its answer dies with the process

    door = DeferringStore(store)
    again = await opened(door, later=door.later)
    for name in ("m0", "m1", "m2"):
        await ask(again, world, name)
    await again.flush()
    await door.settle()

    assert world.made == ["m0", "m1", "m1", "m2"]
    assert await recorded(store) == [(n, "model", True) for n in range(3)]
