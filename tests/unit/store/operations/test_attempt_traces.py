"""Nodes for the user beside those of the engine: preambles, and the files that attempts changed."""

from mimir.store.operations import attempt_traces
from tests.support.stores import put


async def attempts(store, *ids):
    await put(store, "Attempt", *({"id": id, "name": id} for id in ids))


async def test_preamble_is_one_node_for_all_that_share_role_and_text(store):
    await attempts(store, "r/a/1", "r/a/2", "r/b/1")

    def work(ops):
        for attempt, role, text in (
            ("r/a/1", "Engineer", "aa"),
            ("r/a/2", "Engineer", "aa"),
            ("r/b/1", "Writer\nof  prose" + "x" * 200, "aa"),
        ):
            attempt_traces.used_preamble(ops, attempt, "p", "worker", role, text * 32)

    await store.write(work)

    rows = await store.read(lambda reads: reads.find("Preamble", {"projectId": "p"}))
    shown = {row["name"]: row for row in rows}
    assert len(shown) == 2
    engineer = shown["worker: Engineer"]
    assert (engineer["hash"], engineer["kind"], engineer["role"]) == ("aa" * 32, "worker", "Engineer")  # fmt: skip
    used = await store.read(lambda reads: reads.neighbours(engineer["id"], ["USED_PREAMBLE"], "in"))
    assert used == ["r/a/1", "r/a/2"]


async def test_file_that_two_attempts_changed_is_one_node(store):
    await attempts(store, "r/a/1", "r/b/1", "s/a/1")
    odd = "d\udc80r/'\"`$ \n🧊" + "x" * 5000

    def work(ops):
        attempt_traces.left_files(ops, "r", "r/a/1", ["api.py", odd])
        attempt_traces.left_files(ops, "r", "r/b/1", ["api.py"])
        attempt_traces.left_files(ops, "s", "s/a/1", ["api.py"])
        attempt_traces.left_files(ops, "s", "s/a/1", [])

    await store.write(work)

    files = await store.read(lambda reads: reads.find("Artifact", {"runId": "r", "kind": "file"}))
    by_name = {row["name"]: row["id"] for row in files}
    assert by_name.keys() == {"api.py", odd.replace("\udc80", "\ufffd")}
    makers = await store.read(lambda reads: reads.neighbours(by_name["api.py"], ["PRODUCED"], "in"))
    assert makers == ["r/a/1", "r/b/1"]


async def test_no_more_files_have_nodes_than_a_picture_can_show(store):
    await attempts(store, "r/a/1")
    paths = [f"f{n}" for n in range(attempt_traces.MOST_FILES + 5)]

    await store.write(lambda ops: attempt_traces.left_files(ops, "r", "r/a/1", paths))

    counted = await store.read(lambda reads: reads.counts("Artifact", "kind", {"runId": "r"}))
    assert counted == {"file": attempt_traces.MOST_FILES}
