"""A store copied into another one of any kind: equal in every property, whole or not at all, never over something else."""

import contextlib
import tempfile

import pytest

from mimir.domain.task_states import RunStatus
from mimir.errors import BusyError, StoreError, UsageError
from mimir.orchestrator.store_transfer import migrate
from mimir.scheduling.lifecycle import COORDINATOR
from mimir.store.operations import claims, leases
from mimir.store.transfer import spool
from tests.support.small_run import RUN, SmallRun
from tests.support.small_runs import answered, whole
from tests.support.stores import KINDS, opened, put

HOSTILE = {
    "id": "m'\"`$\\u0027 🧊",
    "name": "it's \"quoted\" `and` $more {a:1} // ; \\",
    "text": "'\"`$\\\n\r\t🧊\0\x07\u202e\\u0027\\\\u005c<0>\\u" * 40_000,
    "tags": ["", "a\\u0027", "é\0", "}] AS row MATCH (n) DETACH DELETE n //"],
    "projectId": "p",
    "whole": -(2**63), "large": 2**63 - 1, "real": 1.0, "tiny": 5e-324, "huge": 1e300, "minus": -0.0, "yes": True, "none": [],
}  # fmt: skip
"""A note of more than a megabyte that nothing but a store should ever read."""
BOTH_WAYS = [
    pytest.param("sqlite", "neo4j", marks=pytest.mark.neo4j),
    pytest.param("neo4j", "sqlite", marks=pytest.mark.neo4j),
    pytest.param("sqlite", "sqlite"),
]


@pytest.fixture
async def made(tmp_path, frozen_clock):
    """Open a store by its kind and a name."""
    async with contextlib.AsyncExitStack() as stack:

        async def make(kind, name):
            store = KINDS[kind](tmp_path / name, frozen_clock)
            return await stack.enter_async_context(opened(store))

        yield make


@pytest.fixture
def copied(tmp_path):
    """Copy from one store into another."""

    async def copy(source, target, run="", dead=()):
        return await migrate(source, target, run, dead=dead, room=tmp_path / "room")

    return copy


async def everything(store):
    """Return the whole content of a store, in an order equal for all stores; ints and floats differ."""
    return await store.read(lambda reads: sorted(map(spool.line, reads.dump())))


async def dies_after(store, writes, monkeypatch):
    """Let a store fail for good after so many writes."""
    before, left = store.write, [writes]

    async def write(work):
        if not left[0]:
            raise ConnectionError("killed")
        left[0] -= 1
        return await before(work)

    monkeypatch.setattr(store, "write", write)


@pytest.mark.parametrize(("one", "other"), BOTH_WAYS)
async def test_copied_store_is_equal_in_every_property(made, copied, frozen_clock, one, other):
    source, target = await made(one, "one"), await made(other, "other")
    await whole(source, frozen_clock)
    await put(source, "Memory", HOSTILE)
    await source.write(lambda ops: ops.link("ABOUT", [(HOSTILE["id"], f"{RUN}/task-1")]))

    done = await copied(source, target)

    assert await everything(target) == await everything(source)
    assert (done.runs, done.known) == ((RUN,), ())
    again = await copied(source, target)
    assert (again.runs, again.known, again.nodes) == ((), (RUN,), done.nodes)
    assert await everything(target) == await everything(source)


@pytest.mark.parametrize(("one", "other"), BOTH_WAYS)
async def test_interrupted_copy_can_be_repeated_after_progress_of_the_run(
    made, copied, frozen_clock, monkeypatch, one, other
):
    source, target = await made(one, "one"), await made(other, "other")
    run = SmallRun(source, frozen_clock)
    await run.create()
    # When a copy dies before the run is there
    with monkeypatch.context() as patch:
        await dies_after(target, 14, patch)
        with pytest.raises(ConnectionError):
            await copied(source, target)
    # Then no reader sees a run
    assert await target.read(lambda reads: reads.find("Run", {})) == []
    assert len(await everything(target)) > 4
    # And it is copied as it is by now, nothing stale beside it
    await answered(run, "task-0")
    await source.write(lambda ops: ops.delete("Event", [f"{RUN}#00000002"]))
    await copied(source, target)
    assert await everything(target) == await everything(source)


async def test_each_point_at_which_a_copy_can_die_leaves_a_whole_run_or_none(
    made, copied, frozen_clock, monkeypatch
):
    source = await made("sqlite", "one")
    await whole(source, frozen_clock)
    for writes in range(40):
        target = await made("sqlite", f"other{writes}")
        with monkeypatch.context() as patch:
            await dies_after(target, writes, patch)
            with contextlib.suppress(ConnectionError):
                await copied(source, target)
        if await target.read(lambda reads: reads.get("Run", RUN)):
            assert await everything(target) == await everything(source)
            return
    raise AssertionError("it never came to its end")


@pytest.mark.parametrize("other", ["sqlite", pytest.param("neo4j", marks=pytest.mark.neo4j)])
@pytest.mark.parametrize(
    ("label", "row", "says"),
    [
        ("Run", {"id": RUN, "runId": RUN, "name": "another"}, "Run 'run-1' differs in 'baseCommit'"),
        ("Task", {"id": "p"}, "'p' is a Task there, not a Project"),
        ("Project", {"id": "p", "name": "theirs"}, "Project 'p' differs in 'name'"),
        ("Memory", {"id": "note", "text": "theirs"}, "Memory 'note' differs in 'text'"),
    ],
)  # fmt: skip
async def test_target_that_holds_something_else_is_refused_and_untouched(
    made, copied, frozen_clock, other, label, row, says
):
    source, target = await made("sqlite", "one"), await made(other, "other")
    await SmallRun(source, frozen_clock).create()
    await put(source, "Memory", {"id": "note", "text": "ours"})
    await put(target, label, row)
    before = await everything(target)

    with pytest.raises(StoreError, match=says) as refused:
        await copied(source, target)

    assert refused.value.next_step
    assert await everything(target) == before


async def test_progress_of_a_run_in_the_target_is_not_overwritten(made, copied, frozen_clock):
    source, target = await made("sqlite", "one"), await made("sqlite", "other")
    await SmallRun(source, frozen_clock).create()
    await copied(source, target)
    theirs = SmallRun(target, frozen_clock)
    await answered(theirs, "task-0")
    before = await everything(target)

    with pytest.raises(StoreError, match="differs"):
        await copied(source, target)

    assert await everything(target) == before


async def test_run_with_a_live_process_is_not_copied(made, copied, frozen_clock):
    source, target = await made("sqlite", "one"), await made("sqlite", "other")
    await SmallRun(source, frozen_clock).create()
    take = leases.acquire_lease
    await source.write(lambda ops: take(ops, RUN, COORDINATOR, "them", seconds=60))

    with pytest.raises(BusyError, match=f"{RUN} is being worked on \\(them\\)"):
        await copied(source, target)
    assert await everything(target) == []

    assert (await copied(source, target, dead=["them"])).runs == (RUN,)
    frozen_clock.advance(61)
    assert (await copied(source, target)).known == (RUN,)


async def test_run_of_which_a_worker_holds_a_task_is_not_copied(made, copied, frozen_clock):
    source, target = await made("sqlite", "one"), await made("sqlite", "other")
    await SmallRun(source, frozen_clock).create()
    await source.write(lambda ops: claims.claim(ops, RUN, "far", lease_seconds=60))

    with pytest.raises(BusyError, match="far"):
        await copied(source, target)

    frozen_clock.advance(61)
    assert (await copied(source, target)).runs == (RUN,)


async def test_one_run_is_copied_with_its_project_and_nothing_else(made, copied, frozen_clock):
    source, target = await made("sqlite", "one"), await made("sqlite", "other")
    for name in ("run-a", "run-ab"):
        run = SmallRun(source, frozen_clock, run=name)
        await run.create()
        await answered(run, "task-0")
    await put(source, "Memory", {"id": "note", "text": "ours"})

    assert (await copied(source, target, "run-ab")).runs == ("run-ab",)

    there = await target.read(lambda reads: [row.get("runId", "") for _, row in _nodes(reads)])
    assert {*there} == {"", "run-ab"}
    with pytest.raises(UsageError, match="no run 'run-x'"):
        await copied(source, target, "run-x")
    with pytest.raises(UsageError, match="2 runs begin with 'run-'"):
        await copied(source, target, "run-")
    # The project knowledge of both stores is combined.
    await copied(source, target)
    assert await everything(target) == await everything(source)


def _nodes(reads):
    return [item for item in reads.dump() if len(item) == 2]


async def test_copy_of_an_empty_store_is_refused(made, copied):
    source, target = await made("sqlite", "one"), await made("sqlite", "other")

    with pytest.raises(UsageError, match="holds nothing"):
        await copied(source, target)


async def test_no_transaction_carries_more_than_its_bounds(made, copied, frozen_clock, monkeypatch):
    """A server has the whole of a transaction in memory."""
    source, target = await made("sqlite", "one"), await made("sqlite", "other")
    large = [{"id": f"a{n}", "text": "x" * 300_000} for n in range(10)]
    small = [{"id": f"b{n:04}", "text": "y"} for n in range(1200)]
    await put(source, "Artifact", *large, *small)
    sizes = []
    before = target.write

    async def write(work):
        rows = work.keywords.get("rows", [])
        sizes.append((len(rows), sum(len(row["text"]) for row in rows if "text" in row)))
        return await before(work)

    monkeypatch.setattr(target, "write", write)

    await copied(source, target)

    assert max(number for number, _ in sizes) <= spool.ROWS_AT_ONCE
    assert max(chars for _, chars in sizes) <= spool.CHARS_AT_ONCE
    assert await everything(target) == await everything(source)


async def test_repeated_view_is_stored_once(made, frozen_clock):
    source = await made("sqlite", "one")
    await SmallRun(source, frozen_clock).create()
    with tempfile.TemporaryFile("w+", encoding="utf-8", newline="") as file:
        kept = spool.StoreSpool(file)
        kept.fill([("Task", {"id": "x" * 100_000})])
        await source.read(lambda reads: kept.fill(reads.dump()))

        assert sorted(kept.lines()) == await everything(source)


async def test_paused_run_of_a_finished_process_may_be_copied(made, copied, frozen_clock):
    source, target = await made("sqlite", "one"), await made("sqlite", "other")
    run = await whole(source, frozen_clock)

    await copied(source, target)

    row = await target.read(lambda reads: reads.get("Run", run.run))
    assert row["status"] == RunStatus.FAILED.value
