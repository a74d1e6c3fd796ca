"""A summary is the same, however much of the run was read while it went on."""

from functools import partial

import pytest

from mimir.domain.event import EventKind
from mimir.domain.task_states import RunStatus
from mimir.errors import StoreError
from mimir.reporting.summary import run_loader as gathering
from mimir.reporting.summary.incremental import IncrementalSummary, summary
from mimir.reporting.summary.run_loader import gather
from mimir.reporting.summary.summary import SummaryBuilder, summarise
from mimir.store.operations import runs
from mimir.store.protocol import GraphStore
from tests.support import small_runs
from tests.support.small_run import RUN, SmallRun


class LookedAt:
    """A store whose run is looked at after each write."""

    def __init__(self, store: GraphStore, account: IncrementalSummary) -> None:
        self.read = store.read
        self._store = store
        self._account = account
        self.taken: list[str] = []
        """Tasks, in the order in which they were taken in."""

    async def write(self, work):
        done = await self._store.write(work)
        await look(self, self._account)
        return done


async def look(store, account: IncrementalSummary) -> None:
    seen = await store.read(account.look)
    assert await store.read(account.look) == seen, "To look changes nothing"
    account.take(seen)
    if isinstance(store, LookedAt):
        store.taken += [task.id for task in seen.part.tasks]


async def told(run: SmallRun, account: IncrementalSummary):
    return await run.store.read(partial(account.summary, outcome=RunStatus.FAILED))


async def plainly(run: SmallRun):
    return summarise(await run.store.read(partial(gather, run=RUN)), RunStatus.FAILED)


@pytest.mark.parametrize("at_once", [1, 2, 25])
async def test_summary_is_the_same_where_each_task_was_read_when_it_ended(
    store, frozen_clock, monkeypatch, at_once
):
    monkeypatch.setattr(runs, "AT_ONCE", at_once)
    account = IncrementalSummary(RUN)
    looked_at = LookedAt(store, account)
    run = await small_runs.whole(looked_at, frozen_clock)
    assert looked_at.taken == [task.id for task in run.plan.tasks]
    kinds = {decision.kind for decision in (await plainly(run)).decisions}
    assert {"retry", "breaker", "claim", "merged", "left_out"} <= kinds
    assert await told(run, account) == await plainly(run)


async def test_task_that_has_not_ended_is_not_taken_in(store, frozen_clock):
    account = IncrementalSummary(RUN)
    looked_at = LookedAt(store, account)
    run = SmallRun(looked_at, frozen_clock)
    await run.create()
    await small_runs.retried(run)  # `task-1`; `task-0` stands before it
    assert looked_at.taken == []
    await small_runs.answered(run, "task-0")
    assert looked_at.taken == ["task-0", "task-1"]
    assert await told(run, account) == await plainly(run)


async def test_task_is_not_taken_in_before_its_end_was_heard(whole, monkeypatch):
    monkeypatch.setattr(gathering, "_AHEAD", 3)
    account = IncrementalSummary(RUN)
    looks = 0
    while not (seen := await whole.store.read(account.look)).part.tasks:
        account.take(seen)
        looks += 1
    later = await whole.store.read(partial(runs.events, run=RUN, after=seen.events[-1].seq))
    assert looks > 2
    assert not [e for e in later if e.task and e.kind in gathering.NOTED]
    account.take(seen)
    assert await told(whole, account) == await plainly(whole)


async def test_what_could_not_be_taken_in_is_read_again(whole, monkeypatch):
    account = IncrementalSummary(RUN)
    take = SummaryBuilder.take

    def fails(summing: SummaryBuilder, part) -> None:
        monkeypatch.setattr(SummaryBuilder, "take", take)
        raise StoreError("It cannot be read.")

    seen = await whole.store.read(account.look)
    assert seen.part.tasks
    monkeypatch.setattr(SummaryBuilder, "take", fails)
    with pytest.raises(StoreError):
        account.take(seen)
    assert await told(whole, account) == await plainly(whole)


async def test_refused_calls_are_told_once_however_they_came(store, frozen_clock):
    account = IncrementalSummary(RUN)
    run = SmallRun(LookedAt(store, account), frozen_clock)
    await run.create()
    for title in ("read a", "read b"):
        await run.store.write(
            lambda ops, title=title: runs.append_event(
                ops, RUN, EventKind.TOOL_DENIED, task="task-0", attempt=1, data={"title": title}
            )
        )
    await small_runs.answered(run, "task-0")
    [denied] = [d for d in (await told(run, account)).decisions if d.kind == "denied"]
    assert denied.detail == ("read a", "read b")
    assert await told(run, account) == await plainly(run)


async def test_summary_of_a_run_as_it_stands_takes_all_in_one_look(done):
    stands = summarise(await done.store.read(partial(gather, run=RUN)))
    assert await done.store.read(partial(summary, run=RUN)) == stands
