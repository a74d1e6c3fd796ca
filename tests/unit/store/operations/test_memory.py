import pytest

from mimir.domain.event import EventKind
from mimir.domain.plan import Check
from mimir.domain.task_states import TaskStatus, TransitionActor
from mimir.errors import StoreError, ToolError
from mimir.store.operations import claims, memory
from mimir.store.operations.memory import MemoryScope, ProjectMemory
from mimir.store.schema import pack
from tests.support.stored_run import start, task

UNIT = Check(id="unit", criteria=("c1",), run="pytest -q")

MINE = MemoryScope(project="p1")


async def write(store, verb, *args, **how):
    return await store.write(lambda ops: verb(ops, *args, **how))


async def read(store, verb, *args, **how):
    return await store.read(lambda reads: verb(reads, *args, **how))


async def search(store, text, view=MINE, **how):
    return [n["id"] for n in await read(store, memory.search_nodes, view, text, **how)]


async def fail(store, run="r1", **props):
    """Let task "a" of a run fail."""
    (held,) = await write(store, claims.claim, run, "w", lease_seconds=60)

    def work(ops):
        ops.patch("Task", f"{run}/{held.task}", props)
        claims.move(
            ops, run, held.task, held.fence, TaskStatus.FAILED, TransitionActor.SCHEDULING, kind=EventKind.TASK_FAILED
        )  # fmt: skip

    await store.write(work)


async def test_note_of_a_user_is_found_at_once_and_stored_once(store):
    first = await write(store, memory.add, "p1", "Style", "Prefer tabs over spaces in parsers")
    again = await write(store, memory.add, "p1", "Style", "Prefer tabs over spaces in parsers")

    (node,) = await read(store, memory.search_nodes, MINE, "parsers")

    assert first == again == node["id"]
    assert {k: node[k] for k in ("label", "name", "state", "text", "kind")} == {
        "label": "Memory", "name": "Style", "state": "accepted", "text": "Prefer tabs over spaces in parsers", "kind": "note",
    }  # fmt: skip


async def test_proposal_is_not_found_before_the_user_accepts_it(store):
    id = await write(
        store,
        memory.propose,
        "p1",
        "L",
        "wombats burrow",
        proposed_by="worker",
        source_attempt="r1/a/1",
    )

    async def seen():
        return (
            await search(store, "wombats"),
            await read(store, memory.get_node, MINE, id) is not None,
            [n["id"] for n in await read(store, memory.query_nodes, MINE, "Memory", {})],
        )

    assert await seen() == ([], False, [])
    assert await write(store, memory.rule, "p1", id, "accepted") is True
    assert await seen() == ([id], True, [id])
    assert await write(store, memory.rule, "p1", id, "rejected") is True
    assert await seen() == ([], False, [])


async def test_rejected_learning_is_not_proposed_again(store):
    id = await write(store, memory.propose, "p1", "L", "same words", proposed_by="worker")
    await write(store, memory.rule, "p1", id, "rejected")

    assert await write(store, memory.propose, "p1", "L", "same words", proposed_by="worker") == id
    assert (await store.read(lambda r: r.get("Memory", id)))["state"] == "rejected"


async def test_memory_of_another_project_is_not_found(store):
    mine = await write(store, memory.add, "p1", "n", "shared word")
    theirs = await write(store, memory.add, "p2", "n", "shared word")
    await start(store, task("a"), id="r2", project_id="p2")

    assert await search(store, "shared") == [mine]
    assert await read(store, memory.get_node, MINE, theirs) is None
    assert await read(store, memory.get_node, MINE, "r2/a") is None
    assert await read(store, memory.get_node, MINE, "p2") is None
    assert await read(store, memory.query_nodes, MINE, "Task", {}) == []
    assert await read(store, memory.query_nodes, MINE, "Run", {"id": "r2"}) == []
    assert await read(store, memory.get_subgraph, MINE, "r2/a", 3) == {"nodes": [], "edges": []}
    assert await read(store, memory.get_neighbors, MINE, theirs) == []
    assert await write(store, memory.rule, "p1", theirs, "rejected") is False
    with pytest.raises(ToolError):
        await write(store, memory.link, "p1", theirs, mine)


async def test_search_skips_other_projects_and_proposals(store):
    for n in range(40):
        await write(store, memory.add, "p2", "n", f"zebra zebra zebra {n}")
        await write(store, memory.propose, "p1", "n", f"zebra zebra {n}", proposed_by="worker")
    mine = await write(
        store, memory.add, "p1", "n", "one zebra in a long sentence about other things"
    )

    assert mine in await search(store, "zebra", limit=3)


async def test_query_compares_shown_properties_with_values(store):
    await start(store, task("a"), task("b", "a"))
    await fail(store)

    async def query(label, filters, **how):
        return [n["id"] for n in await read(store, memory.query_nodes, MINE, label, filters, **how)]

    assert await query("Task", {"status": "failed"}) == ["r1/a"]
    assert await query("Task", {"runId": "r1"}) == ["r1/a", "r1/b"]
    assert await query("Task", {"runId": "r2"}) == []
    assert await query("Task", {}, limit=1) == ["r1/a"]
    assert await query("Run", {"id": "r1"}) == ["r1"]
    assert await query("Project", {}) == ["p1"]
    assert await query("Attempt", {"attemptNumber": 1}) == ["r1/a/1"]
    assert await query("Attempt", {"attemptNumber": True}) == []


@pytest.mark.parametrize(
    ("label", "filters", "hint"),
    [
        ("Tusk", {}, "Task"), ("Call", {}, "Project"), ("Artifact", {}, "Project"), ("Event", {}, "Project"),
        ("Task", {"staus": "x"}, "status"), ("Task", {"prompt": "x"}, ""), ("Run", {"settingsJson": "x"}, ""),
        ("Task", {"a') OR 1=1 --": 1}, ""), ("Task", {"status": {"$ne": 1}}, None), ("Task", {"attemptNumber": 2**70}, None),
        ("Task", {"attemptNumber": float("nan")}, None),
    ],
)  # fmt: skip
async def test_unknown_memory_query_names_the_known_labels_and_filters(store, label, filters, hint):
    with pytest.raises(ToolError) as caught:
        await read(store, memory.query_nodes, MINE, label, filters)

    if hint is not None:
        assert hint in (caught.value.next_step or "")


async def test_labels_and_edges_are_checked(store):
    id = await write(store, memory.add, "p1", "n", "word")

    assert await search(store, "word", labels=["Memory"]) == [id]
    assert await search(store, "word", labels=["Task"]) == []
    with pytest.raises(ToolError):
        await search(store, "word", labels=["Memory", "Secrets"])
    with pytest.raises(ToolError):
        await read(store, memory.get_neighbors, MINE, id, ["LIKES"])


async def test_nodes_show_no_prompt_plan_or_setting(store):
    await start(store, task("a", prompt="SECRET prompt"), settings={"key": "SECRET"})

    nodes = (await read(store, memory.get_subgraph, MINE, "r1", 3))["nodes"]

    assert {n["label"] for n in nodes} == {"Project", "Run", "Task"}
    assert "SECRET" not in str(nodes)


async def test_own_run_can_be_hidden_from_a_worker(store):
    await start(store, task("a"), task("b", "a"))
    await start(store, task("a"), id="r0")
    view = MemoryScope(project="p1", hidden_run="r1")

    assert await read(store, memory.get_node, view, "r1/b") is None
    assert await read(store, memory.get_node, view, "r1") is None
    assert [n["id"] for n in await read(store, memory.query_nodes, view, "Task", {})] == ["r0/a"]
    assert [n["id"] for n in (await read(store, memory.get_subgraph, view, "p1", 3))["nodes"]] == [
        "p1",
        "r0",
        "r0/a",
    ]


async def test_neighbours_follow_types_and_direction(store):
    await start(store, task("a"), task("b", "a"))

    async def near(id, types=(), direction="both"):
        return [
            n["id"] for n in await read(store, memory.get_neighbors, MINE, id, types, direction)
        ]

    assert await near("r1/b") == ["r1", "r1/a"]
    assert await near("r1/b", ["DEPENDS_ON"]) == ["r1/a"]
    assert await near("r1/b", ["DEPENDS_ON"], "in") == []
    assert await near("nobody") == []
    assert await near("\ud800") == []


async def test_subgraph_is_bounded_in_depth_and_size(store):
    await start(store, *(task(f"t{i:03d}", *([f"t{i - 1:03d}"] if i else [])) for i in range(300)))

    async def ids(id, depth):
        found = await read(store, memory.get_subgraph, MINE, id, depth)
        return [n["id"] for n in found["nodes"]], found["edges"]

    nodes, edges = await ids("r1/t005", 1)
    assert nodes == ["r1/t005", "r1", "r1/t004", "r1/t006"]
    assert {"source": "r1/t006", "type": "DEPENDS_ON", "target": "r1/t005"} in edges
    assert len((await ids("r1", 3))[0]) == memory.MAX_NODES
    assert await ids("r1/t005", 99) == await ids("r1/t005", 3)
    assert await ids("r1/t005", 0) == (["r1/t005"], [])


async def test_link_connects_a_note_with_its_subject(store):
    await start(store, task("a"))
    note = await write(store, memory.add, "p1", "n", "word", about=["r1"])
    await write(store, memory.link, "p1", note, "r1/a")

    near = await read(store, memory.get_neighbors, MINE, note, ["ABOUT"], "out")

    assert [n["id"] for n in near] == ["r1", "r1/a"]
    for about in ("nobody", "\0"):
        with pytest.raises(ToolError):
            await write(store, memory.link, "p1", note, about)


async def test_failed_task_leaves_a_lesson_that_the_next_planner_finds(store):
    await start(
        store,
        task("a", title="Token bucket limiter", checks=(UNIT,)),
        task("b", "a"),
        request="Limit the API",
    )
    report = {
        "root_causes": [
            "check_failed (attempts 1, 2): the clock was mocked",
            "check_failed (attempt 7): overcome",
        ],
        "recommendations": ["inject the clock"],
        "prose": "model words",
    }
    await fail(store, cause="check_failed", qcFailureReportJson=pack(report))

    made = await write(store, memory.learn_from_run, "r1")
    before = await store.read(lambda r: list(r.dump()))
    assert await write(store, memory.learn_from_run, "r1") == made
    assert await store.read(lambda r: list(r.dump())) == before

    nodes = await read(store, memory.search_nodes, MINE, "bucket limiter")
    lesson = next(n for n in nodes if n["kind"] == "lesson")
    assert lesson["id"] == "r1/a#lesson"
    for said in (
        "Token bucket limiter",
        "check_failed",
        "1 attempts",
        "the clock was mocked",
        "inject the clock",
    ):
        assert said in lesson["text"]
    assert "model words" not in lesson["text"]
    assert "overcome" not in lesson["text"]
    assert "Check unit: pytest -q" in lesson["text"]
    assert await search(store, "API") == ["r1#lesson"]
    near = await read(store, memory.get_neighbors, MINE, "r1/a#lesson", ["ABOUT"], "out")
    assert [n["id"] for n in near] == ["r1/a"]


async def test_lesson_that_a_later_run_overcame_is_not_given_to_the_planner(store):
    await start(store, task("a", title="Token bucket limiter"))
    await fail(store, cause="check_failed")
    await write(store, memory.learn_from_run, "r1")
    await start(store, task("a", title="Token bucket limiter"), id="r2")
    notes = await read(store, memory.search_notes, MINE, "bucket", 10)
    assert {"r1/a#lesson"} < {note["id"] for note in notes}

    def complete(ops):
        ops.patch("Task", "r2/a", {"status": "completed"})
        ops.patch("Run", "r2", {"createdAt": "9999-01-01T00:00:00.000000Z"})

    await store.write(complete)
    notes = await read(store, memory.search_notes, MINE, "bucket", 10)
    assert "r1/a#lesson" not in {note["id"] for note in notes}


async def test_lesson_without_a_run_is_refused(store):
    with pytest.raises(StoreError, match="ghost"):
        await write(store, memory.learn_from_run, "ghost")


async def test_project_memory_answers_each_query_of_the_tools(store):
    await start(store, task("a"))
    id = await write(store, memory.add, "p1", "n", "wombat")
    door = ProjectMemory(store, MINE)

    assert [n["id"] for n in await door.search_nodes("wombat", labels=[], limit=5)] == [id]
    assert [
        n["id"] for n in await door.query_nodes("Task", filters={"status": "pending"}, limit=5)
    ] == ["r1/a"]
    assert (await door.get_node(id))["text"] == "wombat"
    assert [n["id"] for n in await door.get_neighbors("r1/a", types=[], direction="in")] == ["r1"]
    assert len((await door.get_subgraph("r1/a", depth=2))["nodes"]) == 3
