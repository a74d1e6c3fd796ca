"""The embedded store's file: whole or not there, and never changed when it is not ours."""

import asyncio
import os
import sqlite3
import stat
import subprocess
import sys
from pathlib import Path

import pytest

from mimir.errors import DamagedNode, Paused, StoreError
from mimir.store.schema import SCHEMA_VERSION
from mimir.store.sqlite import database_file, write_ops
from mimir.store.sqlite.read_ops import SqliteReads
from mimir.store.sqlite.sqlite_store import SqliteStore
from tests.support.clock import FrozenClock
from tests.support.stores import ids, opened, put


def store_at(path, **how):
    return SqliteStore(path, FrozenClock(), **how)


async def fill(path):
    async with opened(store_at(path)) as store:
        await put(store, "Task", {"id": "a", "name": "x", "text": "t" * 3000}, {"id": "b"})


def sql(path, *statements):
    connection = sqlite3.connect(path, isolation_level=None)
    for statement in statements:
        connection.execute(statement)
    connection.execute("PRAGMA wal_checkpoint(TRUNCATE)")
    connection.close()


def snapshot(room):
    return {
        p.name: (p.read_bytes(), p.stat().st_mtime_ns)
        for p in sorted(room.iterdir())
        if p.is_file()
    }


async def refusal(path):
    before = snapshot(path.parent)
    with pytest.raises(StoreError) as caught:
        await store_at(path).init()
    assert snapshot(path.parent) == before
    return str(caught.value)


async def test_file_and_directory_are_for_the_owner_alone(tmp_path):
    path = tmp_path / "new" / ".mimir" / "mimir.db"
    old = os.umask(0)
    try:
        async with opened(store_at(path)) as store:
            await put(store, "Task", {"id": "a"})
            files = {p.name: stat.S_IMODE(p.stat().st_mode) for p in path.parent.iterdir()}
    finally:
        os.umask(old)

    assert stat.S_IMODE(path.parent.stat().st_mode) == 0o700
    assert files == dict.fromkeys(("mimir.db", "mimir.db-shm", "mimir.db-wal"), 0o600)
    assert [p.name for p in path.parent.iterdir()] == ["mimir.db"]


async def test_store_of_a_newer_schema_is_refused_by_name_and_untouched(tmp_path):
    path = tmp_path / "mimir.db"
    await fill(path)
    sql(path, f"PRAGMA user_version = {SCHEMA_VERSION + 6}")

    said = await refusal(path)

    assert f"schema {SCHEMA_VERSION + 6}" in said
    assert str(path) in said


async def test_store_of_an_earlier_schema_is_marked_when_it_is_opened(tmp_path):
    path = tmp_path / "mimir.db"
    await fill(path)
    sql(path, f"PRAGMA user_version = {SCHEMA_VERSION - 1}")

    async with opened(store_at(path)):
        pass

    assert int.from_bytes(path.read_bytes()[60:64], "big") == SCHEMA_VERSION


async def test_newer_schema_in_the_log_alone_is_refused(tmp_path):
    path = tmp_path / "mimir.db"
    await fill(path)
    other = sqlite3.connect(path, isolation_level=None)
    other.execute("PRAGMA wal_autocheckpoint = 0")
    other.execute(f"PRAGMA user_version = {SCHEMA_VERSION + 1}")

    with pytest.raises(StoreError, match=f"schema {SCHEMA_VERSION + 1}"):
        await store_at(path).init()
    other.close()


@pytest.mark.parametrize(
    "content",
    [
        b"x",
        b"hello " * 1000,
        b"\0" * 5000,
        b"SQLite format 3\0",
        b"SQLite format 3\0" + b"\0" * 4080,
        b"\xff" * 100,
    ],
)
async def test_foreign_file_is_refused_and_untouched(tmp_path, content):
    path = tmp_path / "mimir.db"
    path.write_bytes(content)

    assert "not a store of mimir" in await refusal(path)


async def test_foreign_database_is_refused_and_untouched(tmp_path):
    path = tmp_path / "mimir.db"
    connection = sqlite3.connect(path)
    connection.execute("PRAGMA journal_mode = WAL")
    connection.execute("CREATE TABLE users (name)")
    connection.close()

    assert "not a store of mimir" in await refusal(path)


@pytest.mark.parametrize("kind", ["directory", "fifo", "broken link"])
async def test_store_that_is_no_regular_file_is_refused(tmp_path, kind):
    path = tmp_path / "mimir.db"
    if kind == "directory":
        path.mkdir()
    elif kind == "fifo":
        os.mkfifo(path)
    else:
        path.symlink_to(tmp_path / "nowhere" / "x")

    if kind == "broken link":
        await fill(path)  # replaced by the store: the link led nowhere
        assert path.is_file()
    else:
        assert "not a store of mimir" in await refusal(path)


async def test_directory_that_is_a_file_is_refused(tmp_path):
    (tmp_path / "room").write_text("x")

    with pytest.raises(StoreError, match="cannot be opened"):
        await store_at(tmp_path / "room" / "mimir.db").init()


async def test_damaged_store_is_refused_and_untouched(tmp_path):
    path = tmp_path / "mimir.db"
    await fill(path)
    whole = path.read_bytes()

    path.write_bytes(whole[:100] + b"\xee" * 3000 + whole[3100:])
    assert "damaged" in await refusal(path)

    path.write_bytes(whole[:3000])
    assert "damaged" in await refusal(path)


async def test_store_without_its_tables_is_refused(tmp_path):
    path = tmp_path / "mimir.db"
    await fill(path)
    sql(path, "DROP TABLE edges")

    assert "'edges'" in await refusal(path)


async def test_empty_file_becomes_a_store(tmp_path):
    path = tmp_path / "mimir.db"
    path.touch(0o644)
    await fill(path)

    assert stat.S_IMODE(path.stat().st_mode) == 0o600
    async with opened(store_at(path)) as store:
        assert await ids(store, "Task", {}) == ["a", "b"]


@pytest.mark.parametrize("name", ["a b.db", "ü🧊.db", "100%.db", "q?x=1#y.db", "it's.db"])
async def test_any_file_name_is_only_a_name(tmp_path, name):
    await fill(tmp_path / name)

    assert [p.name for p in tmp_path.iterdir()] == [name]


async def test_name_that_is_no_text_is_only_a_name(tmp_path):
    path = Path(os.fsdecode(os.fsencode(tmp_path) + b"/\xff\xfe.db"))
    await fill(path)

    async with opened(store_at(path)) as store:
        assert await ids(store, "Task", {}) == ["a", "b"]


async def test_many_processes_may_create_the_store_at_once(tmp_path):
    stores = [store_at(tmp_path / "room" / "mimir.db") for _ in range(6)]
    await asyncio.gather(*(s.init() for s in stores))
    await asyncio.gather(*(put(s, "Task", {"id": f"t{i}"}) for i, s in enumerate(stores)))

    assert await ids(stores[0], "Task", {}) == [f"t{i}" for i in range(6)]
    for store in stores:  # SQLite clears up with the last one, unless two leave at once
        await store.close()
    assert [p.name for p in (tmp_path / "room").iterdir()] == ["mimir.db"]


async def test_lock_that_is_never_given_back_pauses_the_run(tmp_path):
    path = tmp_path / "mimir.db"
    async with opened(store_at(path, patience_seconds=0.01)) as store:
        other = sqlite3.connect(path, isolation_level=None)
        other.execute("BEGIN IMMEDIATE")

        with pytest.raises(Paused, match="held by another process") as caught:
            await put(store, "Task", {"id": "a"})
        assert (caught.value.reason, caught.value.exit_code) == ("store", 75)

        other.close()
        await put(store, "Task", {"id": "a"})


FULL_DISK = """
import asyncio, pathlib, resource, signal, sys
from mimir.errors import Paused
from mimir.store.sqlite.sqlite_store import SqliteStore
from tests.support.clock import FrozenClock

async def main(path):
    store = SqliteStore(pathlib.Path(path), FrozenClock())
    await store.init()
    await store.write(lambda ops: ops.upsert("Task", [{"id": "before"}]))
    signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
    resource.setrlimit(resource.RLIMIT_FSIZE, (300_000, resource.RLIM_INFINITY))
    try:
        await store.write(lambda ops: ops.upsert("Task", [{"id": f"t{i}", "text": "x" * 50_000} for i in range(20)]))
    except Paused as paused:
        print(paused.reason, paused.exit_code, path in str(paused), bool(paused.next_step))
    resource.setrlimit(resource.RLIMIT_FSIZE, (resource.RLIM_INFINITY, resource.RLIM_INFINITY))
    await store.write(lambda ops: ops.upsert("Task", [{"id": "after"}]))
    print([r["id"] for r in await store.read(lambda reads: reads.find("Task", {}))])
    await store.close()

asyncio.run(main(sys.argv[1]))
"""


def test_full_disk_pauses_without_loss_and_writes_succeed_afterwards(tmp_path):
    path = tmp_path / "mimir.db"

    ran = subprocess.run(
        [sys.executable, "-c", FULL_DISK, str(path)],
        capture_output=True, text=True, check=False, cwd=Path(__file__).parents[4],
    )  # fmt: skip

    assert ran.stdout.splitlines() == ["disk 75 True True", "['after', 'before']"], ran.stderr


@pytest.mark.parametrize(
    ("code", "kind", "reason"),
    [
        (sqlite3.SQLITE_FULL, Paused, "disk"),
        (sqlite3.SQLITE_IOERR_WRITE, Paused, "disk"),
        (sqlite3.SQLITE_BUSY, Paused, "store"),
        (sqlite3.SQLITE_BUSY_SNAPSHOT, Paused, "store"),
        (sqlite3.SQLITE_CORRUPT, StoreError, ""),
        (sqlite3.SQLITE_NOTADB, StoreError, ""),
        (sqlite3.SQLITE_CANTOPEN, StoreError, ""),
        (sqlite3.SQLITE_READONLY, StoreError, ""),
        (sqlite3.SQLITE_CONSTRAINT, StoreError, ""),
    ],
)
def test_each_database_error_has_its_class_and_reason(code, kind, reason):
    error = sqlite3.OperationalError("it said so")
    error.sqlite_errorcode = code

    told = database_file.problem(error, Path("/somewhere/mimir.db"))

    assert type(told) is kind
    assert getattr(told, "reason", "") == reason
    assert "/somewhere/mimir.db" in str(told)


def test_full_file_system_is_a_pause_and_other_trouble_is_not():
    assert database_file.problem(OSError(28, "No space left on device"), Path("x")).reason == "disk"
    assert type(database_file.problem(OSError(13, "Permission denied"), Path("x"))) is StoreError


@pytest.mark.parametrize("damage", ['{"name":', "[]", "7", '"{}"', "", "{}x", "{name:1}", " []"])
async def test_damaged_properties_name_the_node(tmp_path, damage):
    path = tmp_path / "mimir.db"
    await fill(path)
    sql(path, f"UPDATE nodes SET props = '{damage}' WHERE id = 'a'")

    async with opened(store_at(path)) as store:
        for work in (
            lambda r: r.get("Task", "a"),
            lambda r: r.find("Task", {}),
            lambda r: r.find("Task", {}, only=("name", "title")),
            lambda r: list(r.dump()),
        ):
            with pytest.raises(DamagedNode, match="'a'") as caught:
                await store.read(work)
            assert (caught.value.label, caught.value.id) == ("Task", "a")
        with pytest.raises(DamagedNode):
            await store.write(lambda ops: ops.patch("Task", "a", {"name": "y"}))
        assert await store.read(lambda r: r.get("Task", "b")) == {"id": "b"}


async def test_damaged_text_is_read_with_marks_not_refused(tmp_path):
    path = tmp_path / "mimir.db"
    await fill(path)
    sql(path, "UPDATE texts SET value = CAST(x'41ff42' AS TEXT)")

    async with opened(store_at(path)) as store:
        assert (await store.read(lambda r: r.get("Task", "a")))["text"] == "A\ufffdB"


@pytest.mark.parametrize("boundary", ["before-commit", "after-commit"])
async def test_fault_at_a_boundary_keeps_the_transaction_atomic(tmp_path, boundary):
    armed = []

    def fault(name):
        if armed and name == boundary:
            raise RuntimeError(name)

    async with opened(store_at(tmp_path / "mimir.db", faults=fault)) as store:
        await put(store, "Task", {"id": "a"})
        armed.append(True)
        with pytest.raises(RuntimeError, match=boundary):
            await store.write(lambda ops: ops.upsert("Task", [{"id": "b"}, {"id": "c"}]))
        armed.clear()
        await put(store, "Task", {"id": "d"})

        kept = await ids(store, "Task", {})

    assert kept == (["a", "d"] if boundary == "before-commit" else ["a", "b", "c", "d"])


KILLED = """
import asyncio, os, pathlib, sys
from mimir.store.sqlite.sqlite_store import SqliteStore
from tests.support.clock import FrozenClock

async def main(path, boundary, nth):
    seen = []
    def fault(name):
        if name == boundary:
            seen.append(name)
            if len(seen) == int(nth):
                os.kill(os.getpid(), 9)
    store = SqliteStore(pathlib.Path(path), FrozenClock(), faults=fault)
    await store.init()
    for i in range(5):
        await store.write(lambda ops: ops.upsert("Task", [{"id": f"{i}a", "text": "x" * 9000}, {"id": f"{i}b"}]))

asyncio.run(main(*sys.argv[1:]))
"""


@pytest.mark.parametrize(("boundary", "kept"), [("before-commit", 2), ("after-commit", 3)])
async def test_killed_process_leaves_complete_transactions(tmp_path, boundary, kept):
    path = tmp_path / "mimir.db"

    ran = await asyncio.to_thread(
        subprocess.run, [sys.executable, "-c", KILLED, str(path), boundary, "3"],
        capture_output=True, check=False, cwd=Path(__file__).parents[4],
    )  # fmt: skip

    assert ran.returncode == -9
    async with opened(store_at(path)) as store:
        assert await ids(store, "Task", {}) == [f"{i}{half}" for i in range(kept) for half in "ab"]


@pytest.mark.parametrize(
    "differs",
    [{"n": True}, {"n": 1.0}, {"l": ["a", "b"]}, {"seq": 3}, {"text": "t" * 3001}, {"x": None}],
)
async def test_equal_row_is_not_written_again(tmp_path, monkeypatch, differs):
    path, log = tmp_path / "mimir.db", tmp_path / "mimir.db-wal"
    row = {"id": "a", "n": 1, "l": ["a"], "seq": 2, "text": "t" * 3000, "x": "y", "absent": None}
    updated, update = [], write_ops._update
    monkeypatch.setattr(write_ops, "_update", lambda node: updated.append(node.id) or update(node))
    async with opened(store_at(path)) as store:
        await put(store, "Preamble", row)
        before = log.read_bytes()

        await put(store, "Preamble", row)
        assert log.read_bytes() == before
        assert updated == []  # SQLite itself leaves out a page that would stay as it is

        await put(store, "Preamble", row | differs)
        assert updated == ["a"]
        [found] = await store.read(lambda reads: reads.find("Preamble", {}))
    [(name, value)] = differs.items()
    assert (found.get(name), type(found.get(name))) == (value, type(value))


PLANS = {
    "tasks of a run in a status": ({"runId": "r", "status": "pending"}, (), "nodes_by_status"),
    "tasks of a run in some statuses": (
        {"runId": "r", "status": ("in", ["a", "b"])},
        (),
        "nodes_by_status",
    ),
    "tasks of a run in a status, in order": (
        {"runId": "r", "status": "pending"},
        ("seq",),
        "nodes_by_status",
    ),
    "all of a run": ({"runId": "r"}, ("seq",), "nodes_by_seq"),
    "events after a number": ({"runId": "r", "seq": (">", 3)}, ("seq",), "nodes_by_seq"),
    "calls of a lane": ({"lane": "l"}, ("seq",), "nodes_by_lane"),
    "records of a chain": ({"chain": "c"}, ("seq",), "nodes_by_chain"),
    "claimable tasks": (
        {"runId": "r", "claimState": "free"},
        ("-priority", "id"),
        "nodes_by_claim",
    ),
    "newest run": (
        {"projectId": "p", "kind": ("in", ["execute"])},
        ("-createdAt",),
        "nodes_by_project",
    ),
    "some ids": ({"id": ("in", ["a", "b"])}, (), "sqlite_autoindex_nodes"),
}


@pytest.mark.parametrize("query", sorted(PLANS))
async def test_frequent_query_uses_an_index(tmp_path, query):
    where, order, index = PLANS[query]
    seen = []
    path = tmp_path / "mimir.db"
    async with opened(store_at(path)) as store:
        await put(
            store, "Task",
            *({"id": f"t{i}", "runId": f"r{i % 9}", "lane": f"l{i}", "chain": "c", "seq": i, "status": "a"} for i in range(300)),
        )  # fmt: skip
    connection = database_file.connect(path)
    connection.set_trace_callback(seen.append)
    SqliteReads(connection, lambda: "").find("Task", where, order=order, limit=3)
    connection.set_trace_callback(None)
    plan = [row[3] for row in connection.execute(f"EXPLAIN QUERY PLAN {seen[-1]}")]
    connection.close()

    assert any(index in step for step in plan), plan
    assert not any(step.startswith("SCAN n") for step in plan), plan
