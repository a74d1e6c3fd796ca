import pytest

from mimir.attempts.services import AttemptStart
from mimir.domain.deliverable import Deliverable
from mimir.domain.event import EventKind
from mimir.domain.evidence import CheckOutcome
from mimir.domain.task_states import RunStatus, TaskStatus
from mimir.errors import StoreError
from mimir.qc.evidence import seal
from mimir.store import run_reading
from mimir.store.operations import evidence, leases, record_loading, runs, worker_processes
from mimir.store.operations.worker_processes import WorkerProcess
from mimir.store.records.artifact_records import PoolCounters
from mimir.store.records.attempt_records import AttemptRecord, AttemptSummaryRecord
from mimir.store.records.audited_records import AuditedVerdictRecord
from mimir.store.records.call_records import CallRecord
from mimir.store.records.record_codec import PackedJson, encode
from mimir.store.records.run_changes import RunLimitsChange, RunPauseChange
from mimir.store.records.run_records import ProjectRecord, RunRecord
from mimir.store.records.task_changes import ChecksCompletedChange
from mimir.store.records.task_records import TaskAnswerRecord, TaskProgressRecord, TaskRecord
from mimir.store.schema import NodeLabel
from mimir.store.sqlite.sqlite_store import SqliteStore
from tests.support import old_stores
from tests.support.stored_run import new_run, plan, start, task


@pytest.fixture
async def reading(store):
    """Calls a loading function on one view."""

    async def read(function, *args, **options):
        return await store.read(lambda reads: function(reads, *args, **options))

    return read


async def test_run_is_loaded_with_or_without_its_plan(store, reading):
    new = new_run(plan(task("a")))
    await store.write(lambda ops: runs.create(ops, new))

    light = await reading(record_loading.load_run, "r1")
    whole = await reading(record_loading.load_run_with_plan, "r1")

    assert record_loading.decode_plan(whole) == new.plan
    with pytest.raises(StoreError, match="Run 'r1' has no plan"):
        record_loading.decode_plan(light)


async def test_runs_are_found_by_project_and_status(store, reading):
    await start(store, task("a"))

    found = await reading(record_loading.find_runs, project_id="p1", status=RunStatus.RUNNING)

    assert [run.id for run in found] == ["r1"]
    assert await reading(record_loading.find_runs, project_id="other") == []
    latest = await reading(record_loading.find_latest_run, project_id="p1", kinds=["execute"])
    assert latest == found[0]


async def test_tasks_are_loaded_in_the_order_of_the_plan(store, reading):
    await start(store, task("b"), task("a", "b"))

    whole = await reading(record_loading.load_tasks, "r1", TaskRecord)
    progress = await store.read(
        lambda reads: list(record_loading.iterate_tasks(reads, "r1", TaskProgressRecord))
    )
    later = await store.read(
        lambda reads: list(record_loading.iterate_tasks(reads, "r1", TaskRecord))[1:]
    )

    assert [one.task_id for one in whole] == [one.task_id for one in progress] == ["b", "a"]
    assert [one.task_id for one in later] == ["a"]
    assert await reading(record_loading.find_task, "r1", "b") == whole[0]
    assert await reading(record_loading.find_task, "r1", "z") is None


async def test_attempts_of_a_claimed_task_are_loaded(store, reading, run):
    attempts = await reading(record_loading.load_task_attempts, "r1", "a")
    seals = await store.read(
        lambda reads: list(
            record_loading.iterate_attempts(reads, "r1", [("a", 2)], AttemptSummaryRecord)
        )
    )

    assert [(one.number, one.status) for one in attempts] == [(1, TaskStatus.WORKER_EXECUTING)]
    assert [one.number for one in seals] == [1]
    assert await reading(record_loading.find_attempt, "r1", "a", 1) == attempts[0]
    assert await reading(record_loading.load_run_attempts, "r1", AttemptRecord) == attempts


async def test_change_of_a_phase_is_written_and_read(store, reading, run):
    change = ChecksCompletedChange(
        checks_completed_at="2026", qc_start_time="2026", qc_attempt_number=1
    )
    await store.write(lambda ops: ops.patch(NodeLabel.TASK, "r1/a", encode(change)))

    row = await store.read(lambda reads: reads.get(NodeLabel.TASK, "r1/a"))

    assert row["qcAttemptNumber"] == 1


async def test_lease_of_a_run_has_the_holder_that_the_lease_operations_name(store, reading, run):
    await store.write(lambda ops: leases.acquire_lease(ops, "r1", "coordinator", "w1", seconds=60))

    record = await reading(record_loading.load_run, "r1")

    now = await store.read(lambda reads: reads.now())
    assert record_loading.lease_holder(record, "coordinator", now) == "w1"
    assert record_loading.lease_holder(record, "coordinator", now, dead={"w1"}) == ""
    assert record_loading.lease_holder(record, "coordinator", "9999") == ""
    assert record_loading.lease_holder(record, "integrator", now) == ""


async def test_processes_of_a_run_are_loaded(store, reading, run):
    process = WorkerProcess(owner="w1", host="h", number=7, lock_file="/l")
    await store.write(
        lambda ops: worker_processes.register_process(
            ops, "r1", process, PoolCounters(agents=2), 60
        )
    )

    (found,) = await reading(record_loading.load_processes, "r1")

    assert (found.owner, found.number, found.agents, found.left_at) == ("w1", 7, 2, "")


async def test_texts_and_json_of_a_run_are_loaded_by_name(store, reading, run):
    await store.write(lambda ops: evidence.put_artifact(ops, "r1#brief", "r1", "brief", "[1,2]"))

    assert (await reading(record_loading.find_text, "r1", "brief")).length == 5
    assert (await reading(record_loading.find_json, "r1", "brief")).value.decode(
        tuple[int, ...]
    ) == (1, 2)
    assert await reading(record_loading.find_json, "r1", "made") is None


async def test_whole_answer_is_read_from_the_artifact_of_a_cut_property(store, reading, run):
    await store.write(
        lambda ops: evidence.put_artifact(ops, "r1/a/1/answer", "r1", "answer", "whole answer")
    )
    part = TaskAnswerRecord(
        id="r1/a", task_id="a", run_id="r1", worker_output="whole", accepted_attempt=1
    )

    assert await reading(record_loading.load_whole_answer, part, longest_kept=5) == "whole answer"
    assert await reading(record_loading.load_whole_answer, part, longest_kept=6) == "whole"


async def test_calls_and_check_runs_of_a_new_run_are_none(store, reading, run):
    assert await reading(record_loading.load_calls, "r1/a/1/worker", kind="model") == []
    assert await reading(record_loading.find_call, "r1/a/1/worker", 0) is None
    assert await reading(record_loading.load_check_runs, "r1") == []


async def test_claim_returns_a_row_that_is_a_task(store, run):
    (claim,) = run

    record = claim.record

    assert (record.fence, record.locked_by, record.attempt_number) == (claim.fence, "w1", 1)


async def test_evidence_and_answers_are_loaded_by_attempt(store, reading, run):
    records = seal.extend("r1/a/1", None, [("deliverable", {"tree": "t"})])
    gate = seal.extend("r1/gate", None, [("gate", {"tree": "t", "red": []})])

    def work(ops):
        evidence.append(ops, "r1", "a", 1, None, "r1/a/1", records)
        evidence.append(ops, "r1", "", 0, None, "r1/gate", gate)
        evidence.put_artifact(ops, "r1/a/1/answer", "r1", "answer", "done", "r1/a/1")

    await store.write(work)
    answers = await store.read(
        lambda reads: list(record_loading.iterate_answers(reads, ["r1/a/1"]))
    )

    assert await reading(record_loading.load_evidence, ["r1/a/1", "none"]) == {"r1/a/1": records}
    assert await reading(record_loading.find_last_gate_record, "r1") == gate[0]
    assert [one.text for one in answers] == ["done"]


async def test_calls_of_a_transcript_are_found_and_counted(store, reading, run):
    def call(number, kind, **more):
        row = {
            "id": f"l/{number}",
            "lane": "l",
            "seq": number,
            "kind": kind,
            "runId": "r1",
            "task": "a",
        }
        return {**row, "done": True, **more}

    rows = [
        call(0, "model"),
        call(1, "tool", tool="memory"),
        call(2, "tool", tool="shell", done=False),
    ]
    await store.write(lambda ops: ops.upsert(NodeLabel.CALL, rows))

    assert [c.number for c in await reading(record_loading.load_calls, "l", kind="tool")] == [1, 2]
    assert len(await reading(record_loading.load_run_calls, "r1")) == 3
    assert [c.tool for c in await reading(record_loading.load_tool_calls, ["r1"], ["memory"])] == [
        "memory"
    ]
    assert (await reading(record_loading.find_open_call, "l")).number == 2
    assert await reading(run_reading.count_tool_calls, ["l"], run="r1") == {"l": 2}
    assert await reading(run_reading.count_tool_calls, ["l"], done_only=True) == {"l": 1}
    assert await reading(run_reading.count_tool_calls, []) == {}


async def test_events_of_a_run_are_counted_and_timed(store, reading, run):
    counted = await reading(record_loading.count_events, "r1")
    started = await reading(record_loading.find_last_event_time, "r1", [EventKind.ATTEMPT_STARTED])

    assert counted["AttemptStarted"] == 1
    assert started.endswith("Z")
    assert await reading(record_loading.find_last_event_time, "r1", [EventKind.APPLIED]) == ""


async def test_held_tasks_and_attempts_are_found_by_state(store, reading, run):
    found = await reading(
        record_loading.find_attempts_with_status, "r1", [TaskStatus.WORKER_EXECUTING]
    )

    assert [one.task_id for one in await reading(record_loading.find_held_tasks, "r1")] == ["a"]
    assert [one.id for one in found] == ["r1/a/1"]
    assert [one.id for one in await reading(record_loading.load_task_answers, ["r1/a"])] == ["r1/a"]


async def test_changes_of_one_node_are_written_together(store, reading, run):
    limits, pause = RunLimitsChange(max_calls=7), RunPauseChange(pause_reason="budget")

    def work(ops):
        return record_loading.save_change(ops, "r1", limits, pause)

    assert await store.write(work)
    changed = await reading(record_loading.load_run, "r1")

    assert (changed.max_calls, changed.pause_reason) == (7, "budget")
    mixed = ChecksCompletedChange(
        checks_completed_at="2026", qc_start_time="2026", qc_attempt_number=1
    )
    with pytest.raises(StoreError, match="not of one kind of node"):
        await store.write(lambda ops: record_loading.save_change(ops, "r1", limits, mixed))


async def test_text_of_a_run_is_found_by_its_name(store, reading, run):
    await store.write(lambda ops: record_loading.save_run_text(ops, "r1", "made", "# Plan"))

    assert (await reading(record_loading.find_text, "r1", "made")).text == "# Plan"


@pytest.mark.parametrize("version", [1, 2])
async def test_records_of_stores_of_every_schema_are_valid(version, tmp_path, frozen_clock):
    project = old_stores.unpack(version, tmp_path)
    store = SqliteStore(project / ".mimir/mimir.db", frozen_clock)
    await store.init()
    kinds = {
        NodeLabel.RUN: RunRecord, NodeLabel.TASK: TaskRecord, NodeLabel.ATTEMPT: AttemptRecord, NodeLabel.CALL: CallRecord,
        NodeLabel.VERDICT: AuditedVerdictRecord, NodeLabel.PROJECT: ProjectRecord,
    }  # fmt: skip

    found = await store.read(
        lambda reads: {
            label: record_loading.find_records(reads, kind, {}) for label, kind in kinds.items()
        }
    )
    await store.close()

    assert all(found.values())
    attempt = next(one for one in found[NodeLabel.ATTEMPT] if one.verdict)
    for packed, kind in (
        (attempt.deliverable, Deliverable),
        (attempt.check_outcomes, tuple[CheckOutcome, ...]),
        (attempt.start, AttemptStart),
    ):
        value = packed.decode(kind)
        assert PackedJson.pack(value).decode(kind) == value
