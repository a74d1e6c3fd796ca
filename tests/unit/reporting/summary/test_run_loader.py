"""A summary computed batch by batch equals the summary of the whole run in memory."""

from functools import partial

import pytest

from mimir.domain.event import EventKind
from mimir.domain.task_states import RunStatus
from mimir.reporting.summary.run_loader import gather, load_summary
from mimir.reporting.summary.summary import RunSummary, summarise
from mimir.store.operations import runs
from tests.support import small_runs
from tests.support.small_run import RUN, SmallRun


async def in_batches(run: SmallRun) -> RunSummary:
    return await run.store.read(partial(load_summary, run=RUN, outcome=RunStatus.FAILED))


async def at_once(run: SmallRun) -> RunSummary:
    return summarise(await run.store.read(partial(gather, run=RUN)), RunStatus.FAILED)


@pytest.mark.parametrize("tasks", [1, 2, 25])
async def test_summary_is_the_same_for_every_batch_size(whole, monkeypatch, tasks):
    monkeypatch.setattr(runs, "AT_ONCE", tasks)
    expected = await at_once(whole)
    kinds = {decision.kind for decision in expected.decisions}
    assert {"retry", "breaker", "claim", "merged", "left_out"} <= kinds
    assert await in_batches(whole) == expected


async def test_refused_calls_of_an_attempt_are_one_decision(store, frozen_clock, monkeypatch):
    monkeypatch.setattr(runs, "AT_ONCE", 1)
    run = SmallRun(store, frozen_clock)
    await run.create()
    for title in ("read a", "read b"):
        await run.store.write(
            lambda ops, title=title: runs.append_event(
                ops, RUN, EventKind.TOOL_DENIED, task="task-0", attempt=1, data={"title": title}
            )
        )
    await small_runs.answered(run, "task-0")
    [denied] = [d for d in (await in_batches(run)).decisions if d.kind == "denied"]
    assert denied.detail == ("read a", "read b")
    assert await in_batches(run) == await at_once(run)


async def test_summary_of_a_run_needs_no_outcome(done):
    stands = summarise(await done.store.read(partial(gather, run=RUN)))
    assert await done.store.read(partial(load_summary, run=RUN)) == stands
