import pytest

from mimir.domain.event import EventKind
from mimir.domain.plan import Criterion
from mimir.domain.task_states import RunStatus, TaskStatus
from mimir.errors import StoreError, UsageError
from mimir.store.operations import record_loading, runs
from mimir.store.records.run_changes import RunPauseChange
from tests.support.stored_rows import run_row, task_rows
from tests.support.stored_run import new_run, plan, start, task

DIAMOND = (
    task("a"),
    task("b", "a"),
    task("c", "a"),
    task("d", "b", "c", criteria=(Criterion(id="x", text="Y"),)),
)


async def test_run_is_created_with_its_tasks_and_edges(store, frozen_clock):
    new = new_run(plan(*DIAMOND), max_calls=10, only=("d",), parent_run="")
    await store.write(lambda ops: runs.create(ops, new))

    row = await store.read(lambda r: run_row(r, "r1"))
    rows = await store.read(lambda r: task_rows(r, "r1"))
    edges = await store.read(lambda r: r.edges_among(["p1", "r1", *(f"r1/{t}" for t in "abcd")]))

    assert runs.read_plan(row["planJson"]) == new.plan
    kept = {
        k: row[k]
        for k in (
            "status",
            "kind",
            "head",
            "headTree",
            "baseCommit",
            "maxCalls",
            "only",
            "taskCount",
        )
    }
    assert kept == {
        "status": "running", "kind": "execute", "head": "c0", "headTree": "t0", "baseCommit": "c0", "maxCalls": 10,
        "only": ["d"], "taskCount": 4,
    }  # fmt: skip
    assert row["createdAt"] == "2030-01-02T03:04:05.000000Z"
    assert [(r["taskId"], r["status"], r["fence"], r["released"]) for r in rows] == [
        (t, "pending", 0, False) for t in "abcd"
    ]
    assert rows[3]["verificationCriteria"] == ["x: Y"]
    assert edges == sorted(
        [("p1", "HAS_RUN", "r1")]
        + [("r1", "HAS_TASK", f"r1/{t}") for t in "abcd"]
        + [(f"r1/{a}", "DEPENDS_ON", f"r1/{b}") for a, b in ("ba", "ca", "db", "dc")]
    )


async def test_phase_one_is_written_with_its_names(store):
    await start(store, task("a", qc_role="", max_retries=0), released=False)

    (row,) = await store.read(lambda r: task_rows(r, "r1"))

    assert {k: row[k] for k in ("workerRole", "qcRole", "verificationCriteria", "maxRetries", "attemptNumber")} == {
        "workerRole": "Engineer", "qcRole": "Reviewer of: Engineer", "verificationCriteria": ["c1: It works"],
        "maxRetries": 0, "attemptNumber": 0,
    }  # fmt: skip
    assert row["taskCreatedAt"] == "2030-01-02T03:04:05.000000Z"


async def test_run_of_the_same_id_is_refused_and_nothing_is_changed(store):
    await start(store, *DIAMOND)
    before = await store.read(lambda r: list(r.dump()))

    with pytest.raises(StoreError, match="'r1'"):
        await start(store, task("z"))

    assert await store.read(lambda r: list(r.dump())) == before


async def test_task_that_depends_on_nothing_known_makes_no_run(store):
    with pytest.raises(StoreError, match="ghost"):
        await start(store, task("a", "ghost"))

    assert await store.read(lambda r: list(r.dump())) == []


async def test_planning_run_has_no_plan_and_no_tasks(store):
    await store.write(lambda ops: runs.create(ops, new_run(None)))

    row = await store.read(lambda r: run_row(r, "r1"))

    assert "planJson" not in row
    record = await store.read(lambda r: record_loading.load_run_with_plan(r, "r1"))
    with pytest.raises(StoreError, match="no plan"):
        record_loading.decode_plan(record)


async def test_prompt_of_any_size_and_kind_is_pinned_byte_for_byte(store):
    prompts = ["x" * 200_000, "\ud800", "\0", "`'\"$\n\r\t", "", "🧊" * 3000]
    await start(store, *(task(f"t{i}", prompt=p) for i, p in enumerate(prompts)))

    row = await store.read(lambda r: run_row(r, "r1"))

    assert [t.prompt for t in runs.read_plan(row["planJson"]).tasks] == prompts


async def test_events_are_numbered_without_gaps_and_read_in_order(store, frozen_clock):
    await start(store, *DIAMOND, released=False)
    for n in range(3):
        frozen_clock.advance(1)
        await store.write(
            lambda ops, n=n: runs.append_event(
                ops, "r1", EventKind.WARNING, task="a", attempt=n, data={"n": n, "t": "\ud800🧊"}
            )
        )

    events = await store.read(lambda r: runs.events(r, "r1"))
    late = await store.read(lambda r: runs.events(r, "r1", after=2, limit=1))

    assert [(e.seq, e.kind) for e in events] == [
        (1, EventKind.RUN_CREATED), (2, EventKind.WARNING), (3, EventKind.WARNING), (4, EventKind.WARNING),
    ]  # fmt: skip
    assert (events[3].task, events[3].attempt, events[3].data) == (
        "a",
        2,
        {"n": 2, "t": "\ud800🧊"},
    )
    assert events[3].at == "2030-01-02T03:04:08.000000Z"
    assert [e.seq for e in late] == [3]
    assert await store.read(lambda r: runs.last_seq(r, "r1")) == 4


async def test_event_of_a_work_that_fails_is_not_there(store):
    await start(store, *DIAMOND)
    before = await store.read(lambda r: runs.events(r, "r1"))

    def work(ops):
        runs.append_event(ops, "r1", EventKind.WARNING)
        raise RuntimeError

    with pytest.raises(RuntimeError):
        await store.write(work)
    await store.write(lambda ops: runs.append_event(ops, "r1", EventKind.APPLIED))

    after = await store.read(lambda r: runs.events(r, "r1"))
    assert [e.seq for e in after] == list(range(1, len(before) + 2))
    assert after[-1].kind is EventKind.APPLIED


async def test_event_of_no_run_is_refused(store):
    with pytest.raises(StoreError, match="'nope'"):
        await store.write(lambda ops: runs.append_event(ops, "nope", EventKind.WARNING))


async def test_unknown_run_names_the_nearest(store):
    with pytest.raises(UsageError) as caught:
        await store.read(lambda r: run_row(r, "r1"))
    assert "mimir execute" in caught.value.next_step

    for id in ("fix-login-1", "fix-login-2", "other"):
        await store.write(lambda ops, id=id: runs.create(ops, new_run(None, id=id)))
    with pytest.raises(UsageError) as caught:
        await store.read(lambda r: run_row(r, "fix-logn-2"))

    assert "fix-login-2" in caught.value.next_step
    assert "other" not in caught.value.next_step


async def test_latest_is_the_newest_of_a_kind_also_within_one_moment(store, frozen_clock):
    for i, (kind, path) in enumerate(
        [("execute", "a"), ("plan", "a"), ("execute", "b"), ("execute", "a")]
    ):
        new = new_run(
            plan(task("t")) if kind == "execute" else None,
            id=f"x{9 - i}",
            kind=kind,
            plan_path=path,
        )
        await store.write(lambda ops, new=new: runs.create(ops, new))

    async def latest(**how):
        row = await store.read(
            lambda r: record_loading.find_latest_run(
                r, **{"project_id": "p1", "kinds": ("execute",), **how}
            )
        )
        return row and row.id

    assert await latest() == "x6"
    assert await latest(plan_path="b") == "x7"
    assert await latest(kinds=("plan",)) == "x8"
    assert await latest(kinds=("plan", "execute")) == "x6"
    assert await latest(project_id="p2") is None
    frozen_clock.advance(1)
    await store.write(lambda ops: runs.create(ops, new_run(None, id="later")))
    assert await latest(kinds=("plan", "execute")) == "later"


async def test_status_moves_only_from_where_it_is_expected(store, frozen_clock):
    await start(store, *DIAMOND)

    def pause(ops):
        return runs.set_status(
            ops, "r1", RunStatus.PAUSED, EventKind.RUN_PAUSED, {"reason": "budget"},
            expect=(RunStatus.RUNNING,), changes=(RunPauseChange(pause_reason="budget"),),
        )  # fmt: skip

    assert await store.write(pause) is True
    assert await store.write(pause) is False

    row = await store.read(lambda r: r.get("Run", "r1"))
    events = await store.read(lambda r: runs.events(r, "r1"))
    assert (row["status"], row["pauseReason"]) == ("paused", "budget")
    assert "finishedAt" not in row
    assert [e.data for e in events if e.kind is EventKind.RUN_PAUSED] == [
        {"reason": "budget", "from": "running", "to": "paused"}
    ]


async def test_ended_run_has_its_end_time(store):
    await start(store, *DIAMOND)

    await store.write(
        lambda ops: runs.set_status(
            ops, "r1", RunStatus.COMPLETED, EventKind.RUN_FINISHED, {}, expect=(RunStatus.RUNNING,)
        )
    )

    assert (await store.read(lambda r: r.get("Run", "r1")))[
        "finishedAt"
    ] == "2030-01-02T03:04:05.000000Z"


async def test_head_moves_only_from_the_expected_one(store):
    await start(store, *DIAMOND)

    assert await store.write(lambda ops: runs.advance_head(ops, "r1", "c0", "c1", "t1")) is True
    assert await store.write(lambda ops: runs.advance_head(ops, "r1", "c0", "c2", "t2")) is False

    row = await store.read(lambda r: r.get("Run", "r1"))
    assert (row["head"], row["headTree"], row["baseCommit"]) == ("c1", "t1", "c0")


async def test_spawned_run_is_one_deeper(store):
    await store.write(lambda ops: runs.create(ops, new_run(None)))
    await store.write(
        lambda ops: runs.create(ops, new_run(None, id="r2", kind="agent", parent_run="r1"))
    )

    row = await store.read(lambda r: r.get("Run", "r2"))
    assert (row["depth"], row["parentRun"]) == (1, "r1")


async def test_created_run_folds_to_pending_tasks(store):
    await start(store, *DIAMOND, released=False)

    events = await store.read(lambda r: runs.events(r, "r1"))

    assert runs.fold(events) == dict.fromkeys("abcd", TaskStatus.PENDING)


async def test_two_runs_share_nothing(store):
    await start(store, *DIAMOND)
    await start(store, *DIAMOND, id="r2")

    assert {r["id"] for r in await store.read(lambda r: task_rows(r, "r2"))} == {
        f"r2/{t}" for t in "abcd"
    }
    assert await store.read(lambda r: runs.last_seq(r, "r2")) == 5
