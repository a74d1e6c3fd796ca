"""Non-durable commits are brought to the disk and into the file, in the background."""

import asyncio
import contextlib
import sqlite3
import threading

import pytest

from mimir.store.sqlite import checkpointer, database_file
from mimir.store.sqlite.sqlite_store import SqliteStore
from tests.support.clock import FrozenClock
from tests.support.stores import opened

ROW = [{"id": "a"}]


def in_the_file(path):
    """Return the ids of nodes as they are without the log."""
    with contextlib.closing(database_file.connect(path, mode="ro&immutable=1")) as connection:
        return [id for (id,) in connection.execute("SELECT id FROM nodes ORDER BY id")]


@pytest.fixture
def path(tmp_path):
    made = tmp_path / "mimir.db"
    database_file.prepare(made)
    return made


class Pen:
    """A lock that counts how often it was taken."""

    def __init__(self):
        self.taken = 0

    def __enter__(self):
        self.taken += 1

    def __exit__(self, *_):
        pass


def writing(path, *, pages=1):
    """Return a connection that has written so many pages and more, and holds the log open."""
    connection = database_file.connect(path)
    connection.execute("PRAGMA wal_autocheckpoint = 0")
    connection.execute("PRAGMA synchronous = NORMAL")
    connection.execute("INSERT INTO nodes (id, label, texts, props) VALUES ('a', 'Task', 0, '{}')")
    connection.execute("INSERT INTO texts VALUES (1, 'text', ?)", ("x" * 4096 * pages,))
    return connection


def bring(path, pen):
    """Bring the log once; whether that was all of it."""
    one = checkpointer.Checkpointer(None, lambda: database_file.connect(path), pen)
    with contextlib.closing(one):
        return one.checkpoint()


async def test_commit_that_did_not_wait_is_in_the_file_soon(path, monkeypatch):
    brought = threading.Event()
    bring = checkpointer.Checkpointer.checkpoint

    def noted(self):
        found = bring(self)
        brought.set()
        return found

    monkeypatch.setattr(checkpointer.Checkpointer, "checkpoint", noted)
    monkeypatch.setattr(checkpointer, "SECONDS", 0)
    async with opened(SqliteStore(path, FrozenClock())) as store:
        await store.write(lambda ops: ops.upsert("Task", ROW), durable=False)
        assert await asyncio.to_thread(brought.wait, 60)
        assert in_the_file(path) == ["a"]


async def test_non_durable_store_makes_no_checkpoint(path, monkeypatch):
    monkeypatch.setattr(checkpointer.Checkpointer, "schedule", lambda _: pytest.fail("owed"))
    async with opened(SqliteStore(path, FrozenClock(), durable=False)) as store:
        await store.write(lambda ops: ops.upsert("Task", ROW), durable=False)


async def test_closed_store_makes_no_further_checkpoint(path, monkeypatch):
    monkeypatch.setattr(checkpointer, "SECONDS", 0)
    monkeypatch.setattr(checkpointer.Checkpointer, "checkpoint", lambda _: pytest.fail("brought"))
    store = SqliteStore(path, FrozenClock())
    await store.init()
    await store.write(lambda ops: ops.upsert("Task", ROW), durable=False)
    await store.close()
    await asyncio.sleep(0)
    assert in_the_file(path) == ["a"]


def test_checkpoint_waits_for_an_open_reader(path):
    with (
        contextlib.closing(database_file.connect(path)) as reader,
        contextlib.closing(writing(path)),
    ):
        reader.execute("BEGIN")
        reader.execute("SELECT count(*) FROM nodes").fetchone()
        with contextlib.closing(database_file.connect(path)) as other:
            other.execute("UPDATE nodes SET label = 'Run'")
        assert not bring(path, threading.Lock())
        reader.execute("ROLLBACK")
        assert bring(path, threading.Lock())
    assert in_the_file(path) == ["a"]


@pytest.mark.parametrize("is_long", [True, False])
def test_long_log_restarts_without_a_writer(path, monkeypatch, *, is_long: bool):
    monkeypatch.setattr(checkpointer, "LOG_PAGES", 20 if is_long else 1000)
    pen = Pen()
    with contextlib.closing(writing(path, pages=50)) as connection:
        before = path.with_name("mimir.db-wal").stat().st_size
        assert bring(path, pen)
        assert pen.taken == is_long

        connection.execute("UPDATE nodes SET label = 'Run'")
        assert path.with_name("mimir.db-wal").stat().st_size == before, "it is written over"


@pytest.mark.parametrize("broken", ["connection", "store"])
def test_failed_checkpoint_leaves_the_error_to_the_next_commit(path, broken: str):
    def connect():
        if broken == "store":
            raise database_file.problem(sqlite3.OperationalError("gone"), path)
        closed = sqlite3.connect(path)
        closed.close()
        return closed

    assert checkpointer.Checkpointer(None, connect, threading.Lock()).checkpoint()


async def test_commit_during_a_checkpoint_causes_another_checkpoint(path, monkeypatch):
    begun, gate, again = threading.Event(), threading.Event(), threading.Event()
    bring = checkpointer.Checkpointer.checkpoint

    def slowly(self):
        if begun.is_set():
            again.set()
        begun.set()
        gate.wait(60)
        return bring(self)

    monkeypatch.setattr(checkpointer.Checkpointer, "checkpoint", slowly)
    monkeypatch.setattr(checkpointer, "SECONDS", 0)
    async with opened(SqliteStore(path, FrozenClock())) as store:
        await store.write(lambda ops: ops.upsert("Task", ROW), durable=False)
        assert await asyncio.to_thread(begun.wait, 60)
        await store.write(lambda ops: ops.upsert("Task", [{"id": "b"}]), durable=False)
        assert not again.is_set(), "one at a time"
        gate.set()
        assert await asyncio.to_thread(again.wait, 60)
