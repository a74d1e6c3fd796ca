"""A Neo4j server that is lost, slow or silent at the worst moment: nothing is lost, nothing is done twice."""

import asyncio
import contextlib
import secrets
import threading
from dataclasses import replace

import pytest

from mimir.errors import Paused
from mimir.store.neo4j.neo4j_store import Neo4jStore
from tests.support.neo4j_servers import address_of, store_over
from tests.support.stores import opened, put
from tests.support.tcp_proxy import TcpProxy

pytestmark = pytest.mark.neo4j


@pytest.fixture
def proxy(tmp_path):
    """A proxy before the session's server."""
    address = address_of(tmp_path)
    made = TcpProxy(address.host, address.port)
    made.start()
    yield made
    made.release.set()
    made.stop()


@pytest.fixture
def messages():
    return []


@pytest.fixture
async def behind(proxy, tmp_path, frozen_clock, messages):
    """Open a store of this test through the proxy; `sleep` lets its waits pass."""

    @contextlib.asynccontextmanager
    async def store(sleep=asyncio.sleep, **how):
        address = address_of(tmp_path)
        through = replace(address, uri=f"bolt://127.0.0.1:{proxy.port}", host="127.0.0.1", port=proxy.port)  # fmt: skip
        made = Neo4jStore(
            through,
            frozen_clock,
            door=secrets.token_hex(4),
            say=messages.append,
            sleep=sleep,
            retry_seconds=0.05,
            **how,
        )
        async with opened(made):
            yield made

    return store


def add(ops):
    """Add one: done twice, it would be seen."""
    row = ops.patch_if("Run", "r", {}, {})
    ops.patch("Run", "r", {"n": row["n"] + 1})
    return row["n"] + 1


@pytest.mark.parametrize("how", ["before", "after"])
async def test_commit_without_an_answer_is_read_back(behind, proxy, how):
    async with behind() as store:
        await put(store, "Run", {"id": "r", "n": 0})
        await store.write(add)
        proxy.cut_at_commit = how

        assert await store.write(add) == 2

        assert proxy.cuts == 1
        assert (await store.read(lambda reads: reads.get("Run", "r")))["n"] == 2


@pytest.mark.parametrize("how", ["before", "after"])
async def test_commit_without_an_answer_is_read_back_before_the_next_write(behind, proxy, how):
    async with behind() as store:
        await put(store, "Run", {"id": "r", "n": 0})
        proxy.cut_at_commit = how

        counts = await asyncio.gather(*(store.write(add) for _ in range(3)))

        assert proxy.cuts == 1
        assert sorted(counts) == [1, 2, 3]
        assert (await store.read(lambda reads: reads.get("Run", "r")))["n"] == 3


@pytest.mark.parametrize("how", ["before", "after"])
async def test_read_without_an_answer_is_repeated(behind, proxy, how):
    async with behind() as store:
        await put(store, "Run", {"id": "r", "n": 7})
        proxy.cut_at_commit = how

        assert (await store.read(lambda reads: reads.get("Run", "r")))["n"] == 7

        assert proxy.cuts == 1


async def test_commit_is_read_back_again_after_a_lost_answer(behind, proxy):
    async with behind() as store:
        await put(store, "Run", {"id": "r", "n": 0})
        proxy.cut_at_commit, proxy.times = "after", 3

        assert await store.write(add) == 1

        assert proxy.cuts == 3
        assert (await store.read(lambda reads: reads.get("Run", "r")))["n"] == 1


async def test_commit_that_is_still_on_its_way_is_waited_for(behind, proxy):
    async with behind() as store:
        await put(store, "Run", {"id": "r", "n": 0})
        proxy.cut_at_commit = "held"
        threading.Timer(0.5, proxy.release.set).start()

        assert await store.write(add) == 1

        assert (await store.read(lambda reads: reads.get("Run", "r")))["n"] == 1


async def test_lost_server_is_waited_for_and_reported_once(behind, proxy, messages):
    async def sleep(_):
        waits.append(1)
        if len(waits) == 3:
            proxy.start()

    waits = []
    async with behind(sleep) as store:
        await put(store, "Run", {"id": "r", "n": 0})
        proxy.stop()

        found = await asyncio.gather(
            store.write(add),
            store.write(add),
            store.read(lambda reads: reads.get("Run", "r")["id"]),
        )

    assert sorted(map(str, found)) == ["1", "2", "r"]
    assert [line.split(" ", 2)[2] for line in messages] == [
        f"{store.uri} does not answer; waiting for it, 5 minutes at most.",
        f"{store.uri} is back.",
    ]


async def test_server_that_stays_lost_pauses_the_run_and_then_each_call_at_once(
    behind, proxy, messages, frozen_clock
):
    async def sleep(_):
        frozen_clock.advance(100)
        waits.append(1)

    waits = []
    async with behind(sleep) as store:
        await put(store, "Run", {"id": "r", "n": 0})
        proxy.stop()

        with pytest.raises(Paused, match="was lost") as paused:
            await store.write(add)
        assert (paused.value.reason, paused.value.exit_code, len(waits)) == ("store", 75, 3)
        with pytest.raises(Paused):
            await store.read(lambda reads: reads.get("Run", "r"))
        assert len(waits) == 3

        proxy.start()
        assert await store.write(add) == 1

    assert len(messages) == 2


async def test_writers_run_one_after_another(tmp_path, frozen_clock):
    """Read, then write without a comparison: safe under the store's lock alone."""

    def add_blindly(ops):
        ops.patch("Run", "r", {"n": ops.get("Run", "r")["n"] + 1})

    async with (
        opened(store_over(tmp_path, frozen_clock)) as one,
        opened(store_over(tmp_path, frozen_clock)) as two,
    ):
        await put(one, "Run", {"id": "r", "n": 0})

        await asyncio.gather(*(door.write(add_blindly) for _ in range(20) for door in (one, two)))

        assert (await one.read(lambda reads: reads.get("Run", "r")))["n"] == 40


async def test_view_under_constant_writing_is_taken_under_the_lock(tmp_path, frozen_clock):
    async with (
        opened(store_over(tmp_path, frozen_clock)) as one,
        opened(store_over(tmp_path, frozen_clock)) as two,
    ):
        await put(one, "Task", {"id": "a", "n": 0}, {"id": "b", "n": 0})
        loop = asyncio.get_running_loop()
        seen = []

        def look(reads):
            first = reads.get("Task", "a")["n"]
            seen.append(first)
            if len(seen) <= 3:
                n = len(seen)
                rows = [{"id": "a", "n": n}, {"id": "b", "n": n}]
                asyncio.run_coroutine_threadsafe(put(two, "Task", *rows), loop).result(20)
            return first, reads.get("Task", "b")["n"]

        assert await one.read(look) == (3, 3)
        assert seen == [0, 1, 2, 3]


async def test_process_that_stopped_in_mid_transaction_does_not_keep_the_others_waiting(
    tmp_path, frozen_clock
):
    stopped, go_on = threading.Event(), threading.Event()

    def slow(ops):
        ops.patch("Run", "r", {"n": 100})
        stopped.set()
        go_on.wait(60)
        ops.patch("Run", "r", {"n": ops.get("Run", "r")["n"] + 1})

    async with (
        opened(store_over(tmp_path, frozen_clock, lock_seconds=0.3)) as one,
        opened(store_over(tmp_path, frozen_clock)) as two,
    ):
        await put(two, "Run", {"id": "r", "n": 0})
        late = asyncio.ensure_future(one.write(slow))
        await asyncio.to_thread(stopped.wait, 20)

        assert await two.write(add) == 1

        go_on.set()
        await late
        assert (await two.read(lambda reads: reads.get("Run", "r")))["n"] == 101
