"""Properties of a Neo4j store beyond the contract: its schema, its graph in Neo4j Browser, a shared database."""

import os
import threading

import pytest
from neo4j import GraphDatabase

from mimir.domain.task_states import RunStatus, TaskStatus
from mimir.errors import StoreError
from mimir.store.neo4j.query_library import STATUS_LABELS, names, query
from mimir.store.neo4j.read_ops import Neo4jReads
from mimir.store.neo4j.write_batch import WriteBatch
from mimir.store.schema import SCHEMA_VERSION, EdgeType, NodeLabel
from tests.support.claims import claim
from tests.support.neo4j_servers import address_of, store_over
from tests.support.small_run import task
from tests.support.stored_run import start
from tests.support.stores import ids, opened, put

pytestmark = pytest.mark.neo4j


@pytest.fixture
async def store(tmp_path, frozen_clock):
    async with opened(store_over(tmp_path, frozen_clock)) as made:
        yield made


@pytest.fixture
def run_query(tmp_path):
    """Ask the server itself; `$store` is this room's."""
    address = address_of(tmp_path)
    auth = (address.user, address.password) if address.user else None
    with GraphDatabase.driver(address.uri, auth=auth) as driver:
        yield lambda text, **bound: [
            record.values()
            for record in driver.execute_query(text, {"store": address.store, **bound}).records
        ]


@pytest.fixture
def operators(tmp_path):
    """Return the server's execution plan of a statement."""
    address = address_of(tmp_path)
    auth = (address.user, address.password) if address.user else None

    def of(plan):
        yield plan["operatorType"].split("@")[0]
        for child in plan.get("children", ()):
            yield from of(child)

    with GraphDatabase.driver(address.uri, auth=auth) as driver:
        yield lambda text, **bound: set(
            of(driver.execute_query(f"EXPLAIN {text}", {"store": "s", **bound}).summary.plan)
        )


async def shown(run_query, label="Task"):
    (labels,) = run_query(f"MATCH (n:{label} {{_store: $store}}) RETURN labels(n)")[0]
    return set(labels)


async def test_status_is_shown_as_a_second_label_in_the_same_transaction(store, run_query):
    await put(store, "Task", {"id": "t", "name": "t", "status": "pending"})
    assert await shown(run_query) == {"Task", "Pending", "mimir"}

    await store.write(lambda ops: ops.patch_if("Task", "t", {}, {"status": "worker_executing"}))
    assert await shown(run_query) == {"Task", "WorkerExecuting", "mimir"}

    await store.write(lambda ops: ops.patch("Task", "t", {"status": "completed"}))
    assert await shown(run_query) == {"Task", "Completed", "mimir"}

    await store.write(lambda ops: ops.patch("Task", "t", {"name": "other"}))
    assert await shown(run_query) == {"Task", "Completed", "mimir"}

    await put(store, "Task", {"id": "t", "status": "failed"})
    assert await shown(run_query) == {"Task", "Failed", "mimir"}

    await store.write(lambda ops: ops.patch("Task", "t", {"status": "`} DETACH DELETE n //"}))
    assert await shown(run_query) == {"Task", "mimir"}


async def test_rolled_back_status_is_not_shown(store, run_query):
    await put(store, "Run", {"id": "r", "status": "running"})

    def work(ops):
        ops.patch("Run", "r", {"status": "completed"})
        raise KeyError("mine")

    with pytest.raises(KeyError):
        await store.write(work)

    assert await shown(run_query, "Run") == {"Run", "Running", "mimir"}


async def test_rows_of_one_upsert_show_each_their_own_status(store, run_query):
    rows = [{"id": f"t{i}", "status": s} for i, s in enumerate(["pending", "failed", "pending"])]
    await put(store, "Task", *rows, {"id": "t3"})

    found = run_query("MATCH (n:Task {_store: $store}) RETURN n.id, labels(n) ORDER BY n.id")

    assert [(id, set(labels) - {"Task", "mimir"}) for id, labels in found] == [
        ("t0", {"Pending"}), ("t1", {"Failed"}), ("t2", {"Pending"}), ("t3", set()),
    ]  # fmt: skip


def test_every_status_has_a_label_and_none_is_the_label_of_a_node():
    assert set(STATUS_LABELS[NodeLabel.TASK]) == {status.value for status in TaskStatus}
    assert set(STATUS_LABELS[NodeLabel.RUN]) == {status.value for status in RunStatus}
    every = {label for by_status in STATUS_LABELS.values() for label in by_status.values()}
    assert not every & {label.value for label in NodeLabel}


async def test_schema_has_its_constraints_and_indexes(store, run_query):
    unique = {tuple(labels + properties) for labels, properties in run_query("SHOW CONSTRAINTS YIELD labelsOrTypes, properties, type WHERE type CONTAINS 'UNIQUENESS' RETURN labelsOrTypes, properties")}  # fmt: skip
    indexed = {tuple(labels + properties) for labels, properties in run_query("SHOW INDEXES YIELD labelsOrTypes, properties, type WHERE type IN ['RANGE', 'FULLTEXT'] RETURN labelsOrTypes, properties")}  # fmt: skip

    assert {(label.value, "_store", "id") for label in NodeLabel} <= unique
    assert {
        ("Task", "runId", "claimState"), ("Task", "runId", "status"), ("Event", "runId", "seq"), ("Call", "lane"),
        ("Task", "_store", "runId", "claimState", "priority", "id"), ("Evidence", "chain"), ("Memory", "text"),
    } <= indexed  # fmt: skip


async def test_duplicate_id_is_refused_by_the_schema(store, run_query):
    await put(store, "Task", {"id": "x"})

    with pytest.raises(Exception, match="already exists"):
        run_query("CREATE (:Run:mimir {_store: $store, id: 'x'})")


async def test_foreign_nodes_are_neither_read_nor_changed(store, run_query):
    run_query("CREATE (:Task {id: $store, status: 'pending'})-[:DEPENDS_ON]->(:Task:mimir {_store: $store, id: 'mine'})")  # fmt: skip

    assert await ids(store, "Task", {}) == ["mine"]
    assert await store.read(lambda reads: reads.neighbours("mine", [], "both")) == []
    assert [entry[-1]["id"] for entry in await store.read(lambda reads: list(reads.dump()))] == [
        "mine"
    ]
    await store.write(lambda ops: ops.delete("Task", ["mine"]))
    assert run_query(
        "MATCH (n:Task {id: $store}) WITH n, n.status AS s DETACH DELETE n RETURN s"
    ) == [["pending"]]


async def test_store_of_an_earlier_schema_is_marked_when_it_is_opened(
    store, run_query, tmp_path, frozen_clock
):
    run_query(
        "MATCH (s:MimirStore {_store: $store}) SET s.schemaVersion = $v", v=SCHEMA_VERSION - 1
    )

    again = store_over(tmp_path, frozen_clock)
    await again.init()
    await again.close()

    assert run_query("MATCH (s:MimirStore {_store: $store}) RETURN s.schemaVersion") == [
        [SCHEMA_VERSION]
    ]


async def test_newer_schema_is_refused_by_name_and_left_untouched(
    store, run_query, tmp_path, frozen_clock
):
    await put(store, "Task", {"id": "t"})
    run_query("MATCH (s:MimirStore {_store: $store}) SET s.schemaVersion = 99")
    before = run_query("MATCH (n {_store: $store}) RETURN properties(n) AS p ORDER BY labels(n)[0]")

    with pytest.raises(StoreError, match=f"schema 99; this mimir knows {SCHEMA_VERSION}"):
        await store_over(tmp_path, frozen_clock).init()
    with pytest.raises(StoreError, match="schema 99"):
        await put(store, "Task", {"id": "u"})

    assert (
        run_query("MATCH (n {_store: $store}) RETURN properties(n) AS p ORDER BY labels(n)[0]")
        == before
    )


async def test_removed_store_is_refused(store, run_query):
    run_query("MATCH (s:MimirStore {_store: $store}) DELETE s")

    with pytest.raises(StoreError, match="removed"):
        await put(store, "Task", {"id": "t"})


async def test_time_of_a_transaction_is_that_of_the_server(store, run_query):
    now = await store.read(lambda reads: reads.now())
    (there,) = run_query("RETURN toString(datetime.realtime())")[0]

    assert now < there
    assert now[:4] == there[:4] != "2030"


async def test_open_store_has_a_process_node_and_removes_it(tmp_path, frozen_clock, run_query):
    async with opened(store_over(tmp_path, frozen_clock)):
        assert len(run_query("MATCH (d:MimirDoor {_store: $store}) RETURN d.id")) == 1

    assert run_query("MATCH (d:MimirDoor {_store: $store}) RETURN d.id") == []


async def test_claim_sends_two_queries_after_the_first_for_any_number(store, monkeypatch):
    """One query reads free and expired tasks, one sends all writes. The row of the run comes with the lock."""
    await start(store, *(task(id) for id in "abcde"))
    await claim(store, limit=1)
    asked = []
    run = Neo4jReads._run
    monkeypatch.setattr(Neo4jReads, "_run", lambda *a, **b: (asked.append(a[1]), run(*a, **b))[1])

    one = await claim(store, limit=1)
    assert (len(one), len(asked)) == (1, 2)
    asked.clear()
    more = await claim(store, limit=3)
    assert (len(more), len(asked)) == (3, 2)


async def test_run_read_with_the_lock_has_its_state_under_the_lock(store, run_query):
    """Two processes: the second waits for the lock while the first changes the run that it will be given."""
    await put(store, "Run", {"id": "r", "number": 0})
    text = str(query("open"))
    address_run = {"run": "r", "lately": 2, "store": store._address.store}
    seen: list[int] = []
    for number in range(1, 4):
        with store._session() as session, session.begin_transaction() as first:
            first.run(text, address_run).consume()  # pyright: ignore[reportArgumentType]
            second = threading.Thread(target=lambda: seen.append(run_query(text, **address_run)[0][2]["number"]))  # fmt: skip
            second.start()
            while not run_query("SHOW TRANSACTIONS YIELD status WHERE status STARTS WITH 'Blocked' RETURN status"):  # fmt: skip
                pass
            first.run("MATCH (n:Run {_store: $store, id: 'r'}) SET n.number = $number", number=number, store=store._address.store).consume()  # fmt: skip
            first.commit()
        second.join()
        assert seen[-1] == number


async def test_recent_writers_are_counted_with_the_lock(tmp_path, frozen_clock, run_query):
    def over():
        return store_over(tmp_path, frozen_clock)

    async with opened(over()) as one, opened(over()) as two:
        await put(one, "Task", {"id": "a"})
        await put(two, "Task", {"id": "b"})
        assert (one._backoff._others, two._backoff._others) == (1, 1)
        run_query("MATCH (d:MimirDoor {_store: $store, id: $id}) SET d.at = '2020-01-01T00:00:00.000Z'", id=one._door)  # fmt: skip
        await put(two, "Task", {"id": "c"})
        assert two._backoff._others == 0


async def test_password_is_in_no_output(store, tmp_path):
    address = address_of(tmp_path)
    secret = address.password or "no-password"

    assert secret not in store.uri
    assert secret not in repr(address) + repr(store) + str(vars(store).keys())
    assert os.sep not in store.uri.partition("://")[2].partition("?")[0]


def everything():
    """Return a statement that writes a node of each label and an edge of each kind."""
    waiting = WriteBatch()
    for label in NodeLabel:
        waiting.put(label.value, {"id": label.value})
    for kind in EdgeType:
        waiting.link(kind.value, ("Run", "Task"), [])
    return waiting.statement()


@pytest.mark.usefixtures("store")
@pytest.mark.parametrize("name", ["all", "get", "these", "patch", "open", "view"])
def test_query_with_a_fixed_plan_reads_by_key_only(name, operators):
    if name == "all":
        made = everything()
        text, bound = made.text(closing=True), {**made.bound, "door": "d", "token": "t", "now": ""}
    else:
        holes = {
            "patch": {
                "label": "Task",
                "status": query("status-none", statuses=names(["Failed"], between=":")),
            }
        }
        given = holes.get(name, {"label": "Task"} if name in ("get", "these") else {})
        text, bound = query(name, **given), {"id": "t", "ids": ["t"], "props": {}}
    assert text.startswith("CYPHER replan=skip")

    found = operators(text, **bound)

    assert [name for name in found if "UniqueIndexSeek" in name]
    assert not [name for name in found if "Scan" in name or name == "NodeIndexSeek"]


@pytest.mark.usefixtures("store")
async def test_tasks_to_claim_are_found_by_the_index_that_is_for_this_and_planned_once(
    store, operators, monkeypatch
):
    await start(store, *(task(id) for id in "ab"))
    asked = []
    run = Neo4jReads._run
    monkeypatch.setattr(
        Neo4jReads, "_run", lambda *a, **b: (asked.append((a[1], b)), run(*a, **b))[1]
    )
    await claim(store, limit=1)
    choosing = [(text, bound) for text, bound in asked if "q0_is_claimState" in bound]
    assert len(choosing) == 1, "free and held tasks together"

    for text, bound in choosing:
        assert text.startswith("CYPHER replan=skip")
        found = operators(text, **bound)
        assert "NodeIndexSeek" in found
        assert not [name for name in found if "Scan" in name]
