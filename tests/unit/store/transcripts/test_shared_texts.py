"""Texts that many calls repeat: kept once a run, named by their hash, given back whole."""

import hashlib

import pytest

from mimir.errors import StoreError
from mimir.store.operations import evidence
from mimir.store.records.call_records import CallRecord
from mimir.store.schema import pack
from mimir.store.transcripts import call_rows, shared_texts
from tests.support.stored_run import start, task
from tests.support.transcripts import find_broken_link, opened

SYSTEM = "Look before you write. " * 40
SETTINGS = {"model": "m", "tools": [{"name": "read_file", "description": "Reads. " * 100}]}
FIRST = {
    "kept": 0,
    "messages": [{"role": "system", "text": SYSTEM}, {"role": "user", "text": "x" * 2000}],
    "settings": SETTINGS,
}


async def record_call(lane, world, delta, name="m"):
    """A model call with this delta."""
    return await lane.call("model", {"ask": name}, delta, world.work(name), effectful=True)


async def kept(store, run="r1"):
    return await store.read(lambda r: r.find("Artifact", {"runId": run, "kind": "text"}))


async def test_text_repeated_by_transcripts_is_stored_once(store, run, world):
    lanes = [await opened(store), await opened(store, lane="again")]
    for lane in lanes:
        await record_call(lane, world, FIRST)
        await record_call(
            lane, world, {"kept": 2, "messages": [{"role": "assistant", "text": "y"}]}, "n"
        )

    rows = [await store.read(lambda r, name=lane.name: call_rows.rows(r, name)) for lane in lanes]
    assert {row["text"] for row in await kept(store)} == {SYSTEM, pack(SETTINGS)}
    for row in (of_lane[0] for of_lane in rows):
        assert SYSTEM not in str(row["deltaJson"])
        assert "x" * 2000 in str(row["deltaJson"])
        assert (
            await store.read(lambda r, row=row: shared_texts.delta_of(r, CallRecord.from_row(row)))
            == FIRST
        )
    for lane in lanes:
        assert await store.read(lambda r, name=lane.name: find_broken_link(r, name)) == []


async def test_hash_of_a_transcript_includes_its_shared_texts(store, run, world):
    lane = await opened(store)
    await record_call(lane, world, FIRST)
    (row,) = await store.read(lambda r: call_rows.rows(r, lane.name))

    # As a mimir that kept every text where it stands has written it.
    whole = pack(FIRST)
    await store.write(lambda ops: ops.patch("Call", str(row["id"]), {"deltaJson": whole}))

    assert row["deltaJson"] != whole
    assert await store.read(lambda r: find_broken_link(r, lane.name)) == []
    again = await opened(store)
    await record_call(again, world, FIRST)
    assert (again.replayed, world.made) == (1, ["m"])


@pytest.mark.parametrize(
    "others",
    [{}, {"kept": 0}, {"kept": 0, "zeal": 1}, {"messages": [{"role": "system", "text": SYSTEM}]}],
    ids=["alone", "last", "amidst", "beside a text"],
)
def test_request_hash_covers_the_shared_settings(others):
    delta = {**others, "settings": SETTINGS}

    for _ in range(2):  # written, and known already
        folded = shared_texts.fold(delta)
        assert folded.whole == pack(delta)
        assert pack(SETTINGS) in folded.named.values()
        assert pack(SETTINGS) not in folded.kept


def test_settings_that_are_equal_and_not_the_same_are_written_as_they_are():
    one, other = {"temperature": 0, "x": "y" * 600}, {"temperature": 0.0, "x": "y" * 600}

    assert shared_texts.fold({"settings": one}).whole == pack({"settings": one})
    assert shared_texts.fold({"settings": other}).whole == pack({"settings": other})
    assert pack(one) != pack(other)


@pytest.mark.parametrize("damage", ["changed", "removed"])
async def test_damaged_text_breaks_each_call_that_names_it(store, run, world, damage):
    lane = await opened(store)
    await record_call(lane, world, FIRST)
    name = f"r1#text-{hashlib.sha256(SYSTEM.encode()).hexdigest()}"

    if damage == "changed":
        await store.write(lambda ops: ops.patch("Artifact", name, {"text": SYSTEM + "!"}))
    else:
        await store.write(lambda ops: ops.delete("Artifact", [name]))

    (row,) = await store.read(lambda r: call_rows.rows(r, lane.name))
    assert await store.read(lambda r: find_broken_link(r, lane.name)) == [row["id"]]
    with pytest.raises(StoreError, match=damage if damage == "changed" else "not there"):
        await store.read(lambda r: shared_texts.delta_of(r, CallRecord.from_row(row)))


@pytest.mark.parametrize(
    "text",
    ["short", "half \ud800 a surrogate" * 50, ""],
    ids=["short", "no UTF-8", "empty"],
)
async def test_short_or_unshareable_text_stays_in_its_row(store, run, world, text):
    delta = {"kept": 0, "messages": [{"role": "system", "text": text}]}
    lane = await opened(store)
    await record_call(lane, world, delta)

    (row,) = await store.read(lambda r: call_rows.rows(r, lane.name))
    assert await store.read(lambda r: shared_texts.delta_of(r, CallRecord.from_row(row))) == delta
    assert await kept(store) == []


async def test_text_is_kept_before_a_call_that_never_ends(store, run, world):
    world.crash_in = "m"
    lane = await opened(store)
    with pytest.raises(BaseException, match="m"):
        await record_call(lane, world, FIRST)

    (row,) = await store.read(lambda r: call_rows.rows(r, lane.name))
    assert not row["done"]
    assert await store.read(lambda r: shared_texts.delta_of(r, CallRecord.from_row(row))) == FIRST


async def test_another_run_gets_the_texts_that_it_takes_over(store, run, world):
    await record_call(await opened(store), world, FIRST)
    sha256 = shared_texts.name_of(SYSTEM)
    await start(store, task("a"), id="r2")

    await store.write(lambda ops: shared_texts.carry(ops, "r1", "r2", [sha256]))

    assert await store.read(lambda r: shared_texts.get(r, "r2", sha256)) == SYSTEM
    assert await store.read(lambda r: evidence.artifact(r, f"r2#text-{sha256}")) == SYSTEM
