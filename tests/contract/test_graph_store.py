"""What every store must do. A second adapter adds a line to `tests.support.stores.KINDS`, nothing here."""

import asyncio
import threading

import pytest

from mimir.errors import StoreError
from mimir.store.schema import Edge, Label
from tests.support.stores import KINDS, ids, opened, put

HOSTILE = {
    "single quote": "it's",
    "double quote": 'say "no"',
    "backtick": "`rm -rf`",
    "dollar": "$props $.name ${x}",
    "backslash": "a\\b\\u0041",
    "newlines": "a\r\n\tb\x0b\u2028c",
    "emoji": "🧊 über 日本",
    "combining": "e\u0301",
    "nul": "before\0after",
    "control": "\x01\x1b[31m\x7f",
    "sql": "'); DROP TABLE nodes; --",
    "cypher": "}) DETACH DELETE (n //",
    "json": '{"a": [1, "b"]}',
    "list text": '["a"]',
    "number text": "1",
    "true text": "true",
    "empty": "",
    "blank": "  ",
    "long": "x" * 1_000_000,
    "long with everything": ("\"'`$\\\n🧊\0" * 20_000),
    "just below long": "y" * 999,
    "just long": "y" * 1000,
}


@pytest.fixture(params=sorted(KINDS))
async def store(request, tmp_path, frozen_clock):
    async with opened(KINDS[request.param](tmp_path, frozen_clock)) as made:
        yield made


@pytest.fixture
def second(request, store, tmp_path, frozen_clock):
    """The same store as another process would open it."""
    kind = request.node.callspec.params["store"]
    return lambda: opened(KINDS[kind](tmp_path, frozen_clock))


# Nodes


async def test_node_comes_back_as_it_was_put(store):
    row = {
        "id": "r/t", "name": "A task", "runId": "r", "status": "pending", "seq": 3, "priority": 1.5,
        "attempts": 2, "score": 87.25, "released": False, "done": True, "tags": ["b", "a", "b"], "none": [],
    }  # fmt: skip
    await put(store, "Task", row)

    found = await store.read(lambda reads: reads.get("Task", "r/t"))

    assert found == row
    assert {name: type(value) for name, value in found.items()} == {
        n: type(v) for n, v in row.items()
    }


async def test_missing_node_is_none(store):
    assert await store.read(lambda reads: reads.get("Task", "nobody")) is None


async def test_node_is_not_found_under_another_label(store):
    await put(store, "Task", {"id": "x", "name": "x"})

    assert await store.read(lambda reads: reads.get("Run", "x")) is None
    assert await store.write(lambda ops: ops.patch("Run", "x", {"name": "y"})) is False
    assert await store.write(lambda ops: ops.patch_if("Run", "x", {}, {"name": "y"})) is None
    assert await store.write(lambda ops: ops.delete("Run", ["x"])) == 0


async def test_upsert_of_an_existing_node_sets_the_given_properties_alone(store):
    await put(store, "Task", {"id": "x", "name": "x", "a": 1, "b": 2, "status": "pending"})
    await put(store, "Task", {"id": "x", "b": 3, "c": 4})

    found = await store.read(lambda reads: reads.get("Task", "x"))

    assert found == {"id": "x", "name": "x", "a": 1, "b": 3, "c": 4, "status": "pending"}


async def test_one_row_twice_in_one_upsert_is_merged(store):
    await put(store, "Task", {"id": "x", "a": 1}, {"id": "x", "b": 2})

    assert await store.read(lambda reads: reads.get("Task", "x")) == {"id": "x", "a": 1, "b": 2}


async def test_id_of_another_label_is_refused(store):
    await put(store, "Task", {"id": "x", "name": "x"})

    with pytest.raises(StoreError, match="'x'"):
        await put(store, "Run", {"id": "x", "name": "other"})


@pytest.mark.parametrize("name", ["a", "status", "seq", "text"])
async def test_none_removes_a_property(store, name):
    value = 7 if name == "seq" else "v" * 2000
    await put(store, "Task", {"id": "x", "name": "x", name: value})

    await store.write(lambda ops: ops.patch("Task", "x", {name: None}))

    assert await store.read(lambda reads: reads.get("Task", "x")) == {"id": "x", "name": "x"}
    assert await ids(store, "Task", {name: None}) == ["x"]


async def test_none_in_a_new_node_is_not_there(store):
    await put(store, "Task", {"id": "x", "a": None, "status": None})

    assert await store.read(lambda reads: reads.get("Task", "x")) == {"id": "x"}


async def test_text_may_grow_and_shrink(store):
    for text in ("short", "l" * 5000, "m" * 5000, "short again", "n" * 1000, ""):
        await put(store, "Task", {"id": "x", "text": text, "other": "o" * 3000})

        assert await store.read(lambda reads: reads.get("Task", "x")) == {
            "id": "x", "text": text, "other": "o" * 3000,
        }  # fmt: skip
        assert await ids(store, "Task", {"text": text}) == ["x"]


async def test_patch_of_a_missing_node_is_false(store):
    assert await store.write(lambda ops: ops.patch("Task", "nobody", {"a": 1})) is False
    assert await store.read(lambda reads: reads.get("Task", "nobody")) is None


async def test_patch_if_sets_bumps_the_version_and_returns_the_whole_row(store):
    await put(store, "Task", {"id": "x", "status": "pending", "prompt": "p" * 4000, "gone": 1})

    first = await store.write(
        lambda ops: ops.patch_if("Task", "x", {"status": "pending"}, {"status": "b", "gone": None})
    )
    second = await store.write(lambda ops: ops.patch_if("Task", "x", {"version": 1}, {"a": 1}))

    assert first == {"id": "x", "status": "b", "prompt": "p" * 4000, "version": 1}
    assert second == {**first, "a": 1, "version": 2}
    assert await store.read(lambda reads: reads.get("Task", "x")) == second


async def test_patch_if_whose_expectation_does_not_hold_changes_nothing(store):
    row = {"id": "x", "status": "pending", "fence": 2}
    await put(store, "Task", row)

    for expect in ({"status": "b"}, {"status": "pending", "fence": ("<", 2)}, {"fence": None}):
        assert (
            await store.write(lambda ops, e=expect: ops.patch_if("Task", "x", e, {"a": 1})) is None
        )

    assert await store.read(lambda reads: reads.get("Task", "x")) == row


async def test_delete_takes_the_edges_along(store):
    await put(store, "Task", *({"id": i, "text": "t" * 2000} for i in "abc"))
    await store.write(lambda ops: ops.link("DEPENDS_ON", [("a", "b"), ("b", "c"), ("a", "c")]))

    assert await store.write(lambda ops: ops.delete("Task", ["b", "nobody"])) == 1

    assert await store.read(lambda reads: reads.edges_among(["a", "b", "c"])) == [
        ("a", "DEPENDS_ON", "c")
    ]
    assert await store.read(lambda reads: reads.neighbours("a", [], "out")) == ["c"]
    await put(store, "Task", {"id": "b"})
    assert await store.read(lambda reads: reads.get("Task", "b")) == {"id": "b"}


# Values


@pytest.mark.parametrize("what", sorted(HOSTILE))
@pytest.mark.parametrize("name", ["text", "status"])
async def test_hostile_text_comes_back_and_is_found(store, what, name):
    text = HOSTILE[what]
    await put(
        store, "Memory", {"id": "x", name: text, "tags": [text, "z"]}, {"id": "y", name: "another"}
    )

    found = await store.read(lambda reads: reads.get("Memory", "x"))

    assert found == {"id": "x", name: text, "tags": [text, "z"]}
    assert await ids(store, "Memory", {name: text}) == ["x"]
    assert await ids(store, "Memory", {name: ("in", [text, "nothing"])}) == ["x"]
    assert await ids(store, "Memory", {name: ("!=", text)}) == ["y"]
    assert await ids(store, "Memory", {"tags": [text, "z"]}) == ["x"]
    assert (await store.write(lambda ops: ops.patch_if("Memory", "x", {name: text}, {"a": 1})))[
        "a"
    ] == 1


@pytest.mark.parametrize("id", ["it's", '"`$\\', "a b/c#1", "🧊", "x" * 1000, "%00", "line\nbreak"])
async def test_hostile_id_is_only_an_id(store, id):
    await put(store, "Task", {"id": id, "name": "n"}, {"id": "other"})
    await store.write(lambda ops: ops.link("DEPENDS_ON", [(id, "other")]))

    assert (await store.read(lambda reads: reads.get("Task", id)))["name"] == "n"
    assert await store.read(lambda reads: reads.neighbours("other", [], "in")) == [id]
    assert await store.read(lambda reads: reads.labels_of([id, "nobody"])) == {id: "Task"}
    assert await store.write(lambda ops: ops.delete("Task", [id])) == 1


@pytest.mark.parametrize("half", ["\ud800", "a\udc80!", "a\udfffb", "x" * 2000 + "\ud800"])
async def test_half_surrogate_becomes_the_replacement_character(store, half):
    await put(store, "Task", {"id": "x", "text": half, "status": half, "tags": [half]})

    found = await store.read(lambda reads: reads.get("Task", "x"))

    whole = "".join("\ufffd" if "\ud800" <= c <= "\udfff" else c for c in half)
    assert found == {"id": "x", "text": whole, "status": whole, "tags": [whole]}
    assert await ids(store, "Task", {"text": half}) == ["x"]


@pytest.mark.parametrize("id", ["", "a\0b", "\ud800", "x" * 5000, None, 7])
async def test_impossible_id_is_refused_and_never_found(store, id):
    with pytest.raises(StoreError):
        await put(store, "Task", {"id": id, "name": "n"})
    if isinstance(id, str):
        assert await store.read(lambda reads: reads.get("Task", id)) is None
        assert await store.read(lambda reads: reads.neighbours(id, [], "both")) == []
        assert await store.read(lambda reads: reads.reach(id, [], "both", 2)) == []
        assert await store.read(lambda reads: reads.labels_of([id])) == {}
        assert await store.read(lambda reads: reads.edges_among([id])) == []


@pytest.mark.parametrize(
    "row",
    [
        {"a": {"nested": 1}}, {"a": [1, 2]}, {"a": ["x", None]}, {"a": b"bytes"}, {"a": object()},
        {"a": float("nan")}, {"a": float("inf")}, {"a": 2**63}, {"a": -(2**63) - 1},
        {"a b": 1}, {"a'": 1}, {"$.a": 1}, {"A": 1}, {"": 1}, {"ä": 1}, {"_a": 1},
        {"status": 1}, {"status": True}, {"status": ["a"]}, {"seq": "1"}, {"seq": True},
    ],
)  # fmt: skip
async def test_row_that_no_store_could_keep_is_refused_whole(store, row):
    with pytest.raises(StoreError):
        await put(store, "Task", {"id": "good"}, {"id": "x", **row})
    await put(store, "Task", {"id": "y"})
    with pytest.raises(StoreError):
        await store.write(lambda ops: ops.patch("Task", "y", row))
    with pytest.raises(StoreError):
        await store.write(lambda ops: ops.patch_if("Task", "y", {}, row))

    assert await ids(store, "Task", {}) == ["y"]
    assert await store.read(lambda reads: reads.get("Task", "y")) == {"id": "y"}


@pytest.mark.parametrize("number", [0, -1, 2**63 - 1, -(2**63), 0.5, -0.0, 1e300, 5e-324, 1e16])
async def test_number_comes_back_exactly(store, number):
    await put(store, "Task", {"id": "x", "a": number, "seq": number})

    found = await store.read(lambda reads: reads.get("Task", "x"))

    assert (repr(found["a"]), repr(found["seq"])) == (repr(number), repr(number))
    assert await ids(store, "Task", {"a": number, "seq": number}) == ["x"]


@pytest.mark.parametrize("label", ["Nothing", "task", "", "Task'--"])
async def test_unknown_label_is_refused(store, label):
    for work in (
        lambda ops: ops.get(label, "x"),
        lambda ops: ops.find(label, {}),
        lambda ops: ops.counts(label, "status", {}),
        lambda ops: ops.upsert(label, [{"id": "x"}]),
        lambda ops: ops.patch(label, "x", {}),
        lambda ops: ops.delete(label, ["x"]),
    ):
        with pytest.raises(StoreError, match="label"):
            await store.write(work)


# Finding


async def six(store):
    await put(
        store, "Task",
        {"id": "a", "runId": "r", "status": "pending", "seq": 1, "n": 5, "text": "m", "ok": True, "tags": ["x"]},
        {"id": "b", "runId": "r", "status": "pending", "seq": 2, "n": 5.0, "text": "k", "ok": False},
        {"id": "c", "runId": "r", "status": "done", "seq": 3, "n": 7, "text": "z" * 3000},
        {"id": "d", "runId": "r", "status": "done", "n": "5"},
        {"id": "e", "runId": "s", "seq": 5, "n": True, "text": '["x"]', "tags": []},
        {"id": "f", "seq": 6, "text": "Z", "n": 1},
    )  # fmt: skip


@pytest.mark.parametrize(
    ("where", "expected"),
    [
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
    ],
)  # fmt: skip
async def test_find_returns_what_matches_all_conditions(store, where, expected):
    await six(store)

    assert "".join(await ids(store, "Task", where)) == expected
    assert sum(
        (await store.read(lambda reads: reads.counts("Task", "status", where))).values()
    ) == len(expected)


@pytest.mark.parametrize(
    ("order", "limit", "expected"),
    [
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
    ],
)  # fmt: skip
async def test_order_puts_missing_first_and_ties_by_id(store, order, limit, expected):
    await six(store)

    assert "".join(await ids(store, "Task", {}, order=order, limit=limit)) == expected


@pytest.mark.parametrize(
    "where",
    [
        {"a b": 1}, {"a') OR 1=1 --": 1}, {"a": ("like", "%")}, {"a": ("in", "text")}, {"a": ("<", None)},
        {"a": ("<", True)}, {"a": (">", ["x"])}, {"a": (1, 2, 3)}, {"a": {"b": 1}}, {"a": 2**64}, {"a": ()},
    ],
)  # fmt: skip
async def test_condition_that_is_none_is_refused(store, where):
    with pytest.raises(StoreError):
        await store.read(lambda reads: reads.find("Task", where))
    with pytest.raises(StoreError):
        await store.read(lambda reads: reads.find("Task", {}, order=["a') --"]))


async def test_thousands_of_options_are_one_condition(store):
    await put(store, "Task", *({"id": f"t{i:05d}", "status": f"s{i}"} for i in range(3000)))

    many = [f"s{i}" for i in range(0, 40_000, 2)]

    assert len(await ids(store, "Task", {"status": ("in", many)})) == 1500
    everyone = [f"t{i:05d}" for i in range(3000)]
    assert len(await store.read(lambda reads: reads.labels_of(everyone))) == 3000


async def test_counts_are_by_the_value_as_text(store):
    await six(store)

    async def counts(by, where):
        return await store.read(lambda reads: reads.counts("Task", by, where))

    assert await counts("status", {}) == {"pending": 2, "done": 2, "": 2}
    assert await counts("ok", {}) == {"true": 1, "false": 1, "": 4}
    assert await counts("seq", {"runId": "r"}) == {"1": 1, "2": 1, "3": 1, "": 1}
    assert await counts("runId", {"status": "nothing"}) == {}
    assert await counts("text", {"id": "c"}) == {"z" * 3000: 1}


# Edges


async def diamond(store):
    await put(store, "Run", {"id": "r"})
    await put(store, "Task", *({"id": i} for i in "abcdx"))
    await store.write(lambda ops: ops.link("HAS_TASK", [("r", i) for i in "abcd"]))
    await store.write(
        lambda ops: ops.link(
            "DEPENDS_ON", [("b", "a"), ("c", "a"), ("d", "b"), ("d", "c"), ("a", "a")]
        )
    )


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
    for label in Label:
        await put(store, label, {"id": f"n/{label.value}", "name": label.value})
    for edge in Edge:
        await store.write(lambda ops, e=edge: ops.link(e, [("n/Run", "n/Task")]))

    assert len(await store.read(lambda reads: reads.edges_among(["n/Run", "n/Task"]))) == len(Edge)


# Search


async def notes(store):
    await put(
        store, "Memory",
        {"id": "m1", "text": "The parser fails on empty input"},
        {"id": "m2", "text": "Use exponential backoff for retries"},
        {"id": "m3", "text": "Empty files make the parser and the lexer fail; the parser is to blame"},
    )  # fmt: skip


async def found(store, text, limit=10):
    return [id for id, _ in await store.read(lambda reads: reads.search("Memory", text, limit))]


async def test_search_finds_words_best_first(store):
    await notes(store)

    hits = await store.read(lambda reads: reads.search("Memory", "lexer parser", 10))

    assert [id for id, _ in hits] == ["m3", "m1"]
    assert hits[0][1] > hits[1][1]
    assert await found(store, "backoff") == ["m2"]
    assert await found(store, "parser", limit=1) in (["m1"], ["m3"])
    assert await found(store, "parser", limit=0) == []
    assert await found(store, "quantum") == []


@pytest.mark.parametrize(
    "text",
    [
        '"', "'", "*", "parser*nothing(", "NOT", "AND OR NEAR", "a NEAR/2 b", "text:parser -x", "{text} : y", "^",
        "(", ")", "parser AND (", '"parser', "col:", "\0", "\ud800", "💥", "_", "%", "`", "$x", "~~~", "x" * 100_000,
        " ".join(f"w{i}" for i in range(20_000)), "", " \n\t",
    ],
)  # fmt: skip
async def test_search_text_is_data_and_never_query_syntax(store, text):
    await notes(store)

    hits = await store.read(lambda reads: reads.search("Memory", text, 10))

    assert {id for id, _ in hits} <= {"m1", "m2", "m3"}
    if "parser" in text:
        assert {"m1", "m3"} <= {id for id, _ in hits}


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


# Transactions


async def test_work_that_raises_leaves_nothing_behind(store):
    await put(store, "Memory", {"id": "m", "text": "wombat"})
    await put(store, "Task", {"id": "a"}, {"id": "b"})
    before = await store.read(lambda reads: list(reads.dump()))

    def work(ops):
        ops.upsert("Task", [{"id": "c", "text": "t" * 5000}])
        ops.link("DEPENDS_ON", [("a", "b")])
        ops.patch("Memory", "m", {"text": "koala"})
        ops.patch_if("Task", "a", {}, {"x": 1})
        ops.delete("Task", ["b"])
        raise KeyError("mine")

    with pytest.raises(KeyError, match="mine"):
        await store.write(work)

    assert await store.read(lambda reads: list(reads.dump())) == before
    assert await found(store, "wombat") == ["m"]
    assert await found(store, "koala") == []


async def test_failing_job_takes_no_other_job_with_it(store):
    def bad(ops):
        ops.upsert("Task", [{"id": "bad"}])
        raise ValueError("bad")

    jobs = [
        store.write(bad if i % 3 == 0 else lambda ops, i=i: ops.upsert("Task", [{"id": f"g{i}"}]))
        for i in range(30)
    ]
    ended = await asyncio.gather(*jobs, return_exceptions=True)

    assert [isinstance(e, ValueError) for e in ended] == [i % 3 == 0 for i in range(30)]
    assert len(await ids(store, "Task", {})) == 20


async def test_work_sees_what_it_wrote(store):
    def work(ops):
        ops.upsert("Task", [{"id": "a", "runId": "r"}, {"id": "b", "runId": "r"}])
        ops.link("DEPENDS_ON", [("a", "b")])
        ops.patch("Task", "a", {"status": "done"})
        return (
            ops.find("Task", {"runId": "r", "status": "done"}),
            ops.neighbours("a", [], "out"),
            ops.get("Task", "b"),
        )

    assert await store.write(work) == (
        [{"id": "a", "runId": "r", "status": "done"}],
        ["b"],
        {"id": "b", "runId": "r"},
    )


async def test_write_returns_what_the_work_returned(store):
    assert await store.write(lambda ops: 42) == 42
    assert await store.read(lambda reads: "view") == "view"


async def test_time_stands_still_within_a_transaction(store, frozen_clock):
    def work(ops):
        first = ops.now()
        frozen_clock.advance(5)
        return first, ops.now()

    first, second = await store.write(work)
    later = await store.read(lambda reads: reads.now())

    assert first == second < later
    assert len(first) == len(later) == len("2030-01-02T03:04:05.000000Z")


async def test_read_is_one_view_while_others_write(store):
    await put(store, "Task", {"id": "a", "n": 1}, {"id": "b", "n": 1})
    reading, written = threading.Event(), threading.Event()

    def slow(reads):
        first = reads.get("Task", "a")["n"]
        reading.set()
        assert written.wait(20)
        return first, reads.get("Task", "b")["n"], len(reads.find("Task", {}))

    view = asyncio.ensure_future(store.read(slow))
    await asyncio.to_thread(reading.wait, 20)
    await put(store, "Task", {"id": "a", "n": 2}, {"id": "b", "n": 2}, {"id": "c", "n": 2})
    after = await store.read(lambda reads: len(reads.find("Task", {})))
    written.set()

    assert await view == (1, 1, 2)
    assert after == 3


async def test_several_reads_run_at_once(store):
    meeting = threading.Barrier(3, timeout=20)

    places = await asyncio.gather(*(store.read(lambda _: meeting.wait()) for _ in range(3)))

    assert sorted(places) == [0, 1, 2]


async def test_read_sees_the_write_that_came_before_it(store):
    for n in range(50):
        await put(store, "Task", {"id": "a", "n": n})
        assert (await store.read(lambda reads: reads.get("Task", "a")))["n"] == n


async def test_verbs_of_an_ended_transaction_are_refused(store):
    kept = []
    await store.write(kept.append)
    await store.read(kept.append)
    ops, reads = kept

    for verb in (
        lambda: ops.upsert("Task", [{"id": "x"}]),
        lambda: reads.get("Task", "x"),
        lambda: next(reads.dump()),
    ):
        with pytest.raises(StoreError, match="over"):
            verb()


async def test_cancelled_writer_leaves_the_transaction_to_finish(store):
    started, go_on = threading.Event(), threading.Event()

    def slow(ops):
        started.set()
        assert go_on.wait(20)
        ops.upsert("Task", [{"id": "x"}])

    writing = asyncio.ensure_future(store.write(slow))
    await asyncio.to_thread(started.wait, 20)
    waiting = asyncio.ensure_future(put(store, "Task", {"id": "y"}))
    await asyncio.sleep(0)
    writing.cancel()
    waiting.cancel()
    ended = await asyncio.gather(writing, waiting, return_exceptions=True)
    go_on.set()
    await store.write(lambda ops: None)

    assert [type(e) for e in ended] == [asyncio.CancelledError] * 2
    assert await ids(store, "Task", {}) == ["x", "y"]


async def test_cancelled_writer_whose_work_fails_leaves_no_complaint(store):
    started, go_on = threading.Event(), threading.Event()

    def slow(ops):
        started.set()
        assert go_on.wait(20)
        raise ValueError("nobody listens")

    writing = asyncio.ensure_future(store.write(slow))
    await asyncio.to_thread(started.wait, 20)
    writing.cancel()
    with pytest.raises(asyncio.CancelledError):
        await writing
    go_on.set()

    assert await store.write(lambda ops: 1) == 1


# Races


async def test_one_of_many_tasks_wins_each_compare_and_set(store):
    await put(
        store, "Task", *({"id": f"t{i}", "status": "pending", "version": 0} for i in range(20))
    )
    wins = []

    async def racer(name):
        for i in range(20):
            won = await store.write(
                lambda ops, i=i: ops.patch_if(
                    "Task", f"t{i}", {"status": "pending"}, {"status": "held", "lockedBy": name}
                )
            )
            if won:
                wins.append((f"t{i}", won["lockedBy"], won["version"]))

    await asyncio.gather(*(racer(f"w{n}") for n in range(8)))

    rows = await store.read(lambda reads: reads.find("Task", {}))
    assert sorted(wins) == sorted((r["id"], r["lockedBy"], 1) for r in rows)


async def test_two_doors_to_one_store_lose_no_update(store, second):
    await put(store, "Run", {"id": "r", "n": 0})

    def add(ops):
        while True:
            row = ops.get("Run", "r")
            if ops.patch_if("Run", "r", {"n": row["n"]}, {"n": row["n"] + 1}):
                return

    async with second() as other:
        await asyncio.gather(*(door.write(add) for _ in range(40) for door in (store, other)))

        assert (await store.read(lambda reads: reads.get("Run", "r")))["n"] == 80
        assert (await other.read(lambda reads: reads.get("Run", "r")))["n"] == 80


# Life


async def test_init_is_idempotent_and_what_was_committed_stays(store, second):
    await put(store, "Task", {"id": "a", "text": "t" * 3000})
    await store.init()

    async with second() as again:
        assert await ids(again, "Task", {}) == ["a"]
    await store.close()
    async with second() as again:
        assert (await again.read(lambda reads: reads.get("Task", "a")))["text"] == "t" * 3000


async def test_closed_store_says_so(store):
    await store.close()
    await store.close()

    with pytest.raises(StoreError, match="not open"):
        await store.write(lambda ops: None)
    with pytest.raises(StoreError, match="not open"):
        await store.read(lambda reads: None)


async def test_close_finishes_what_waits(store, second):
    jobs = [asyncio.ensure_future(put(store, "Task", {"id": f"t{i}"})) for i in range(30)]
    await asyncio.sleep(0)
    await store.close()
    await asyncio.gather(*jobs)

    async with second() as again:
        assert len(await ids(again, "Task", {})) == 30


async def test_dump_holds_everything_in_a_fixed_order_and_makes_the_same_store(
    store, tmp_path, frozen_clock, request
):
    await diamond(store)
    await six(store)
    await notes(store)
    whole = await store.read(lambda reads: list(reads.dump()))

    nodes = [entry for entry in whole if len(entry) == 2]
    edges = [entry for entry in whole if len(entry) == 3]
    assert whole == nodes + edges
    assert [(label, row["id"]) for label, row in nodes] == sorted(
        (label, row["id"]) for label, row in nodes
    )
    assert [(t, s, d) for s, t, d in edges] == sorted((t, s, d) for s, t, d in edges)

    def load(ops):
        for label, row in nodes:
            ops.upsert(label, [row])
        for source, type, target in edges:
            ops.link(type, [(source, target)])

    make = KINDS[request.node.callspec.params["store"]]
    async with opened(make(tmp_path / "copy", frozen_clock)) as copy:
        await copy.write(load)
        assert await copy.read(lambda reads: list(reads.dump())) == whole
        assert await found(copy, "lexer") == ["m3"]
