"""Contract of every store: finding, counting, edges, search."""

import pytest

from mimir.errors import StoreError
from mimir.store.schema import EdgeType, NodeLabel
from tests.support.small_graphs import diamond, found, notes, six
from tests.support.stores import ids, put, refuses

# Finding


FOUND = [
    ({}, "abcdef"),
    ({"runId": "r"}, "abcd"),
    ({"runId": "r", "status": "pending"}, "ab"),
    ({"runId": None}, "f"),
    ({"status": None}, "ef"),
    ({"text": None}, "d"),
    ({"status": ("in", ["pending", "done", "x"])}, "abcd"),
    ({"status": ("in", ("pending",))}, "ab"),
    ({"status": ("in", {"done"})}, "cd"),
    ({"status": ("in", [])}, ""),
    ({"status": ("in", [None, "done"])}, "cdef"),
    ({"status": ("!=", "pending")}, "cdef"),
    ({"status": ("!=", None)}, "abcd"),
    ({"text": ("!=", "m")}, "bcdef"),
    ({"text": ("!=", "z" * 3000)}, "abdef"),
    ({"text": ("!=", None)}, "abcef"),
    ({"text": ("in", ["m", "z" * 3000, "q" * 2000])}, "ac"),
    ({"seq": (">", 2)}, "cef"),
    ({"seq": (">=", 2), "runId": "r"}, "bc"),
    ({"seq": ("<", 2.5)}, "ab"),
    ({"seq": ("in", [1, 6.0, 7])}, "af"),
    ({"n": 5}, "ab"),
    ({"n": 5.0}, "ab"),
    ({"n": "5"}, "d"),
    ({"n": True}, "e"),
    ({"n": 1}, "f"),
    ({"n": (">", 1)}, "abc"),
    ({"n": ("<=", "5")}, "d"),
    ({"n": ("in", [7, "5", True])}, "cde"),
    ({"ok": True}, "a"),
    ({"ok": False}, "b"),
    ({"ok": ("!=", True)}, "bcdef"),
    ({"ok": 1}, ""),
    ({"tags": ["x"]}, "a"),
    ({"tags": []}, "e"),
    ({"tags": '["x"]'}, ""),
    ({"text": '["x"]'}, "e"),
    ({"tags": (">", "[")}, ""),
    ({"text": (">", "m")}, "c"),
    ({"text": ("<", "a")}, "ef"),
    ({"status": True}, ""),
    ({"seq": "1"}, ""),
    ({"id": "a"}, "a"),
    ({"id": ("in", ["c", "a", "zz"])}, "ac"),
    ({"id": (">", "d")}, "ef"),
    ({"nowhere": "x"}, ""),
    ({"nowhere": None}, "abcdef"),
    ({"runId": "r", "seq": (">", 0), "n": 5, "ok": False}, "b"),
]  # fmt: skip


async def test_find_returns_nodes_that_match_all_conditions(store):
    await six(store)

    for where, expected in FOUND:
        counts = await store.read(lambda reads, w=where: reads.counts("Task", "status", w))
        found = "".join(await ids(store, "Task", where))
        assert (where, found, sum(counts.values())) == (where, expected, len(expected))


ORDERED = [
    ((), None, "abcdef"),
    (("id",), 2, "ab"),
    (("-id",), 2, "fe"),
    (("seq",), None, "dabcef"),
    (("-seq",), None, "fecbad"),
    (("status", "-seq"), None, "fecdba"),
    (("-status", "seq"), None, "abdcef"),
    (("runId",), None, "fabcde"),
    (("text",), None, "dfebac"),
    (("-text",), 3, "cab"),
    (("seq",), 0, ""),
    (("seq",), 100, "dabcef"),
]  # fmt: skip


async def test_missing_values_sort_first_and_equal_ones_by_id(store):
    await six(store)

    for order, limit, expected in ORDERED:
        found = "".join(await ids(store, "Task", {}, order=order, limit=limit))
        assert (order, limit, found) == (order, limit, expected)


NAMED = [
    ("text",),
    ("n",),
    ("seq",),
    ("id",),
    ("nowhere",),
    ("ok", "tags"),
    ("status", "text", "runId", "n", "n"),
    ("tags", "text", "n", "ok", "seq", "status", "runId", "nowhere", "id"),
]


@pytest.mark.parametrize(
    ("where", "order", "limit"),
    [({}, (), None), ({"n": 5, "tags": ["x"]}, (), None), ({}, ("-text", "seq"), 4), ({}, ("seq",), 0)],
)  # fmt: skip
async def test_find_reads_the_named_properties_alone(store, where, order, limit):
    await six(store)

    for only in NAMED:

        def work(reads, only=only):
            return [
                reads.find("Task", where, order=order, limit=limit, only=names)
                for names in ((), only)
            ]

        whole, part = await store.read(work)
        wanted = [{k: v for k, v in row.items() if k in ("id", *only)} for row in whole]
        assert (only, part) == (only, wanted)
        assert [[type(v) for v in row.values()] for row in part] == [
            [type(row[k]) for k in got] for row, got in zip(wanted, part, strict=True)
        ]


async def test_reading_some_properties_first_does_not_narrow_the_row(store):
    await six(store)

    def work(ops):
        ops.find("Task", {}, only=("n",))
        ops.patch("Task", "a", {"note": "y"})
        ops.find("Task", {"id": "a"}, only=("note",))
        return ops.patch_if("Task", "a", {"note": "y", "text": "m"}, {"note": "z"})

    row = await store.write(work)
    assert (row["note"], row["n"], row["text"]) == ("z", 5, "m")


@pytest.mark.parametrize("name", ["a b", "x'y", "", "Note", "a.b", "$"])
async def test_name_that_no_property_has_is_refused(store, name):
    await six(store)
    with pytest.raises(StoreError):
        await store.read(lambda reads: reads.find("Task", {}, only=("n", name)))


FREE = {"runId": "r", "claimState": "free", "priority": (">=", -1e300)}
LATE = {"runId": "r", "claimState": "held", "priority": (">=", -1e300), "expiresAt": ("<=", "2030")}
GONE = {"runId": "r", "claimState": "held", "priority": (">=", -1e300), "lockedBy": ("in", ["x"])}


FIRST = [
    ([FREE], 9, "abc"),
    ([FREE], 2, "ac"),
    ([FREE, LATE], 9, "abcde"),
    ([FREE, LATE], 1, "ad"),
    ([FREE, LATE, GONE], 9, "abcdef"),
    ([LATE, GONE], 9, "def"),
    ([GONE, GONE], 1, "f"),
    ([FREE, {"runId": "other"}], 9, "abch"),
    ([FREE, {**LATE, "expiresAt": ("<=", "ü")}], 9, "abcdefg"),
    ([FREE, LATE], 0, ""),
    ([], 9, ""),
]


async def test_first_of_several_conditions_are_each_once(store):
    def task(id, state, priority, **more):
        return {"id": id, "runId": "r", "claimState": state, "priority": priority, **more}

    await put(
        store,
        "Task",
        task("a", "free", 3.0),
        task("b", "free", 1.0),
        task("c", "free", 2),
        task("d", "held", 5.0, expiresAt="2029", lockedBy="y"),
        task("e", "held", 4.0, expiresAt="2029-12", lockedBy="x"),
        task("f", "held", 9.0, expiresAt="2031", lockedBy="x"),
        task("g", "held", 9.0, expiresAt="2031", lockedBy="y"),
        task("h", "free", 9.0) | {"runId": "other"},
    )

    for any_of, limit, expected in FIRST:

        def ask(reads, any_of=any_of, limit=limit):
            return reads.first_of("Task", any_of, order=("-priority", "id"), limit=limit)

        for door in (store.read, store.write):
            found = "".join(sorted(row["id"] for row in await door(ask)))
            assert (any_of, limit, found) == (any_of, limit, expected)


NONE = [
    {"a b": 1}, {"a') OR 1=1 --": 1}, {"a": ("like", "%")}, {"a": ("in", "text")}, {"a": ("<", None)},
    {"a": ("<", True)}, {"a": (">", ["x"])}, {"a": (1, 2, 3)}, {"a": {"b": 1}}, {"a": 2**64}, {"a": ()},
]  # fmt: skip


async def test_condition_that_is_none_is_refused(store):
    for where in NONE:
        assert await refuses(store.read(lambda reads, w=where: reads.find("Task", w))), where
    with pytest.raises(StoreError):
        await store.read(lambda reads: reads.find("Task", {}, order=["a') --"]))


async def test_thousands_of_options_are_one_condition(store):
    await put(store, "Task", *({"id": f"t{i:05d}", "status": f"s{i}"} for i in range(3000)))

    many = [f"s{i}" for i in range(0, 40_000, 2)]

    assert len(await ids(store, "Task", {"status": ("in", many)})) == 1500
    everyone = [f"t{i:05d}" for i in range(3000)]
    assert len(await store.read(lambda reads: reads.labels_of(everyone))) == 3000


async def test_counts_are_grouped_by_the_value_as_text(store):
    await six(store)

    async def counts(by, where):
        return await store.read(lambda reads: reads.counts("Task", by, where))

    assert await counts("status", {}) == {"pending": 2, "done": 2, "": 2}
    assert await counts("ok", {}) == {"true": 1, "false": 1, "": 4}
    assert await counts("seq", {"runId": "r"}) == {"1": 1, "2": 1, "3": 1, "": 1}
    assert await counts("runId", {"status": "nothing"}) == {}
    assert await counts("text", {"id": "c"}) == {"z" * 3000: 1}


# Edges


@pytest.mark.parametrize(
    ("id", "types", "direction", "expected"),
    [
        ("d", ["DEPENDS_ON"], "out", "bc"),
        ("a", ["DEPENDS_ON"], "in", "abc"),
        ("b", ["DEPENDS_ON"], "both", "ad"),
        ("b", [], "both", "adr"),
        ("b", ["HAS_TASK"], "in", "r"),
        ("r", ["HAS_TASK", "DEPENDS_ON"], "out", "abcd"),
        ("x", [], "both", ""),
        ("nobody", [], "both", ""),
    ],
)
async def test_neighbours_are_one_edge_away(store, id, types, direction, expected):
    await diamond(store)

    assert (
        "".join(await store.read(lambda reads: reads.neighbours(id, types, direction))) == expected
    )


@pytest.mark.parametrize(
    ("id", "types", "direction", "depth", "expected"),
    [
        ("d", ["DEPENDS_ON"], "out", None, "abc"),
        ("d", ["DEPENDS_ON"], "out", 1, "bc"),
        ("d", ["DEPENDS_ON"], "out", 0, ""),
        ("a", ["DEPENDS_ON"], "in", None, "bcd"),
        ("b", ["DEPENDS_ON"], "both", 2, "acd"),
        ("b", [], "both", 2, "acdr"),
        ("r", [], "in", None, ""),
        ("nobody", [], "both", None, ""),
    ],
)
async def test_reach_goes_breadth_first_and_ends_in_cycles(
    store, id, types, direction, depth, expected
):
    await diamond(store)
    await store.write(lambda ops: ops.link("DEPENDS_ON", [("a", "d")]) if depth is None else None)

    assert (
        "".join(await store.read(lambda reads: reads.reach(id, types, direction, depth)))
        == expected
    )


async def test_reach_over_a_long_chain_is_whole(store):
    await put(store, "Task", *({"id": f"t{i:04d}"} for i in range(1500)))
    await store.write(
        lambda ops: ops.link("DEPENDS_ON", [(f"t{i:04d}", f"t{i + 1:04d}") for i in range(1499)])
    )

    assert (
        len(await store.read(lambda reads: reads.reach("t0000", ["DEPENDS_ON"], "out", None)))
        == 1499
    )


async def test_edges_among_are_those_with_both_ends(store):
    await diamond(store)

    found = await store.read(lambda reads: reads.edges_among(["d", "b", "r", "nobody"]))

    assert found == [("d", "DEPENDS_ON", "b"), ("r", "HAS_TASK", "b"), ("r", "HAS_TASK", "d")]


async def test_link_is_idempotent_and_needs_both_ends(store):
    await diamond(store)
    before = await store.read(lambda reads: list(reads.dump()))

    await store.write(lambda ops: ops.link("DEPENDS_ON", [("b", "a"), ("b", "a")]))
    for pair in (("a", "nobody"), ("nobody", "a")):
        with pytest.raises(StoreError, match="nobody"):
            await store.write(lambda ops, p=pair: ops.link("DEPENDS_ON", [("c", "b"), p]))
    with pytest.raises(StoreError, match="edge"):
        await store.write(lambda ops: ops.link("LIKES", [("a", "b")]))

    assert await store.read(lambda reads: list(reads.dump())) == before


async def test_every_label_and_edge_of_the_schema_can_be_stored(store):
    for label in NodeLabel:
        await put(store, label, {"id": f"n/{label.value}", "name": label.value})
    for edge in EdgeType:
        await store.write(lambda ops, e=edge: ops.link(e, [("n/Run", "n/Task")]))

    assert len(await store.read(lambda reads: reads.edges_among(["n/Run", "n/Task"]))) == len(
        EdgeType
    )


# Search


async def test_search_finds_words_best_first(store):
    await notes(store)

    hits = await store.read(lambda reads: reads.search("Memory", "lexer parser", 10))

    assert [id for id, _ in hits] == ["m3", "m1"]
    assert hits[0][1] > hits[1][1]
    assert await found(store, "backoff") == ["m2"]
    assert await found(store, "parser", limit=1) in (["m1"], ["m3"])
    assert await found(store, "parser", limit=0) == []
    assert await found(store, "quantum") == []


SEARCHED = [
    '"', "'", "*", "parser*nothing(", "NOT", "AND OR NEAR", "a NEAR/2 b", "text:parser -x", "{text} : y", "^",
    "(", ")", "parser AND (", '"parser', "col:", "\0", "\ud800", "💥", "_", "%", "`", "$x", "~~~", "x" * 100_000,
    " ".join(f"w{i}" for i in range(20_000)), "", " \n\t",
]  # fmt: skip


async def test_search_text_is_data_and_never_query_syntax(store):
    await notes(store)

    for text in SEARCHED:
        hits = await store.read(lambda reads, t=text: reads.search("Memory", t, 10))
        names = {id for id, _ in hits}
        wanted = {"m1", "m3"} if "parser" in text else set()
        assert wanted <= names <= {"m1", "m2", "m3"}, text[:100]


async def test_search_follows_changes(store):
    await notes(store)
    await store.write(lambda ops: ops.patch("Memory", "m1", {"text": "wombat " + "long " * 500}))
    await store.write(lambda ops: ops.delete("Memory", ["m2"]))
    await store.write(lambda ops: ops.patch("Memory", "m3", {"text": None}))

    assert await found(store, "wombat") == ["m1"]
    assert await found(store, "parser backoff") == []

    await store.write(lambda ops: ops.patch("Memory", "m3", {"state": "accepted"}))
    await put(store, "Memory", {"id": "m3", "text": "parser again"})
    assert await found(store, "parser") == ["m3"]


async def test_label_without_text_cannot_be_searched(store):
    with pytest.raises(StoreError, match="Call"):
        await store.read(lambda reads: reads.search("Call", "x", 5))
