"""The saved queries of docs/neo4j on a real run: with a retry, a failure, and a blocked task."""

import asyncio
import re
import secrets
from pathlib import Path

import pytest
from neo4j import GraphDatabase

from mimir.bootstrap.clock import SystemClock
from mimir.domain.run import RunBudget
from mimir.store.neo4j.address import parse
from mimir.store.neo4j.neo4j_store import Neo4jStore
from mimir.store.neo4j.query_library import STATUS_LABELS
from mimir.store.operations import claims
from tests.support.neo4j_servers import store_uri
from tests.support.whole_run import PLAN_PATH, opened, plan, start, step, worker, writes, wrote

pytestmark = pytest.mark.neo4j

PLACE = Path(__file__).parents[2] / "docs" / "neo4j"
QUERIES = sorted(PLACE.glob("*.cypher"))
TASKS = plan(
    step("a"),
    step("b", "a", max_retries=1),
    step("c", "a", "b"),
    step("bad"),
    step("hangs", "bad"),
    step("far", "hangs", "c"),
)
PARTS = [
    wrote("a"),
    worker("b", writes("b.txt", "wrong\n"), "Done.", attempt=1),
    wrote("b", attempt=2),
    wrote("c"),
    worker("bad", writes("bad.txt", "wrong\n"), "Done."),
]


@pytest.fixture(scope="module")
def uri(tmp_path_factory):
    """A store with one finished run, and one that a dead worker has left; its URI and both ids."""
    room = tmp_path_factory.mktemp("queries")
    where = store_uri(room)

    async def make():
        project = start(room)
        async with opened(project, PARTS, store=where) as mimir:
            run = await mimir.create_run(TASKS, PLAN_PATH, only=(), limits=RunBudget())
            await mimir.drive(run, workers=2, apply="never", limits=RunBudget(), resumed=False)
            left = await mimir.create_run(TASKS, "", only=(), limits=RunBudget())
        store = Neo4jStore(parse(where), SystemClock(), door=secrets.token_hex(4))
        await store.init()
        await store.write(lambda ops: claims.release_task(ops, left, [("a", 1.0)]))
        await store.write(lambda ops: claims.claim(ops, left, "gone", lease_seconds=0.000001))
        await store.close()
        return run, left

    return (where, *asyncio.run(make()))


@pytest.fixture(scope="module")
def run_query(uri):
    """Query the server about the finished run, as a user does."""
    address = parse(uri[0])
    with GraphDatabase.driver(
        address.uri, auth=(address.user, address.password) if address.user else None
    ) as driver:
        yield lambda text: driver.execute_query(text).records


def about(text, run):
    """Replace the run, as its comment describes."""
    return text.replace("r.id STARTS WITH ''", f"r.id STARTS WITH '{run}'")


def names(records):
    """Return the names of all nodes in an answer."""
    found = set()
    for value in (value for record in records for value in record.values()):
        for node in getattr(value, "nodes", [value] if hasattr(value, "labels") else ()):
            found.add(node["name"])
    return found


def test_all_saved_queries_of_the_page_exist():
    page = (PLACE.parent / "neo4j.md").read_text(encoding="utf-8")

    assert len(QUERIES) == 10
    assert {path.name for path in QUERIES} <= set(re.findall(r"[\w-]+\.cypher", page))


@pytest.mark.parametrize("path", QUERIES, ids=lambda path: path.stem)
def test_each_query_begins_with_a_sentence_and_finds_something(path, uri, run_query):
    text = path.read_text(encoding="utf-8")

    assert re.match(r"// [A-Z].*\.\n", text)
    assert "$" not in text
    assert run_query(about(text, uri[1]))


EXPECTED = {
    "dag": {"Write a.txt", "Write b.txt", "Write c.txt", "Write bad.txt", "Write hangs.txt", "Write far.txt"},
    "critical-path": {"Write a.txt", "Write b.txt", "Write c.txt"},
    "blocked": {"Write bad.txt", "Write hangs.txt", "Write far.txt"},
    "files": {
        "A journey", "Write a.txt", "Write b.txt", "Write c.txt", "a attempt 1", "b attempt 2", "c attempt 1", "a.txt",
        "b.txt", "c.txt",
    },
}  # fmt: skip


@pytest.mark.parametrize("stem", EXPECTED)
def test_saved_graph_query_shows_the_run(stem, uri, run_query):
    assert (
        names(run_query(about((PLACE / f"{stem}.cypher").read_text(encoding="utf-8"), uri[1])))
        == EXPECTED[stem]
    )


def test_task_shows_attempts_verdicts_and_evidence(uri, run_query):
    shown = names(run_query(about((PLACE / "task.cypher").read_text(encoding="utf-8"), uri[1])))

    assert {"Write b.txt", "b attempt 1", "b attempt 2", "b verdict 1"} <= shown
    assert {"deliverable 0", "check 1"} <= shown


def test_saved_table_queries_show_the_run(uri, run_query):
    def rows(stem):
        text = about((PLACE / f"{stem}.cypher").read_text(encoding="utf-8"), uri[1])
        return [record.data() for record in run_query(text)]

    mine = [row for row in rows("failures") if uri[1] in row["someRuns"]]
    assert {(row["task"], row["cause"]) for row in mine} == {
        ("Write b.txt", "check_failed"),
        ("Write bad.txt", "check_failed"),
    }
    stuck = [row for row in rows("stuck-leases") if row["run"] == uri[2]]
    assert [(row["what"], row["phase"], row["holder"]) for row in stuck] == [
        ("a", "worker_executing", "gone")
    ]
    used = {row["kind"]: row for row in rows("preambles") if uri[1] in row["someRuns"]}
    assert {kind: row["attempts"] for kind, row in used.items()} == {"worker": 5, "qc": 5}
    context = rows("context")
    assert [(row["task"], row["attempt"]) for row in context][:3] == [("a", 1), ("b", 1), ("b", 2)]
    assert all(row["pieces"] and 0 < row["given"] <= row["available"] for row in context)


def test_every_node_has_a_name_and_every_status_its_colour(uri, run_query):
    nameless = run_query(
        f"MATCH (n {{_store: '{parse(uri[0]).store}'}}) WHERE NOT n:MimirStore AND NOT n:MimirDoor "
        "AND trim(coalesce(n.name, '')) = '' RETURN labels(n)"
    )

    assert nameless == []
    style = (PLACE / "mimir.grass").read_text(encoding="utf-8")
    for shown in (name for by_status in STATUS_LABELS.values() for name in by_status.values()):
        assert f"node.{shown} {{" in style
