"""The task graph answers in linear time, without recursion."""

from itertools import pairwise

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from mimir.domain.graph import TaskGraph
from mimir.domain.plan import Plan, Task


def plan(**dependencies: str) -> Plan:
    tasks = tuple(
        Task(id=id, title=id, prompt="p", worker_role="r", dependencies=tuple(names.split()))
        for id, names in dependencies.items()
    )
    return Plan(title="t", tasks=tasks)


DIAMOND = TaskGraph.from_plan(plan(a="", b="a", c="a", d="b c", e=""))


def test_a_task_is_ready_when_all_that_it_waits_for_is_done():
    assert DIAMOND.ready(set()) == ("a", "e")
    assert DIAMOND.ready({"a"}) == ("b", "c", "e")
    assert DIAMOND.ready({"a", "b", "e"}) == ("c",)
    assert DIAMOND.ready(set("abcde")) == ()


def test_failure_blocks_exactly_the_descendants():
    assert DIAMOND.downstream("a") == {"b", "c", "d"}
    assert DIAMOND.downstream("c") == {"d"}
    assert DIAMOND.downstream("e") == frozenset()
    assert DIAMOND.upstream("d") == {"a", "b", "c"}


def test_a_graph_without_a_cycle_has_an_order():
    assert DIAMOND.cycle() is None
    assert DIAMOND.topological() == ("a", "e", "b", "c", "d")


def test_a_cycle_is_named_from_its_first_task():
    graph = TaskGraph.from_plan(plan(x="q", p="r", q="p", r="q"))
    assert graph.cycle() == ("p", "r", "q", "p")
    with pytest.raises(ValueError, match="p -> r -> q -> p"):
        graph.topological()


def test_a_task_that_waits_for_itself_is_a_cycle():
    assert TaskGraph.from_plan(plan(a="a")).cycle() == ("a", "a")


def test_an_unknown_dependency_is_left_out():
    assert TaskGraph.from_plan(plan(a="b")).dependencies("a") == ()


def test_the_longest_path_counts_the_task_itself():
    weights = {"a": 5.0, "b": 1.0, "c": 7.0, "d": 2.0}
    assert DIAMOND.remaining_path(weights) == {"a": 14.0, "b": 3.0, "c": 9.0, "d": 2.0, "e": 1.0}


def test_ten_thousand_tasks_in_one_chain_are_fine():
    ids = [f"t{n}" for n in range(10_000)]
    tasks = [
        Task(id=id, title=id, prompt="p", worker_role="r", dependencies=tuple(ids[n - 1 : n]))
        for n, id in enumerate(ids)
    ]
    graph = TaskGraph.from_plan(Plan(title="t", tasks=tuple(reversed(tasks))))
    assert graph.topological() == tuple(ids)
    assert graph.remaining_path({})["t0"] == 10_000
    assert len(graph.downstream("t0")) == 9_999


@settings(deadline=None, derandomize=True, max_examples=50)
@given(st.lists(st.lists(st.integers(0, 9), max_size=4), min_size=1, max_size=10))
def test_graph_has_an_order_or_a_named_cycle(edges: list[list[int]]):
    tasks = tuple(
        Task(
            id=str(n),
            title="",
            prompt="",
            worker_role="",
            dependencies=tuple(str(e) for e in wanted),
        )
        for n, wanted in enumerate(edges)
    )
    graph = TaskGraph.from_plan(Plan(title="", tasks=tasks))
    ring = graph.cycle()
    if ring is None:
        place = {id: n for n, id in enumerate(graph.topological())}
        assert all(place[d] < place[id] for id in graph.ids for d in graph.dependencies(id))
    else:
        assert ring[0] == ring[-1]
        assert all(b in graph.dependencies(a) for a, b in pairwise(ring))
