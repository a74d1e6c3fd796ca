from dataclasses import replace

import pytest

from mimir.domain.event import EventKind
from mimir.domain.evidence import CheckRun
from mimir.domain.plan import Check
from mimir.domain.task_states import TaskStatus, TransitionActor
from mimir.errors import LeaseLost, StoreError
from mimir.store.operations import audit_loading, claims, evidence, record_loading, runs
from mimir.store.records.attempt_changes import AttemptResultChange
from mimir.store.records.record_codec import PackedJson
from mimir.store.records.task_changes import ReuseChange, WorkAnsweredChange
from mimir.store.transcripts import call_rows
from mimir.store.transfer import recording_rows
from tests.support.claims import claim
from tests.support.stored_run import new_run, plan, start, task

RAN = CheckRun(
    check="unit",
    argv=("pytest",),
    phase="after",
    tree="t1",
    exit_code=0,
    seconds=1.5,
    output_tail="ok",
    output_hash="h",
)


def answered(**fields):
    return WorkAnsweredChange(
        **{
            "worker_output": "Done.", "worker_duration": 2.5, "worker_tokens": 7, "worker_tool_calls": 3,
            "worker_message_count": 4, "worker_completed_at": "2026-01-01T00:00:00.000Z", **fields,
        }
    )  # fmt: skip


async def test_claim_gives_the_task_as_a_record(store, run):
    assert run[0].record.task_id == "a"
    assert run[0].record.locked_by == "w1"
    assert run[0].record.status is TaskStatus.WORKER_EXECUTING


async def test_changes_of_a_phase_are_written_to_the_task_and_copied_to_the_attempt(store, run):
    deliverable = AttemptResultChange(deliverable=PackedJson.pack({"answer": "Done."}))
    await store.write(
        lambda ops: claims.move(
            ops, "r1", "a", run[0].fence, TaskStatus.WORKER_COMPLETED, TransitionActor.MACHINE,
            changes=[answered()], attempt_changes=[deliverable], kind=EventKind.WORK_ANSWERED,
        )
    )  # fmt: skip

    found = await store.read(lambda r: record_loading.find_task(r, "r1", "a"))
    attempt = await store.read(lambda r: record_loading.find_attempt(r, "r1", "a", 1))
    assert (found.status, found.worker_tokens) == (TaskStatus.WORKER_COMPLETED, 7)
    assert (attempt.status, attempt.worker_duration) == (TaskStatus.WORKER_COMPLETED, 2.5)
    assert attempt.deliverable.mapping() == {"answer": "Done."}


async def test_a_claimed_task_is_loaded_under_its_newest_fence_only(store, run):
    fence = run[0].fence
    found = await store.read(lambda r: claims.load_claimed_task(r, "r1", "a", fence))
    assert found.fence == fence
    with pytest.raises(LeaseLost):
        await store.read(lambda r: claims.load_claimed_task(r, "r1", "a", fence - 1))


async def test_the_priority_of_a_task_decides_which_is_claimed_first(store):
    await start(store, task("a"), task("b"))
    await store.write(lambda ops: claims.set_priority(ops, "r1", "b", 9.0))
    assert [one.task for one in await claim(store)] == ["b"]


async def test_a_task_is_completed_with_the_accepted_attempt_of_another_run(store, run):
    await store.write(
        lambda ops: ops.patch("Attempt", "r1/a/1", {"workJson": "{}", "note": "mine"})
    )
    await store.write(lambda ops: ops.patch("Task", "r1/a", {"qcScore": 90.0, "cause": "x"}))
    await store.write(lambda ops: runs.create(ops, new_run(plan(task("a")), id="r2")))
    change = ReuseChange(
        verified_at="2026-01-01T00:00:00.000Z", integrated_at="2026-01-01T00:00:00.000Z", integrated_commit=None,
        integrated_tree=None, accepted_attempt=1, total_attempts=1, taken_from="r1",
    )  # fmt: skip

    await store.write(lambda ops: claims.complete_reused_task(ops, "r2", "a", change, commit=""))

    made = await store.read(lambda r: record_loading.find_task(r, "r2", "a"))
    attempts = await store.read(lambda r: record_loading.load_task_attempts(r, "r2", "a"))
    assert (made.status, made.taken_from, made.attempt_number) == (TaskStatus.COMPLETED, "r1", 1)
    assert (made.qc_score, made.qc_passed, made.cause) == (90.0, True, "")
    assert [(one.id, one.deliverable.text, one.note) for one in attempts] == [("r2/a/1", "{}", "")]
    assert attempts[0].qc_passed is None
    other = replace(change, accepted_attempt=2)
    with pytest.raises(StoreError, match="has no attempt 2"):
        await store.write(lambda ops: claims.complete_reused_task(ops, "r2", "a", other, commit=""))


async def test_a_check_run_is_written_and_loaded(store, run):
    check = Check(id="unit", criteria=(), run="pytest", timeout_seconds=60)
    await store.write(
        lambda ops: evidence.save_check_run(ops, "r1#check-1", "r1", "w1", "a/1", check, RAN)
    )
    (found,) = await store.read(lambda r: record_loading.load_check_runs(r, "r1"))
    assert found.check_run() == RAN
    assert (found.owner, found.place, found.timeout_seconds) == ("w1", "a/1", 60.0)


async def test_open_calls_of_a_transcript_are_deleted(store, run):
    rows = [
        {"id": "r1/a/1/worker#0", "lane": "r1/a/1/worker", "seq": 0, "kind": "tool", "done": True},
        {"id": "r1/a/1/worker#1", "lane": "r1/a/1/worker", "seq": 1, "kind": "tool", "done": False},
    ]
    await store.write(lambda ops: ops.upsert("Call", rows))
    await store.write(lambda ops: call_rows.delete_open_calls(ops, "r1/a/1/worker"))
    left = await store.read(lambda r: record_loading.load_calls(r, "r1/a/1/worker"))
    assert [one.number for one in left] == [0]


async def test_the_audit_names_a_damaged_node_and_loads_the_others(store):
    await start(store, task("a"), task("b"))
    await store.write(lambda ops: ops.patch("Task", "r1/b", {"attemptNumber": "none"}))

    found = await store.read(
        lambda r: audit_loading.load_audited_run(r, "r1", [EventKind.RUN_CREATED])
    )

    assert list(found.tasks) == ["a"]
    assert found.unread == ("r1/b: it cannot be read; it was changed",)
    assert found.damaged == {"r1/b"}
    assert found.plan == plan(task("a"), task("b"))
    assert [one.kind for one in found.events] == [EventKind.RUN_CREATED]


async def test_a_recorded_run_is_created_as_it_was_exported(store):
    await start(store, task("a"), session_id="s1")
    await store.write(lambda ops: ops.patch("Run", "r1", {"sandbox": "bubblewrap"}))
    pinned, packed = await store.read(lambda r: recording_rows.export_pinned_run(r, "r1"))

    await store.write(
        lambda ops: recording_rows.create_recorded_run(
            ops, "r2", pinned=pinned, plan=plan(task("a")), settings={"workers": 4}, texts={"brief": ["x"]}
        )
    )  # fmt: skip

    again, packed_again = await store.read(lambda r: recording_rows.export_pinned_run(r, "r2"))
    assert again == pinned
    assert packed_again == packed
    brief = await store.read(lambda r: record_loading.find_json(r, "r2", "brief"))
    assert brief.value.texts() == ("x",)


async def test_measurements_are_imported_where_their_node_exists(store):
    await start(store, task("a"))
    measured = [
        ("Task", {"id": "r1/a", "heldSeconds": 2.0}),
        ("Task", {"id": "r1/z", "heldSeconds": 1.0}),
    ]
    await store.write(lambda ops: recording_rows.import_measurements(ops, measured))

    found = await store.read(lambda r: recording_rows.export_measurements(r, "r1"))

    assert [label for label, _ in found] == ["Run", "Task"]
    assert found[1][1]["heldSeconds"] == 2.0
