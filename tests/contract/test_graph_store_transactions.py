"""Contract of every store: all or nothing, one view, no lost update, durable commits."""

import asyncio
import threading

import pytest

from mimir.errors import StoreError
from tests.support.small_graphs import diamond, found, notes, six
from tests.support.stores import KINDS, ids, opened, put

# Transactions


async def test_transaction_that_raises_writes_nothing(store):
    await put(store, "Memory", {"id": "m", "text": "wombat"})
    await put(store, "Task", {"id": "a"}, {"id": "b"})
    before = await store.read(lambda reads: list(reads.dump()))

    def work(ops):
        ops.upsert("Task", [{"id": "c", "text": "t" * 5000}])
        ops.link("DEPENDS_ON", [("a", "b")])
        ops.patch("Memory", "m", {"text": "koala"})
        ops.patch_if("Task", "a", {}, {"x": 1})
        ops.delete("Task", ["b"])
        raise KeyError("mine")

    with pytest.raises(KeyError, match="mine"):
        await store.write(work)

    assert await store.read(lambda reads: list(reads.dump())) == before
    assert await found(store, "wombat") == ["m"]
    assert await found(store, "koala") == []


async def test_failed_write_does_not_fail_the_others_of_its_commit(store):
    def bad(ops):
        ops.upsert("Task", [{"id": "bad"}])
        raise ValueError("bad")

    jobs = [
        store.write(bad if i % 3 == 0 else lambda ops, i=i: ops.upsert("Task", [{"id": f"g{i}"}]))
        for i in range(30)
    ]
    ended = await asyncio.gather(*jobs, return_exceptions=True)

    assert [isinstance(e, ValueError) for e in ended] == [i % 3 == 0 for i in range(30)]
    assert len(await ids(store, "Task", {})) == 20


async def test_transaction_reads_its_own_writes(store):
    def work(ops):
        ops.upsert("Task", [{"id": "a", "runId": "r"}, {"id": "b", "runId": "r"}])
        ops.link("DEPENDS_ON", [("a", "b")])
        ops.patch("Task", "a", {"status": "done"})
        return (
            ops.find("Task", {"runId": "r", "status": "done"}),
            ops.neighbours("a", [], "out"),
            ops.get("Task", "b"),
        )

    assert await store.write(work) == (
        [{"id": "a", "runId": "r", "status": "done"}],
        ["b"],
        {"id": "b", "runId": "r"},
    )


async def test_each_read_in_a_transaction_sees_the_earlier_writes(store):
    await put(store, "Task", {"id": "old", "runId": "r", "status": "new", "at": "5"})

    def work(ops):
        before = ops.get("Task", "old"), ops.get("Task", "made")
        ops.patch("Task", "old", {"status": "done", "at": None})
        ops.upsert("Task", [{"id": "made", "runId": "r", "status": "done"}])
        ops.link("DEPENDS_ON", [("old", "made")])
        ops.upsert("Memory", [{"id": "m", "text": "wombat"}])
        read_labels = [
            ops.get("Task", "old"), ops.counts("Task", "status", {"runId": "r"}), ops.labels_of(["m"]),
            ops.reach("old", [], "out", None), ops.edges_among(["old", "made"]), [id for id, _ in ops.search("Memory", "wombat", 5)],
        ]  # fmt: skip
        ops.upsert("Memory", [{"id": "m", "text": "koala"}])
        return before, read_labels, [entry[1] for entry in ops.dump() if entry[0] == "Memory"]

    assert await store.write(work) == (
        ({"id": "old", "runId": "r", "status": "new", "at": "5"}, None),
        [
            {"id": "old", "runId": "r", "status": "done"}, {"done": 2}, {"m": "Memory"},
            ["made"], [("old", "DEPENDS_ON", "made")], ["m"],
        ],
        [{"id": "m", "text": "koala"}],
    )  # fmt: skip
    assert await ids(store, "Task", {"status": "done"}) == ["made", "old"]


async def test_comparison_in_a_transaction_sees_the_earlier_writes(store):
    await put(store, "Task", {"id": "a", "n": 1, "at": "2026"})

    def work(ops):
        return [
            ops.patch_if("Task", "a", {"n": 1, "at": ("<", "2027")}, {"n": 2, "tags": ["x"]}),
            ops.patch_if("Task", "a", {"n": 1}, {"n": 9}),
            ops.patch_if("Task", "a", {"n": True}, {"n": 9}),
            ops.patch_if("Task", "a", {"n": ("in", [2, None]), "tags": ["x"], "gone": None}, {"at": None}),
            ops.patch_if("Task", "a", {"at": ("!=", "x"), "n": (">=", 2.0)}, {}),
            ops.patch_if("Task", "b", {}, {"n": 9}),
        ]  # fmt: skip

    first, second, last = {"n": 2, "tags": ["x"], "at": "2026"}, {"n": 2, "tags": ["x"]}, {"n": 2, "tags": ["x"]}  # fmt: skip
    assert await store.write(work) == [
        {"id": "a", "version": 1, **first}, None, None, {"id": "a", "version": 2, **second}, {"id": "a", "version": 3, **last}, None,
    ]  # fmt: skip
    assert await store.read(lambda r: r.get("Task", "a")) == {"id": "a", "version": 3, **last}


async def test_deleted_node_is_absent_at_once_and_can_be_created_again(store):
    await put(store, "Task", {"id": "a", "n": 1, "old": "x"})

    def work(ops):
        ops.get("Task", "a")
        gone = ops.delete("Task", ["a"])
        read_labels = ops.get("Task", "a"), ops.patch("Task", "a", {"n": 2}), ops.patch_if("Task", "a", {}, {"n": 2})  # fmt: skip
        ops.upsert("Task", [{"id": "a", "n": 3}])
        return gone, read_labels, ops.get("Task", "a")

    assert await store.write(work) == (1, (None, False, None), {"id": "a", "n": 3})
    assert await store.read(lambda r: r.get("Task", "a")) == {"id": "a", "n": 3}


async def test_labels_are_those_of_the_existing_nodes(store, second):
    async def read_labels():
        return await store.write(lambda ops: ops.labels_of(["m", "t", "made"]))

    def fail(ops):
        ops.upsert("Task", [{"id": "made"}])
        assert ops.labels_of(["made"]) == {"made": "Task"}
        raise KeyError("mine")

    def replace(ops):
        ops.delete("Memory", ["m"])
        ops.upsert("Task", [{"id": "m"}])
        return ops.labels_of(["t", "m"])

    await put(store, "Memory", {"id": "m"}, {"id": "t"})
    assert await read_labels() == {"m": "Memory", "t": "Memory"}
    with pytest.raises(KeyError, match="mine"):
        await store.write(fail)
    assert await read_labels() == {"m": "Memory", "t": "Memory"}
    assert list((await store.write(replace)).items()) == [("m", "Task"), ("t", "Memory")]
    async with second() as other:
        await other.write(lambda ops: ops.delete("Memory", ["t"]))
    assert await read_labels() == {"m": "Task"}


async def test_edge_needs_its_nodes_when_it_is_made(store):
    await put(store, "Task", {"id": "a"})

    def work(ops):
        ops.upsert("Task", [{"id": "c"}])
        ops.link("DEPENDS_ON", [("a", "c"), ("a", "b")])
        ops.upsert("Task", [{"id": "b"}])

    with pytest.raises(StoreError, match="'b'"):
        await store.write(work)

    assert await ids(store, "Task", {}) == ["a"]


async def test_write_returns_the_value_of_its_function(store):
    assert await store.write(lambda ops: 42) == 42
    assert await store.read(lambda reads: "view") == "view"


async def test_time_is_constant_within_a_transaction(store, frozen_clock):
    def work(ops):
        first = ops.now()
        frozen_clock.advance(5)
        return first, ops.now()

    first, second = await store.write(work)
    later = await store.read(lambda reads: reads.now())

    assert first == second < later
    assert len(first) == len(later) == len("2030-01-02T03:04:05.000000Z")


async def test_read_is_one_view_while_others_write(store):
    await put(store, "Task", {"id": "a", "n": 1}, {"id": "b", "n": 1})
    reading, written = threading.Event(), threading.Event()

    def slow(reads):
        first = reads.get("Task", "a")["n"]
        reading.set()
        assert written.wait(200)
        return first, reads.get("Task", "b")["n"], len(reads.find("Task", {}))

    view = asyncio.ensure_future(store.read(slow))
    await asyncio.to_thread(reading.wait, 20)
    await put(store, "Task", {"id": "a", "n": 2}, {"id": "b", "n": 2}, {"id": "c", "n": 2})
    after = await store.read(lambda reads: len(reads.find("Task", {})))
    written.set()

    assert await view in [(1, 1, 2), (2, 2, 3)]
    assert after == 3


async def test_several_reads_run_at_once(store):
    meeting = threading.Barrier(3, timeout=200)

    places = await asyncio.gather(*(store.read(lambda _: meeting.wait()) for _ in range(3)))

    assert sorted(places) == [0, 1, 2]


async def test_read_sees_the_earlier_write(store):
    for n in range(50):
        await put(store, "Task", {"id": "a", "n": n})
        assert (await store.read(lambda reads: reads.get("Task", "a")))["n"] == n


async def test_verbs_of_an_ended_transaction_are_refused(store):
    kept = []
    await store.write(kept.append)
    await store.read(kept.append)
    ops, reads = kept

    for verb in (
        lambda: ops.upsert("Task", [{"id": "x"}]),
        lambda: reads.get("Task", "x"),
        lambda: next(reads.dump()),
    ):
        with pytest.raises(StoreError, match="over"):
            verb()


async def test_cancelled_writer_leaves_the_transaction_to_finish(store):
    started, go_on = threading.Event(), threading.Event()

    def slow(ops):
        started.set()
        assert go_on.wait(200)
        ops.upsert("Task", [{"id": "x"}])

    writing = asyncio.ensure_future(store.write(slow))
    await asyncio.to_thread(started.wait, 200)
    waiting = asyncio.ensure_future(put(store, "Task", {"id": "y"}))
    await asyncio.sleep(0)
    writing.cancel()
    waiting.cancel()
    ended = await asyncio.gather(writing, waiting, return_exceptions=True)
    go_on.set()
    await store.write(lambda ops: None)

    assert [type(e) for e in ended] == [asyncio.CancelledError] * 2
    assert await ids(store, "Task", {}) == ["x", "y"]


async def test_cancelled_writer_with_a_failed_function_logs_no_error(store):
    started, go_on = threading.Event(), threading.Event()

    def slow(ops):
        started.set()
        assert go_on.wait(200)
        raise ValueError("nobody listens")

    writing = asyncio.ensure_future(store.write(slow))
    await asyncio.to_thread(started.wait, 200)
    writing.cancel()
    with pytest.raises(asyncio.CancelledError):
        await writing
    go_on.set()

    assert await store.write(lambda ops: 1) == 1


# Races


async def test_one_of_many_tasks_wins_each_compare_and_set(store):
    await put(
        store, "Task", *({"id": f"t{i}", "status": "pending", "version": 0} for i in range(20))
    )
    wins = []

    async def racer(name):
        for i in range(20):
            won = await store.write(
                lambda ops, i=i: ops.patch_if(
                    "Task", f"t{i}", {"status": "pending"}, {"status": "held", "lockedBy": name}
                )
            )
            if won:
                wins.append((f"t{i}", won["lockedBy"], won["version"]))

    await asyncio.gather(*(racer(f"w{n}") for n in range(8)))

    rows = await store.read(lambda reads: reads.find("Task", {}))
    assert sorted(wins) == sorted((r["id"], r["lockedBy"], 1) for r in rows)


async def test_two_connections_to_one_store_lose_no_update(store, second):
    await put(store, "Run", {"id": "r", "n": 0})

    def add(ops):
        while True:
            row = ops.get("Run", "r")
            if ops.patch_if("Run", "r", {"n": row["n"]}, {"n": row["n"] + 1}):
                return

    async with second() as other:
        await asyncio.gather(*(door.write(add) for _ in range(40) for door in (store, other)))

        assert (await store.read(lambda reads: reads.get("Run", "r")))["n"] == 80
        assert (await other.read(lambda reads: reads.get("Run", "r")))["n"] == 80


# Life


async def test_init_is_idempotent_and_keeps_committed_nodes(store, second):
    await put(store, "Task", {"id": "a", "text": "t" * 3000})
    await store.init()

    async with second() as again:
        assert await ids(again, "Task", {}) == ["a"]
    await store.close()
    async with second() as again:
        assert (await again.read(lambda reads: reads.get("Task", "a")))["text"] == "t" * 3000


async def test_closed_store_is_refused_as_not_open(store):
    await store.close()
    await store.close()

    with pytest.raises(StoreError, match="not open"):
        await store.write(lambda ops: None)
    with pytest.raises(StoreError, match="not open"):
        await store.read(lambda reads: None)


async def test_close_finishes_waiting_writes(store, second):
    jobs = [asyncio.ensure_future(put(store, "Task", {"id": f"t{i}"})) for i in range(30)]
    await asyncio.sleep(0)
    await store.close()
    await asyncio.gather(*jobs)

    async with second() as again:
        assert len(await ids(again, "Task", {})) == 30


async def test_dump_holds_everything_in_a_fixed_order_and_makes_the_same_store(
    store, tmp_path, frozen_clock, request
):
    await diamond(store)
    await six(store)
    await notes(store)
    whole = await store.read(lambda reads: list(reads.dump()))

    nodes = [entry for entry in whole if len(entry) == 2]
    edges = [entry for entry in whole if len(entry) == 3]
    assert whole == nodes + edges
    assert [(label, row["id"]) for label, row in nodes] == sorted(
        (label, row["id"]) for label, row in nodes
    )
    assert [(t, s, d) for s, t, d in edges] == sorted((t, s, d) for s, t, d in edges)

    def load(ops):
        for label, row in nodes:
            ops.upsert(label, [row])
        for source, type, target in edges:
            ops.link(type, [(source, target)])

    make = KINDS[request.node.callspec.params["store"]]
    async with opened(make(tmp_path / "copy", frozen_clock)) as copy:
        await copy.write(load)
        assert await copy.read(lambda reads: list(reads.dump())) == whole
        assert await found(copy, "lexer") == ["m3"]
