"""Claims of rows are compared with the sealed records: a "completed" without evidence is found."""

import pytest

from mimir.domain.task_states import RunStatus
from tests.support import small_history, small_run, small_runs
from tests.support.small_run import RUN, SmallRun
from tests.support.tampering import doctored, in_json, patch, problems

ONE = f"{RUN}/task-1/2"
"""The accepted attempt of `task-1`."""


CLAIMS = {
    "score of the task": patch("Task", f"{RUN}/task-1", qcScore=80.0),
    "score of the attempt": patch("Attempt", ONE, qcScore=80.0),
    "criteria decided by checks": patch("Task", f"{RUN}/task-1", criteriaExecuted=2),
    "open criteria": patch("Task", f"{RUN}/task-1", criteriaOpen=1),
    "files": patch("Task", f"{RUN}/task-1", filesChanged=["limiter.py", "other.py"]),
    "counted checks": patch("Task", f"{RUN}/task-1", passedChecks=[]),
    "accepted attempt": patch("Task", f"{RUN}/task-1", acceptedAttempt=1),
    "commit": patch("Task", f"{RUN}/task-1", integratedCommit=small_history.object_id("commit base")),
    "merged tree": patch("Task", f"{RUN}/task-1", integratedTree=small_history.object_id("tree base")),
    "status": patch("Task", f"{RUN}/task-1", status="failed"),
    "status of the attempt": patch("Attempt", ONE, status="qc_passed"),
    "exit code in the attempt": in_json(
        "Attempt", ONE, "checksJson", lambda outcomes: outcomes[0]["after"].update(exit_code=3)
    ),
    "an outcome less": in_json("Attempt", ONE, "checksJson", lambda outcomes: outcomes.clear()),
    "reasons of the judgement": in_json(
        "Attempt", ONE, "judgementJson", lambda judgement: judgement.update(reasons=["x"])
    ),
    "quote of the judgement": in_json(
        "Attempt", ONE, "judgementJson", lambda j: j["criteria"][0].update(quote="something else")
    ),
    "tree of the deliverable": in_json(
        "Attempt", ONE, "workJson", lambda work: work.update(tree="0" * 40)
    ),
    "changed paths of the deliverable": in_json(
        "Attempt", ONE, "workJson", lambda work: work.update(changed=["a.py"])
    ),
    "no deliverable": patch("Attempt", ONE, workJson=None),
    "score of the verdict": patch("Verdict", f"{ONE}/verdict/1", score=80.0),
    "judgement of the verdict": in_json(
        "Verdict", f"{ONE}/verdict/1", "judgementJson", lambda j: j.update(score="90")
    ),
    "seal": patch("Run", RUN, seal="0" * 64),
    "no seal": patch("Run", RUN, seal=None),
    "outcome": patch("Run", RUN, outcome="failed"),
    "head": patch("Run", RUN, headTree=small_history.object_id("tree base")),
    "no final commit": patch("Run", RUN, finalCommit=None),
    "a task less": lambda ops: ops.delete("Task", [f"{RUN}/task-0"]),
    "an attempt less": lambda ops: ops.delete("Attempt", [f"{RUN}/task-1/1"]),
}  # fmt: skip


@pytest.mark.parametrize("name", CLAIMS)
async def test_changed_claim_of_a_row_is_found(done, name):
    found = await doctored(done, CLAIMS[name])
    assert any(problem.startswith((f"{RUN}/task-", f"{RUN}: ", f"{RUN}/gate")) for problem in found)


async def test_failed_task_called_completed_is_found(whole):
    found = await doctored(whole, patch("Task", f"{RUN}/task-2", status="completed"))
    assert f"{RUN}/task-2: its status is 'completed', but its events say 'failed'" in found
    assert f"{RUN}/task-2: it is completed, but no sealed verdict of attempt 0 backs it" in found


async def test_task_completed_on_a_verdict_that_did_not_pass_is_found(whole):
    found = await doctored(
        whole,
        patch("Task", f"{RUN}/task-2", status="completed", acceptedAttempt=1, qcPassed=True),
    )
    assert (
        f"{RUN}/task-2/1#00001: {RUN}/task-2 is completed, but this verdict did not pass it"
        in found
    )


async def test_score_of_a_failed_task_is_held_against_its_verdict(whole):
    found = await doctored(whole, patch("Task", f"{RUN}/task-2", qcScore=90.0))
    assert found == (
        f"{RUN}/task-2: property 'qcScore' differs from the value that {RUN}/task-2/1#00001 sealed",
    )


async def test_criteria_of_a_failed_task_are_held_against_its_verdict(whole):
    found = await doctored(
        whole, patch("Task", f"{RUN}/task-2", criteriaFailed=0, criteriaJudged=1)
    )
    assert [problem.rpartition(" differs from")[0] for problem in found] == [
        f"{RUN}/task-2: property 'criteriaJudged'", f"{RUN}/task-2: property 'criteriaFailed'",
    ]  # fmt: skip


async def test_seal_from_a_report_is_compared(done):
    assert await problems(done, "f" * 64) != ()
    row = await done.store.read(lambda reads: reads.get("Run", RUN))
    assert await problems(done, f" {row['seal'].upper()}\n") == ()


async def test_seal_of_a_run_that_has_none_yet_is_refused(store, frozen_clock):
    run = SmallRun(store, frozen_clock)
    await run.create()
    assert await problems(run, "f" * 64) == (f"{RUN}: it has no seal yet; it is 'running'",)


async def test_seal_in_the_final_commit_is_compared(done):
    commit = small_history.object_id("commit final")
    tree, message = done.history.commits[commit]
    done.history.commits[commit] = (tree, message.replace("Mimir-Seal: ", "Mimir-Seal: 0"))
    assert await problems(done) == (f"{RUN}: the seal in commit {commit[:12]} is not the run's",)


# Runs that must never have been called completed


async def test_completed_run_with_a_red_gate_is_found(store, frozen_clock):
    run = SmallRun(store, frozen_clock, plan=small_runs.TWO)
    await run.create()
    await small_runs.answered(run, "task-0")
    await small_runs.retried(run)
    red = [{"task": "task-1", "check": "unit", "merge": "task-1"}]
    await run.gate(("task-1", 1), ("task-1", 1), red=red)
    await run.end(RunStatus.COMPLETED)

    found = await problems(run)

    assert f"{RUN}/gate#00002: the run is 'completed', but this gate is red" in found
    assert any("this check is red at its final gate" in problem for problem in found)


async def test_completed_run_whose_gate_left_a_check_out_is_found(store, frozen_clock):
    run = SmallRun(store, frozen_clock, plan=small_runs.TWO)
    await run.create()
    await small_runs.answered(run, "task-0")
    await small_runs.retried(run)
    await run.gate()
    await run.end(RunStatus.COMPLETED)

    assert await problems(run) == (
        f"{RUN}/gate#00000: this gate did not run check 'unit' of task-1",
    )


async def test_task_completed_in_spite_of_a_red_check_on_its_merged_tree_is_found(
    store, frozen_clock
):
    run = SmallRun(store, frozen_clock, plan=small_runs.TWO)
    await run.create()
    claim = await run.claim("task-1")
    work = await run.work(claim, "x", ("limiter.py",))
    outcomes = await run.check(claim, work, 1, 0)
    verdict = small_run.opinion("PASS", 92, "", c1="passed", c2="passed")
    ruled = await run.judge(claim, work, outcomes, verdict)
    await run.complete(claim, work, ruled, merged=(1, 1))

    assert await problems(run) == (
        f"{RUN}/task-1/1#00005: {RUN}/task-1 is completed, but this check is red on its merged tree",
    )


async def test_run_called_completed_with_an_open_criterion_is_found(store, frozen_clock):
    run = SmallRun(store, frozen_clock, plan=small_runs.TWO)
    await run.create()
    await small_runs.answered(run, "task-0")
    claim = await run.claim("task-1")
    work = await run.work(claim, "x", ("limiter.py",))
    outcomes = await run.check(claim, work, 1, 0)
    verdict = small_run.opinion("PASS", 92, "", c1="passed", c2="unverified")
    ruled = await run.judge(claim, work, outcomes, verdict)
    await run.complete(claim, work, ruled)
    await run.gate(("task-1", 0))
    await run.end(RunStatus.COMPLETED)

    assert await problems(run) == (
        f"{RUN}/task-1/1#00003: the run is 'completed', but criterion 'c2' is 'unverified'",
    )
