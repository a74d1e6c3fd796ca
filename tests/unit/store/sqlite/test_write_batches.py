"""Jobs that are committed together, and two processes by turns: the writer's cache must never differ from the store."""

import asyncio
import shutil
import tempfile
import threading
from pathlib import Path

import pytest
from hypothesis import Phase, given, settings
from hypothesis import strategies as st

from mimir.errors import DamagedNode, StoreError
from mimir.store.conditions import matches, parse
from mimir.store.sqlite import database_file
from mimir.store.sqlite.conditions import conditions
from mimir.store.sqlite.node import StoredNode
from mimir.store.sqlite.node_cache import NodeCache
from mimir.store.sqlite.sqlite_store import SqliteStore
from mimir.store.sqlite.write_ops import SqliteOps
from tests.support.clock import FrozenClock
from tests.support.graph_model import GraphModel
from tests.support.graph_steps import (  # fmt: skip
    PROPS,
    STEPS,
    UPSERTS,
    UndoneError,
    on_model,
    on_store,
)
from tests.support.stores import ids, opened, put

NO_SHRINKING = (Phase.explicit, Phase.generate)
ENDS = st.sampled_from(["good", "good", "good", "good", "good", "fails", "refused"])
BATCHES = st.lists(
    st.tuples(st.integers(0, 1), st.lists(st.tuples(STEPS, ENDS), min_size=1, max_size=4)),
    min_size=4,
    max_size=10,
)
"""Writers and jobs: good ones leave out values that a store must refuse."""
EACH_VALUE = (
    None, "", "a", "1", "true", '["a"]', "l" * 1000, "a\0b", 0, 1, -1, 2**63 - 1, 1.0, 0.5, True, False, ["a"], [],
)  # fmt: skip
FITTING = {"status": (str,), "seq": (int, float)}
"""Values of a promoted property."""


def store_at(path, **how):
    return SqliteStore(path, FrozenClock(), durable=False, **how)


async def together(store, works):
    """Let jobs wait until all of them are there, so that they are committed together."""
    gate = threading.Event()
    first = asyncio.ensure_future(store.write(lambda ops: gate.wait(200)))
    await asyncio.sleep(0)
    waiting = [asyncio.ensure_future(store.write(work)) for work in works]
    await asyncio.sleep(0)
    gate.set()
    await first
    return await asyncio.gather(*waiting, return_exceptions=True)


def job(steps, end):
    def work(ops):
        answers = [on_store(ops, step) for step in steps]
        if end == "fails":
            raise UndoneError
        return answers

    return work


def expected(model, steps, end):
    """Do a job on a copy of the model; its steps, its answers and the model after it, or the error and the model as it was."""
    copy = GraphModel()
    copy.nodes, copy.edges = dict(model.nodes), set(model.edges)
    done, answers = [], []
    for step in steps:
        answer = on_model(copy, step)
        if answer is not StoreError:
            answers.append(answer)
        elif end == "refused":
            return steps, StoreError, model
        else:
            continue
        done.append(step)
    return (done, UndoneError, model) if end == "fails" else (done, answers, copy)


def whole(model):
    nodes = sorted((label, row["id"], row) for label, row in model.nodes.values())
    return [
        *((label, row) for label, _, row in nodes),
        *sorted(model.edges, key=lambda e: (e[1], e[0], e[2])),
    ]


@settings(max_examples=25, phases=NO_SHRINKING)
@given(st.lists(UPSERTS, min_size=4, max_size=8), BATCHES)
def test_any_batches_of_two_processes_leave_the_simplest_graph(first, batches):
    async def run(room):
        model = GraphModel()
        doors = [store_at(room / "mimir.db") for _ in range(2)]
        for door in doors:
            await door.init()
        for number, jobs in [(0, [([step], "good") for step in first]), *batches]:
            works, wanted = [], []
            for steps, end in jobs:
                done, answer, model = expected(model, steps, end)
                works.append(job(done, end))
                wanted.append(answer)
            answers = await together(doors[number], works)
            assert [type(a) if isinstance(a, Exception) else a for a in answers] == wanted
            for door in doors:
                assert await door.read(lambda reads: list(reads.dump())) == whole(model)
        for door in doors:
            await door.close()

    room = Path(tempfile.mkdtemp(prefix="mimir-batches-"))
    try:
        asyncio.run(run(room))
    finally:
        shutil.rmtree(room)


@pytest.mark.parametrize("name", ["a", "status", "seq"])
def test_cached_comparison_equals_the_sql_comparison(tmp_path, name):
    path = tmp_path / "mimir.db"
    database_file.prepare(path)
    connection = database_file.connect(path, durable=False)
    connection.execute("BEGIN IMMEDIATE")
    kept, answered = NodeCache(), set()
    ops = SqliteOps(connection, lambda: "", kept)
    fitting = [v for v in EACH_VALUE if name == "a" or v is None or type(v) in FITTING[name]]
    for number, held in enumerate(fitting):
        ops.upsert("Task", [{"id": f"t{number}", name: held}])

    for number, held in enumerate(fitting):
        for wanted in EACH_VALUE:
            for condition in (
                wanted, ("in", [wanted, "other"]), ("!=", wanted), ("in", []), ("in", [wanted, None]),
            ):  # fmt: skip
                checked = parse({name: condition})
                asked = conditions(checked)
                sql = f"SELECT count(*) FROM nodes n WHERE n.id = 't{number}'{asked.text}"
                (found,) = connection.execute(sql, asked.bound).fetchone()
                by_hand = matches(kept.get(f"t{number}").get, checked)
                answered.add(by_hand)

                assert by_hand == bool(found), (held, condition)

    connection.close()
    assert answered == {True, False}


def test_cached_node_equals_the_stored_node(tmp_path):
    path = tmp_path / "mimir.db"
    database_file.prepare(path)
    connection = database_file.connect(path, durable=False)

    @settings(max_examples=150, phases=NO_SHRINKING)
    @given(st.lists(st.tuples(st.sampled_from(["upsert", "patch", "patch_if"]), PROPS), max_size=5))
    def is_the_same(changes):
        connection.execute("BEGIN IMMEDIATE")
        ops = SqliteOps(connection, lambda: "", NodeCache())
        ops.upsert("Task", [{"id": "x"}])
        for verb, props in changes:
            if verb == "upsert":
                ops.upsert("Task", [{"id": "x", **props}])
            elif verb == "patch":
                assert ops.patch("Task", "x", props)
            else:
                assert ops.patch_if("Task", "x", {}, props) == ops.get("Task", "x")
        in_hand = ops.get("Task", "x")
        found = ops.find("Task", {})
        read = SqliteOps(connection, lambda: "", NodeCache()).get("Task", "x")
        connection.execute("ROLLBACK")

        assert found == [in_hand]
        assert read == in_hand

    is_the_same()
    connection.close()


async def test_returned_row_is_a_copy(tmp_path):
    async with opened(store_at(tmp_path / "mimir.db")) as store:

        def work(ops):
            ops.upsert("Task", [{"id": "x", "tags": ["a"], "n": 1}])
            for row in (ops.get("Task", "x"), ops.patch_if("Task", "x", {}, {})):
                row["tags"].append("b")
                row["n"] = 2
            return ops.get("Task", "x")

        assert await store.write(work) == {"id": "x", "tags": ["a"], "n": 1, "version": 1}


async def test_write_of_another_process_is_seen_by_the_next_transaction(tmp_path):
    async with (
        opened(store_at(tmp_path / "mimir.db")) as one,
        opened(store_at(tmp_path / "mimir.db")) as other,
    ):
        await put(one, "Task", {"id": "x", "n": 1})
        await put(other, "Task", {"id": "x", "n": 2})

        assert (await one.write(lambda ops: ops.get("Task", "x")))["n"] == 2
        assert await one.write(lambda ops: ops.patch_if("Task", "x", {"n": 1}, {"n": 3})) is None

        await other.write(lambda ops: ops.delete("Task", ["x"]))
        assert await one.write(lambda ops: ops.patch("Task", "x", {"n": 4})) is False
        await put(other, "Run", {"id": "x"})
        with pytest.raises(StoreError, match="it is a Run"):
            await put(one, "Task", {"id": "x"})


async def test_job_that_fails_is_run_again_by_itself_and_so_are_the_others(tmp_path):
    runs = []
    async with opened(store_at(tmp_path / "mimir.db")) as store:
        await put(store, "Run", {"id": "r", "n": 0})

        def count(ops, name):
            runs.append(name)
            row = ops.patch_if("Run", "r", {}, {})
            ops.patch("Run", "r", {"n": row["n"] + 1})
            if name == "b":
                raise UndoneError

        ended = await together(store, [lambda ops, n=n: count(ops, n) for n in "abc"])
        row = await store.read(lambda reads: reads.get("Run", "r"))

    assert [type(e) for e in ended] == [type(None), UndoneError, type(None)]
    assert runs == ["a", "b", "a", "b", "c"]
    assert (row["n"], row["version"]) == (2, 2)


async def test_damage_to_one_node_fails_the_job_that_reads_it_alone(tmp_path):
    path = tmp_path / "mimir.db"
    async with opened(store_at(path)) as store:
        await put(store, "Task", {"id": "good"}, {"id": "bad"})
        connection = database_file.connect(path)
        connection.execute("UPDATE nodes SET props = '[' WHERE id = 'bad'")
        connection.close()

        ended = await together(
            store,
            [
                lambda ops: ops.patch("Task", "good", {"n": 1}),
                lambda ops: ops.patch("Task", "bad", {"n": 1}),
                lambda ops: ops.upsert("Task", [{"id": "new"}]),
            ],
        )

        assert [type(e) for e in ended] == [bool, DamagedNode, type(None)]
        assert (await store.read(lambda reads: reads.get("Task", "good")))["n"] == 1


async def test_many_nodes_and_long_texts_go_through_one_transaction(tmp_path):
    async with opened(store_at(tmp_path / "mimir.db")) as store:
        rows = [
            {"id": f"t{i:05d}", "n": 0, "text": "l" * (20_000 if i % 9 else 3)} for i in range(2500)
        ]
        await put(store, "Task", *rows)

        def again(ops):
            for row in rows:
                ops.patch_if("Task", row["id"], {"n": 0}, {"n": 1, "text": row["text"] + "!"})

        await store.write(again)
        await store.write(lambda ops: ops.patch("Task", "t00001", {"m": 1}))
        found = await store.read(lambda reads: reads.find("Task", {}))

        assert {len(row["text"]) for row in found} == {20_001, 4}
        assert {row["n"] for row in found} == {1}
        assert await ids(store, "Task", {"m": 1}) == ["t00001"]


def test_unwritten_nodes_are_never_stored():
    kept, written = NodeCache(), StoredNode(0, "Task", "", {}, {}, {}, frozenset())
    waiting = [f"waiting{n}" for n in range(40)]
    for id in waiting:
        kept.put(written._replace(id=id, unwritten=frozenset({"status"})))
    for number in range(5_000):
        kept.put(written._replace(id=f"written{number}"))

    assert [node.id for node in kept.unwritten()] == waiting
    assert kept.get("written0") is None
    assert kept.get("written4999")
    kept.trim()
    assert all(map(kept.get, waiting))
