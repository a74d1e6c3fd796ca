"""Writes that wait for the disk, and writes that run on the thread of the caller."""

import asyncio
import sqlite3
import threading

import pytest

from mimir.errors import Paused
from mimir.store.sqlite import checkpointer
from mimir.store.sqlite.sqlite_store import SqliteStore
from tests.support.clock import FrozenClock
from tests.support.stores import ids, opened, put

FULL, NORMAL = 2, 1
"""As SQLite counts them: the log is on the disk when a commit is done, or when it is brought into the file."""


def store_at(path, **how):
    return SqliteStore(path, FrozenClock(), **how)


def commit_mode_job(connections):
    """Return a job that returns its thread, and the durability of its commit."""

    def work(ops):
        (mode,) = connections[-1].execute("PRAGMA synchronous").fetchone()
        return threading.current_thread() is threading.main_thread(), mode

    return work


@pytest.fixture
def connections(monkeypatch):
    """All connections that are opened, the writer's first."""
    made = []
    connect = sqlite3.connect

    def noted(*args, **how):
        made.append(connect(*args, **how))
        return made[-1]

    monkeypatch.setattr(sqlite3, "connect", noted)
    return made


async def test_only_non_durable_writes_skip_disk_sync_and_thread(tmp_path, connections):
    async with opened(store_at(tmp_path / "mimir.db")) as store:
        work = commit_mode_job(connections)
        ways = [await store.write(work, durable=durable) for durable in (True, False, False, True)]

    assert ways == [(False, FULL), (True, NORMAL), (True, NORMAL), (False, FULL)]


async def test_only_a_brief_read_runs_on_the_thread_of_the_caller(tmp_path):
    def where(reads):
        return threading.current_thread() is threading.main_thread(), reads.get("Task", "a")["n"]

    async with opened(store_at(tmp_path / "mimir.db")) as store:
        await put(store, "Task", {"id": "a", "n": 1})
        assert await store.read(where, brief=True) == (True, 1)
        await put(store, "Task", {"id": "a", "n": 2})
        assert await store.read(where) == (False, 2)


async def test_shared_commit_is_durable_if_one_write_is(tmp_path, connections):
    async with opened(store_at(tmp_path / "mimir.db")) as store:
        for with_others in (True, False):
            begun, gate = threading.Event(), threading.Event()

            def hold(ops, begun=begun, gate=gate):
                begun.set()
                gate.wait(200)

            first = asyncio.ensure_future(store.write(hold))
            await asyncio.to_thread(begun.wait, 20)
            works = [store.write(commit_mode_job(connections), durable=False) for _ in range(2)]
            if with_others:
                works.append(store.write(commit_mode_job(connections)))
            waiting = [asyncio.ensure_future(work) for work in works]
            await asyncio.sleep(0)
            gate.set()
            await first

            assert set(await asyncio.gather(*waiting)) == {(False, FULL if with_others else NORMAL)}


async def test_log_is_brought_into_the_file_by_no_commit_that_does_not_wait(tmp_path, monkeypatch):
    monkeypatch.setattr(checkpointer, "SECONDS", 3600)
    path = tmp_path / "mimir.db"
    async with opened(store_at(path)) as store:
        size = path.stat().st_size
        for n in range(20):  # each of some sixty pages: more than the log may hold
            rows = [{"id": f"t{n}", "text": "x" * 250_000}]
            await store.write(lambda ops, rows=rows: ops.upsert("Task", rows), durable=False)
        assert path.stat().st_size == size

        await put(store, "Task", {"id": "last"})
        assert path.stat().st_size > size + 20 * 200_000


@pytest.mark.parametrize("durable", [True, False])
async def test_writer_waits_alone_while_another_process_holds_the_lock(tmp_path, durable: bool):
    path = tmp_path / "mimir.db"
    async with opened(store_at(path)) as store:
        other = sqlite3.connect(path, isolation_level=None)
        other.execute("BEGIN IMMEDIATE")
        work = store.write(lambda ops: ops.upsert("Task", [{"id": "a"}]), durable=durable)
        waiting = asyncio.ensure_future(work)
        assert await ids(store, "Task", {}) == []
        assert not waiting.done()

        other.execute("COMMIT")
        await waiting
        other.close()

        assert await ids(store, "Task", {}) == ["a"]


async def test_job_that_fails_leaves_nothing_behind(tmp_path):
    async with opened(store_at(tmp_path / "mimir.db")) as store:

        def work(ops):
            ops.upsert("Task", [{"id": "a"}])
            raise StopIteration("mine")  # a coroutine must not end by it

        with pytest.raises(RuntimeError, match="mine"):
            await store.write(work, durable=False)

        await put(store, "Task", {"id": "b"})
        assert await ids(store, "Task", {}) == ["b"]


@pytest.mark.parametrize("durable", [True, False])
async def test_store_that_is_removed_while_in_use_pauses_the_run(tmp_path, durable: bool):
    path = tmp_path / "mimir.db"
    async with opened(store_at(path)) as store:

        def add(ops):
            ops.upsert("Task", [{"id": "b"}])

        await put(store, "Task", {"id": "a"})
        path.rename(tmp_path / "away.db")

        with pytest.raises(Paused, match="was removed") as caught:
            await store.write(add, durable=durable)
        assert (caught.value.reason, caught.value.exit_code) == ("store", 75)

        (tmp_path / "away.db").rename(path)
        assert await ids(store, "Task", {}) == ["a"]
        await store.write(add, durable=durable)
        assert await ids(store, "Task", {}) == ["a", "b"]
