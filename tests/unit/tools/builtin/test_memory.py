"""The searches hand data over as data, and answer in JSON of bounded length."""

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from mimir.tools.builtin.memory import MAX_VALUE_CHARS, MemoryTools
from tests.support.fake_tools import CONTEXT, FakeMemory, wish

NODES = [{"id": f"n{i}", "label": "Memory", "text": f"lesson {i}"} for i in range(4)]


async def answer(
    memory: FakeMemory, name: str, arguments: dict[str, object], **more: int
) -> dict[str, list[object]]:
    result = await MemoryTools(memory, **more).call(wish(name, arguments), CONTEXT)
    assert not result.is_error, result.text
    return json.loads(result.text)


CALLS = {
    "search": (
        "memory_search_nodes", {"text": "lease", "labels": ["Memory"], "limit": 2},
        ("search", "lease", ("Memory",), 2), {"nodes": NODES[:2]},
    ),
    "search, defaults": (
        "memory_search_nodes", {"text": "lease"}, ("search", "lease", (), 10), {"nodes": NODES},
    ),
    "query": (
        "memory_query_nodes", {"label": "Task", "filters": {"status": "failed", "attempt": 2}},
        ("query", "Task", {"status": "failed", "attempt": 2}, 10), {"nodes": NODES},
    ),
    "neighbours": (
        "memory_get_neighbors", {"id": "n0", "types": ["ABOUT"], "direction": "in"},
        ("neighbors", "n0", ("ABOUT",), "in"), {"nodes": NODES[1:]},
    ),
    "neighbours, defaults": (
        "memory_get_neighbors", {"id": "n0"}, ("neighbors", "n0", (), "both"), {"nodes": NODES[1:]},
    ),
    "subgraph": (
        "memory_get_subgraph", {"id": "n0", "depth": 3}, ("subgraph", "n0", 3),
        {"nodes": NODES, "edges": [["n0", "ABOUT", "n1"], ["n1", "ABOUT", "n2"], ["n2", "ABOUT", "n3"]]},
    ),
}  # fmt: skip


@pytest.mark.parametrize(("name", "arguments", "asked", "said"), CALLS.values(), ids=CALLS)
async def test_memory_tools_pass_on_query_and_nodes(
    name: str, arguments: dict[str, object], asked: tuple[object, ...], said: dict[str, object]
):
    memory = FakeMemory(*NODES)
    assert await answer(memory, name, arguments) == said
    assert memory.asked == [asked]


async def test_memory_get_node_returns_one_node():
    assert await answer(FakeMemory(*NODES), "memory_get_node", {"id": "n2"}) == {
        "nodes": [NODES[2]]
    }


@pytest.mark.parametrize("name", ["memory_get_node", "memory_get_neighbors", "memory_get_subgraph"])
async def test_unknown_memory_id_is_refused_with_the_search_tools(name: str):
    result = await MemoryTools(FakeMemory()).call(wish(name, {"id": "n9'); DROP"}), CONTEXT)
    assert result.is_error
    assert result.text == (
        "Error: There is no node 'n9'); DROP' in the memory. "
        "Find ids with memory_search_nodes or memory_query_nodes."
    )


REFUSED = {
    "too deep": ("memory_get_subgraph", {"id": "n0", "depth": 4}, "must be at most 3, not 4"),
    "too many": ("memory_search_nodes", {"text": "a", "limit": 51}, "must be at most 50, not 51"),
    "no such direction": (
        "memory_get_neighbors", {"id": "n0", "direction": "up"}, "must be one of out, in, both, not 'up'",
    ),
    "a filter that is a query": (
        "memory_query_nodes", {"label": "Task", "filters": {"status": {"$ne": 1}}},
        "The filter 'status' must be a string, a number, true or false.",
    ),
    "no text": ("memory_search_nodes", {"text": ""}, "must be at least 1, not 0"),
}  # fmt: skip


@pytest.mark.parametrize(("name", "arguments", "said"), REFUSED.values(), ids=REFUSED)
async def test_a_wrong_search_is_refused(name: str, arguments: dict[str, object], said: str):
    memory = FakeMemory(*NODES)
    result = await MemoryTools(memory).call(wish(name, arguments), CONTEXT)
    assert result.is_error
    assert said in result.text
    assert memory.asked == []


async def test_nodes_beyond_the_limit_are_left_out_and_counted():
    nodes = [{"id": f"n{i}", "text": "x" * 80} for i in range(10)]
    said = await answer(FakeMemory(*nodes), "memory_search_nodes", {"text": "x"}, max_chars=250)
    assert said["nodes"] == nodes[:2]
    assert said["left_out"] == 8


async def test_a_long_text_is_cut_with_a_mark():
    node = {"id": "n", "text": "x" * (MAX_VALUE_CHARS + 7), "tags": ["y" * (MAX_VALUE_CHARS + 1)]}
    said = await answer(FakeMemory(node), "memory_get_node", {"id": "n"})
    (got,) = said["nodes"]
    assert isinstance(got, dict)
    assert got["text"].endswith("x… [7 more characters]")
    assert got["tags"][0].endswith("y… [1 more characters]")


@given(
    st.lists(st.dictionaries(st.text(max_size=5), st.text(max_size=3_000), max_size=3), max_size=8)
)
async def test_memory_answer_is_bounded_json_for_any_nodes(nodes: list[dict[str, str]]):
    found = [{**node, "id": str(i)} for i, node in enumerate(nodes)]
    tools = MemoryTools(FakeMemory(*found), max_chars=1_000)
    result = await tools.call(wish("memory_search_nodes", {"text": "a"}), CONTEXT)
    said = json.loads(result.text)
    assert len(result.text) < 1_200
    assert len(said["nodes"]) + said.get("left_out", 0) == len(found)
