"""Contract of every store: nodes and values. A second adapter adds a line to `tests.support.stores.KINDS`, nothing here."""

import pytest

from mimir.errors import StoreError
from tests.support.stores import ids, put, refuses

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


# Nodes


async def test_node_is_read_back_unchanged(store):
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


async def test_none_in_a_new_node_is_no_property(store):
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


@pytest.mark.parametrize("name", ["text", "status"])
async def test_hostile_text_is_read_back_and_found(store, name):
    for what, text in HOSTILE.items():
        row = {"id": "x", name: text, "tags": [text, "z"]}
        await put(store, "Memory", row, {"id": "y", name: "another"})

        assert await store.read(lambda reads: reads.get("Memory", "x")) == row, what
        for where, found in (
            ({name: text}, "x"),
            ({name: ("in", [text, "nothing"])}, "x"),
            ({name: ("!=", text)}, "y"),
            ({"tags": [text, "z"]}, "x"),
        ):
            assert (what, await ids(store, "Memory", where)) == (what, [found])
        expect = {name: text}
        patched = await store.write(lambda ops, e=expect: ops.patch_if("Memory", "x", e, {"a": 1}))
        assert patched["a"] == 1, what
        assert await store.write(lambda ops: ops.delete("Memory", ["x", "y"])) == 2


@pytest.mark.parametrize("id", ["it's", '"`$\\', "a b/c#1", "🧊", "x" * 1000, "%00", "line\nbreak"])
async def test_hostile_id_is_stored_as_plain_text(store, id):
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


REFUSED = [
    {"a": {"nested": 1}}, {"a": [1, 2]}, {"a": ["x", None]}, {"a": b"bytes"}, {"a": object()},
    {"a": float("nan")}, {"a": float("inf")}, {"a": 2**63}, {"a": -(2**63) - 1},
    {"a b": 1}, {"a'": 1}, {"$.a": 1}, {"A": 1}, {"": 1}, {"ä": 1}, {"_a": 1},
    {"status": 1}, {"status": True}, {"status": ["a"]}, {"seq": "1"}, {"seq": True},
]  # fmt: skip


async def test_row_that_no_store_could_keep_is_refused_whole(store):
    await put(store, "Task", {"id": "y"})
    for row in REFUSED:
        for work in (
            lambda ops, r=row: ops.upsert("Task", [{"id": "good"}, {"id": "x", **r}]),
            lambda ops, r=row: ops.patch("Task", "y", r),
            lambda ops, r=row: ops.patch_if("Task", "y", {}, r),
        ):
            assert await refuses(store.write(work)), row

        assert await ids(store, "Task", {}) == ["y"], row
        assert await store.read(lambda reads: reads.get("Task", "y")) == {"id": "y"}, row


async def test_number_is_read_back_exactly(store):
    for number in (0, -1, 2**63 - 1, -(2**63), 0.5, -0.0, 1e300, 5e-324, 1e16):
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
