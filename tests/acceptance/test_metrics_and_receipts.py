"""Metrics and receipts of a whole run: planned by a PM that reads, worked on by two, judged; and estimates for the next run."""

import json

import pytest

from mimir.domain.run import RunBudget
from mimir.planning.renderer import render
from tests.support.metric_queries import ask_file, documented
from tests.support.whole_run import (
    PASS,
    calls,
    holds,
    opened,
    plan,
    qc,
    start,
    step,
    travel,
    worker,
    writes,
    wrote,
)

FILES = {"README.md": "# A project\n", "notes.md": "What is known of it.\n" * 200}
FAILS_ONCE = worker("b", writes("b.txt", "wrong\n"), "b.txt is written.", attempt=1)


def made():
    """Return a plan of two tasks whose reasoning no worker may see."""
    return plan(
        step("a", estimated_tool_calls=None), step("b", "a", max_retries=1), title="Two files"
    )


@pytest.fixture
async def reported_run(tmp_path):
    """Return the report of a run, as text and as JSON, now and again."""
    project = start(tmp_path, FILES)
    read = {"calls": [calls("read_file", path="notes.md"), calls("memory_search_nodes", text="x")]}
    pm = {"role": "pm", "turns": [read, {"text": render(made()), "repeat": "forever"}]}
    parts = [pm, FAILS_ONCE, wrote("a"), wrote("b"), qc("a", PASS)]
    async with opened(project, parts) as mimir:
        planned = await mimir.plan("Write two files", ecko=False, output=None, model="")
        run = await mimir.create_run(planned.plan, planned.path, only=(), limits=RunBudget())
        ending = await mimir.drive(run, workers=2, apply="never", limits=RunBudget(), resumed=False)
        first = (project / ending.report_path).read_bytes()
        await mimir.report(run)
        again = (project / ending.report_path).read_bytes()
        twin = json.loads(json.dumps(await mimir.report_json(run)))
        known = await mimir.learned_estimates(["Writer of small files", "Cook"])
        second = await mimir.create_run(planned.plan, planned.path, only=(), limits=RunBudget())
        material = await mimir.material(second)
    return project, run, first, again, twin, known, material


async def test_metrics_of_a_run_are_consistent(reported_run):
    project, run, first, again, twin, known, material = reported_run

    # The report is the same whenever it is written.
    assert first == again
    metrics = {one["id"]: one for one in twin["metrics"]}
    assert len(metrics) == 9

    # Counted, not guessed: one rejected attempt of three, nothing unclear, and the PM was not asked again.
    retries = metrics["worker_retry_rate"]
    assert retries["inputs"] == {"rejected_attempts": 1, "attempts": 3}
    assert metrics["pm_context_growth"]["value"] == 0
    assert metrics["agent_context_lifespan"]["inputs"]["pm_seconds"] is not None
    assert metrics["cross_agent_error_propagation"]["inputs"]["rejected_attempts"] == 1
    assert metrics["subgraph_retrieval_precision"]["value"] is None
    assert metrics["subgraph_retrieval_precision"]["why"]
    assert 0 < metrics["worker_idle_time"]["value"] < 1
    assert {n for n, one in metrics.items() if one["value"] is None} == {
        "subgraph_retrieval_precision"
    }

    # By hand it is the same.
    queries = {name: texts["sql"] for name, texts in documented().items()}
    rows = ask_file(project / ".mimir" / "mimir.db", run, list(queries.values()))
    for name, row in zip(queries, rows, strict=True):
        assert row["value"] == pytest.approx(metrics[name]["value"], abs=2e-3), name

    # Content that the PM read is withheld from all other agents, and the receipt records it.
    receipts = [r for t in twin["tasks"] for a in t["history"] for r in a["receipts"]]
    assert len(receipts) == 6
    assert all(one["withheld"]["role"] > 1000 for one in receipts)
    assert twin["context"]["given"] == sum(one["given"] for one in receipts)
    assert twin["context"]["reduction"] > 0.4

    # The next run knows how long tasks of this role take.
    assert set(known) == {"Writer of small files"}
    assert known["Writer of small files"].tasks == 2
    assert known["Writer of small files"].minutes > 0
    assert material.measured.attempts == 0


async def test_prompts_of_a_task_on_big_files_stay_within_twice_the_workers(tmp_path):
    lines = "".join(f"value_{n} = {n}  # a line of a big file\n" for n in range(3000))
    work = [
        {
            "calls": [
                calls("edit_file", path="big.py", old="value_1500 = 1500 ", new="value_1500 = 0 ")
            ]
        },
        writes("new.py", lines),
        "Done.",
    ]
    check = holds("big.py", "^value_1500 = 0 ")
    task = step("a", prompt="Set `value_1500` to 0.", context_files=("big.py",), checks=(check,))
    project = start(tmp_path, {**FILES, "big.py": lines})

    journey = await travel(project, plan(task), [worker("a", *work), qc("a", PASS)])

    assert journey.statuses == {"a": "completed"}
    [attempt] = journey.facts.attempts("a")
    assert attempt["qcContextTokens"] <= 2 * attempt["estimatedContextTokens"]
    [first, *_] = journey.facts.calls("a", role="qc")
    assert "+value_1500 = 0  #" in str(first["deltaJson"])
    [first, *_] = journey.facts.calls("a", role="worker")
    assert "value_1500 = 1500  #" in str(first["deltaJson"])


async def test_first_messages_follow_the_context_of_the_model(tmp_path):
    lines = "".join(f"value_{n} = {n}  # a line of a big file\n" for n in range(1000))
    files = {f"big{n}.py": lines for n in range(10)}
    project = start(tmp_path, {**FILES, **files})

    journey = await travel(
        project,
        plan(step("a", context_files=tuple(files))),
        [wrote("a"), qc("a", PASS)],
        llm__context_tokens=8000,
    )

    [attempt] = journey.facts.attempts("a")
    assert attempt["estimatedContextTokens"] < 4000
