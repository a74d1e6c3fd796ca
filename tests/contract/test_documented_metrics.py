"""Each query of docs/metrics.md, asked of a finished run in both stores, gives the figure of its report."""

import json
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping, Sequence
from contextlib import asynccontextmanager
from functools import partial
from itertools import groupby
from pathlib import Path

import pytest

from mimir.reporting.summary.metrics import Metric
from mimir.reporting.summary.run_loader import load_summary
from mimir.store.protocol import GraphStore, Row, WriteOps
from mimir.store.schema import pack
from tests.support import small_runs
from tests.support.clock import FrozenClock
from tests.support.metric_queries import ask_file, ask_server, documented
from tests.support.small_run import RUN
from tests.support.stores import EACH_KIND, KINDS, opened

NAMES = [
    "context_deduplication_rate", "agent_context_lifespan", "task_allocation_efficiency",
    "cross_agent_error_propagation", "subgraph_retrieval_precision", "hand_off_completeness",
    "worker_retry_rate", "pm_context_growth", "worker_idle_time",
]  # fmt: skip
LANGUAGES = {"sqlite": "sql", "neo4j": "cypher"}
Write = Callable[[GraphStore], Awaitable[None]]


def call(lane: str, seq: int, kind: str, value: object, **more: object) -> Row:
    """Return a call that was answered."""
    run = lane.split("/")[0]
    return {
        "id": f"{lane}#{seq:05d}", "name": kind, "runId": run, "lane": lane, "seq": seq, "kind": kind,
        "done": True, "valueJson": pack(value), "startedAt": f"2020-01-02T03:00:{seq:02d}.000000Z",
        "finishedAt": f"2020-01-02T03:00:{seq + 1:02d}.500000Z", **more,
    }  # fmt: skip


def found(*ids: str) -> Mapping[str, object]:
    """Return the text of a memory tool; a note about ids is no node."""
    nodes = [{"id": id, "label": "Memory", "text": f'"id": "not-{id}" '} for id in ids]
    return {"text": json.dumps({"nodes": nodes}, sort_keys=True), "is_error": False}


def memories(ops: WriteOps) -> None:
    """Let a PM plan the run, and two agents look into the memory: of four nodes one is named afterwards."""
    pm, worker = "plan-1/plan/1/pm", f"{RUN}/task-1/1/worker"
    said = {"message": {"role": "assistant", "text": "I see"}, "finish": "stop"}
    read = {"message": {"role": "assistant", "text": "", "calls": [{"arguments": '{"id": "m-2"}'}]}}
    long = {"text": "x" * 2000, "is_error": True}
    rows = [
        call(pm, 0, "model", said, inputTokens=500),
        call(pm, 1, "tool", found("m-1", "m-2"), tool="memory_search_nodes"),
        call(pm, 2, "model", read, inputTokens=900),
        call(pm, 3, "tool", found("m-2"), tool="memory_get_node"),
        call(pm, 4, "model", said, inputTokens=1000),
        call(worker, 0, "model", {"message": {"text": "m-3, m-4"}}),
        call(worker, 1, "tool", found("m-3", "m-4"), tool="memory_get_subgraph"),
        call(worker, 2, "tool", long, tool="memory_get_node"),
        call(worker, 3, "tool", found("m-5"), tool="read_file"),
        call(worker, 4, "model", said),
    ]
    ops.upsert("Call", rows)
    ops.patch("Run", RUN, {"planRun": "plan-1", "claimsEmpty": 1})


async def figures(store) -> Sequence[Metric]:
    return (await store.read(partial(load_summary, run=RUN))).metrics


def same(metric: Metric, row: Mapping[str, object]) -> None:
    """A query gives the metric's value, and each input that it names."""
    assert row["value"] == pytest.approx(metric.value, abs=2e-3)
    for name, number in metric.inputs.items():
        if name in row:
            assert row[name] == pytest.approx(number, abs=6e-3), name


def test_each_of_the_nine_metrics_has_a_query_for_both_stores():
    assert {name: set(queries) for name, queries in documented().items()} == {
        name: {"cypher", "sql"} for name in NAMES
    }


@asynccontextmanager
async def holding(
    kind: str, room: Path, clock: FrozenClock, write: Write
) -> AsyncIterator[GraphStore]:
    """Write a run into the embedded store, and copy it whole into a store of the kind: it is the questions that are tried here."""
    source = room / "source"
    async with opened(KINDS["sqlite"](source, clock)) as first:
        await write(first)
        kept = await first.read(lambda reads: list(reads.dump()))
    async with opened(KINDS[kind](room, clock)) as store:
        nodes = sorted((one for one in kept if len(one) == 2), key=lambda one: one[0])

        def work(ops: WriteOps) -> None:
            for label, rows in groupby(nodes, key=lambda one: one[0]):
                ops.upsert(label, [row for _, row in rows])

        await store.write(work)
        yield store


@pytest.mark.parametrize("kind", EACH_KIND)
async def test_documented_queries_give_the_figures_of_the_report(kind, tmp_path, frozen_clock):
    async def write(store: GraphStore) -> None:
        run = await small_runs.whole(store, frozen_clock)
        twice = [{"task": "task-1", "check": check, "merge": ""} for check in ("unit", "lint")]
        await run.gate(red=twice)
        await store.write(memories)

    async with holding(kind, tmp_path, frozen_clock, write) as store:
        told = {metric.id: metric for metric in await figures(store)}
        rows = answers(kind, tmp_path)

    assert list(told) == NAMES
    for name, metric in told.items():
        assert metric.value is not None, (name, metric.why)
        same(metric, rows[name])
    assert told["subgraph_retrieval_precision"].value == 0.25
    assert told["cross_agent_error_propagation"].value == pytest.approx(1 / 3, abs=1e-5)
    assert told["task_allocation_efficiency"].value == 0.8
    assert told["pm_context_growth"].value == 0
    assert told["agent_context_lifespan"].inputs["pm_seconds"] == 5.5


@pytest.mark.parametrize("kind", EACH_KIND)
async def test_run_before_its_start_has_no_metrics_in_either_store(kind, tmp_path, frozen_clock):
    async def write(store: GraphStore) -> None:
        await small_runs.SmallRun(store, frozen_clock).create()

    async with holding(kind, tmp_path, frozen_clock, write) as store:
        told = {metric.id: metric for metric in await figures(store)}
        rows = answers(kind, tmp_path)

    assert {n for n, m in told.items() if m.value is not None} == {"hand_off_completeness"}
    for name, metric in told.items():
        assert rows[name]["value"] == metric.value, name
        assert bool(metric.why) == (metric.value is None)


def answers(kind: str, room: Path) -> Mapping[str, Mapping[str, object]]:
    """Return metric → the value of its documented query."""
    texts = {name: queries[LANGUAGES[kind]] for name, queries in documented().items()}
    asked = list(texts.values())
    if kind == "sqlite":
        told = ask_file(room / ".mimir" / "mimir.db", RUN, asked)
    else:
        told = ask_server(room, RUN, asked)
    return dict(zip(texts, told, strict=True))
