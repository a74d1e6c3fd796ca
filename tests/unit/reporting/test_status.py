"""State of a run in the JSON form for scripts: the shape is a promise."""

import json
from functools import partial

import pytest

from mimir.domain import ids
from mimir.domain.task_states import RunStatus
from mimir.errors import StoreError
from mimir.reporting.status import shape
from mimir.store.protocol import ReadOps
from tests.support import small_run
from tests.support.small_run import RUN, SmallRun

PROMISED = {"schema", "run", "status", "outcome", "tasks"}
OF_TASK = {"id", "status", "attempts", "score", "criteria", "tool_calls", "limit"}


async def shaped(run: SmallRun, shown: RunStatus = RunStatus.RUNNING) -> dict[str, object]:
    now = run.clock.now()
    return await run.store.read(lambda reads: shape(reads, RUN, shown, now))


def by_id(found: dict[str, object]) -> dict[str, dict[str, object]]:
    return {task["id"]: task for task in found["tasks"]}


async def test_status_has_all_promised_members(whole):
    found = await shaped(whole, RunStatus.FAILED)
    assert found.keys() >= PROMISED
    assert (found["schema"], found["run"], found["status"], found["outcome"]) == (
        1, RUN, "failed", "failed",
    )  # fmt: skip
    assert all(task.keys() >= OF_TASK for task in found["tasks"])
    assert json.loads(json.dumps(found, allow_nan=False)) == found


async def test_status_lists_tasks_in_plan_order_with_criteria_counts(whole):
    found = await shaped(whole, RunStatus.FAILED)
    assert [(t["id"], t["status"], t["attempts"], t["score"]) for t in found["tasks"]] == [
        ("task-0", "completed", 1, 100.0),
        ("task-1", "completed", 2, 100.0),
        ("task-2", "failed", 1, 0.0),
        ("task-3", "blocked", 0, None),
    ]
    nothing = {"executed": 0, "judged": 0, "unverified": 0, "failed": 0}
    assert [t["criteria"] for t in found["tasks"]] == [
        {**nothing, "judged": 1},
        {**nothing, "executed": 1, "judged": 1},
        {**nothing, "failed": 1},
        nothing,
    ]
    assert [(t["cause"], t["blocked_by"]) for t in found["tasks"][2:]] == [
        ("qc_rejected", ""), ("dependency", "task-2"),
    ]  # fmt: skip


async def test_criteria_are_those_of_the_newest_verdict(store, frozen_clock):
    run = SmallRun(store, frozen_clock)
    await run.create()
    claim = await run.claim("task-1")
    work = await run.work(claim, "x", ("limiter.py",))
    outcomes = await run.check(claim, work, 1, 1, 1)
    verdict = small_run.opinion("FAIL", 40, "", c1="failed", c2="unverified")
    await run.judge(claim, work, outcomes, verdict)
    first = by_id(await shaped(run))["task-1"]["criteria"]
    assert first == {"executed": 0, "judged": 0, "unverified": 1, "failed": 1}


async def test_status_of_an_active_run_has_waiting_tasks_and_no_outcome(store, frozen_clock):
    run = SmallRun(store, frozen_clock)
    await run.create()
    await run.claim("task-2")
    frozen_clock.advance(90)

    found = await shaped(run)

    assert (found["status"], found["outcome"], found["seal"]) == ("running", None, "")
    assert found["elapsed_seconds"] == 90.0
    tasks = by_id(found)
    assert tasks["task-2"]["running"] is True
    assert tasks["task-3"]["waiting_for"] == ["task-2"]
    assert tasks["task-1"]["waiting_for"] == []


async def test_task_whose_lease_is_over_is_not_running(store, frozen_clock):
    run = SmallRun(store, frozen_clock)
    await run.create()
    await run.claim("task-2")
    frozen_clock.advance(301)
    task = by_id(await shaped(run, RunStatus.PAUSED))["task-2"]
    assert (task["status"], task["running"]) == ("worker_executing", False)


async def test_calls_of_a_worker_are_counted_while_it_works(store, frozen_clock):
    run = SmallRun(store, frozen_clock)
    await run.create()
    await run.claim("task-1")
    lane = ids.lane_id(RUN, "task-1", 1, "worker")
    rows = [
        {"id": ids.call_id(lane, seq), "name": "c", "runId": RUN, "lane": lane, "seq": seq, "kind": kind}
        for seq, kind in enumerate(("model", "tool", "tool", "model"))
    ]  # fmt: skip
    other = {**rows[1], "id": "other", "lane": ids.lane_id(RUN, "task-1", 1, "qc")}
    await store.write(lambda ops: ops.upsert("Call", [*rows, other]))

    task = by_id(await shaped(run))["task-1"]

    assert (task["tool_calls"], task["limit"], task["attempts"], task["max_attempts"]) == (
        2,
        6,
        1,
        3,
    )


async def test_calls_of_an_accepted_task_are_its_own_figure_and_those_of_a_failed_one_are_counted(
    whole,
):
    lanes = [ids.lane_id(RUN, task, 1, "worker") for task in ("task-0", "task-2")]
    rows = [
        {"id": ids.call_id(lane, 0), "name": "c", "runId": RUN, "lane": lane, "seq": 0, "kind": "tool"}
        for lane in lanes
    ]  # fmt: skip
    await whole.store.write(lambda ops: ops.upsert("Call", rows))

    tasks = by_id(await shaped(whole, RunStatus.FAILED))

    assert (tasks["task-0"]["tool_calls"], tasks["task-2"]["tool_calls"]) == (3, 1)


async def test_task_without_a_position_is_in_the_status(whole):
    damaged = ids.task_id(RUN, "task-2")
    await whole.store.write(lambda ops: ops.patch("Task", damaged, {"seq": None}))

    assert by_id(await shaped(whole, RunStatus.FAILED))["task-2"]["status"] == "failed"


async def test_paused_run_names_its_reason_and_the_time_it_used(done):
    values = {
        "pauseReason": "budget",
        "pauseMessage": "The budget is used up.",
        "secondsUsed": 12.5,
    }
    await done.store.write(lambda ops: ops.patch("Run", RUN, values))
    found = await shaped(done, RunStatus.PAUSED)
    assert (found["status"], found["outcome"], found["reason"]) == ("paused", "paused", "budget")
    assert (found["message"], found["elapsed_seconds"]) == ("The budget is used up.", 12.5)


async def test_ended_run_shows_its_seal_and_stops_counting_time(done):
    row = await done.store.read(lambda reads: reads.get("Run", RUN))
    before = await shaped(done, RunStatus.COMPLETED)
    done.clock.advance(1000)
    after = await shaped(done, RunStatus.COMPLETED)
    assert before == after
    assert after["seal"] == row["seal"]


async def test_no_attempt_is_read(whole):
    """They hold briefs and answers: in a run of ten thousand tasks, gigabytes."""

    class Watched:
        def __init__(self, reads: ReadOps) -> None:
            self._reads = reads
            self.asked: list[str] = []

        def __getattr__(self, name: str):
            method = getattr(self._reads, name)

            def call(*given, **more):
                self.asked.append(f"{name} {given[0] if given else ''}")
                return method(*given, **more)

            return call

    def work(reads: ReadOps) -> list[str]:
        watched = Watched(reads)
        shape(watched, RUN, RunStatus.FAILED, whole.clock.now())
        return watched.asked

    asked = await whole.store.read(work)

    assert len(asked) == len(set(asked)) <= 5
    assert not [one for one in asked if "Attempt" in one or "Artifact" in one]


async def test_run_that_is_not_there_is_an_error(store, frozen_clock):
    look = partial(shape, run="run-9", shown=RunStatus.PAUSED, now=frozen_clock.now())
    with pytest.raises(StoreError, match="run-9"):
        await store.read(look)
