"""The computed result of a run; words of models are quoted, never believed."""

from dataclasses import replace
from functools import partial

import pytest

from mimir.domain.criteria_counts import CriteriaCounts, count_criteria
from mimir.domain.event import EventKind
from mimir.domain.task_states import Cause, RunStatus, TaskStatus
from mimir.errors import StoreError, UsageError
from mimir.reporting.render.numbers import points, span
from mimir.reporting.summary.decisions import claim_of
from mimir.reporting.summary.run_data import without_places
from mimir.reporting.summary.run_loader import gather
from mimir.reporting.summary.summary import RunSummary, summarise
from mimir.store.operations import claims, runs
from tests.support import small_run, small_runs
from tests.support.small_run import RUN, SmallRun


async def summary(run: SmallRun, outcome: RunStatus | None = None) -> RunSummary:
    return summarise(await run.store.read(partial(gather, run=RUN)), outcome)


def decided(told: RunSummary, kind: str) -> list[tuple[str, int, tuple[str, ...]]]:
    return [(d.task, d.attempt, d.detail) for d in told.decisions if d.kind == kind]


# Criteria


def test_executed_and_judged_are_counted_apart():
    given = [
        ("passed", "executed"),
        ("passed", "executed"),
        ("passed", "judged"),
        ("failed", "executed"),
        ("unverified", "judged"),
        ("passed", "somehow"),
    ]
    found = count_criteria(given)
    assert found == CriteriaCounts(executed=2, judged=1, unverified=2, failed=1)
    assert found.open == 3


# Tasks


async def test_completed_task_shows_the_accepted_attempt(whole):
    line = (await summary(whole)).tasks[1]
    assert (line.status, line.attempts, line.attempts_granted) == ("completed", 2, 3)
    assert (line.tool_calls, line.limit, line.score) == (3, 6, 100.0)
    assert line.counts == CriteriaCounts(executed=1, judged=1)
    assert (line.files, line.in_result) == (("limiter.py",), True)
    assert line.answer == f"{RUN}/task-1/2/answer"
    assert line.feedback == "Refills, and is locked."
    assert line.seconds == 61.0
    assert [a.cause for a in line.history] == ["check_failed", ""]
    assert line.history[0].model_score == 40.0


async def test_failed_task_has_its_files_and_is_not_in_the_result(whole):
    line = (await summary(whole)).tasks[2]
    assert (line.status, line.cause, line.score) == ("failed", "qc_rejected", 0.0)
    assert (line.files, line.in_result, line.commit) == (("middleware.py",), False, "")
    assert line.counts == CriteriaCounts(failed=1)


async def test_task_that_never_started_has_no_score_and_no_time(whole):
    line = (await summary(whole)).tasks[3]
    assert (line.status, line.blocked_by, line.attempts) == ("blocked", "task-2", 0)
    assert (line.score, line.seconds, line.criteria) == (None, None, ())


# The run


async def test_failed_run_names_the_cause_and_its_blocked_tasks(whole):
    told = await summary(whole)
    assert (told.outcome, told.exit_code) == (RunStatus.FAILED, 1)
    assert told.because == "Of 4 tasks 2 completed, 1 failed and 1 blocked."
    assert told.impact
    assert told.impact.blocking_tasks == ("task-2",)
    assert told.impact.blocked_tasks == ("task-3",)
    assert told.impact.project_delay == 0.25
    (report,) = told.failures
    assert (report.task, report.cause) == ("task-2", "qc_rejected")
    assert [(e.attempt, e.score, e.issues) for e in report.timeline] == [
        (1, 0.0, ("It does not refill.",))
    ]
    assert report.root_causes
    assert report.recommendations


async def test_completed_run_has_no_failure_summary(done):
    told = await summary(done)
    assert (told.outcome, told.exit_code, told.impact, told.failures) == (
        RunStatus.COMPLETED,
        0,
        None,
        (),
    )
    assert told.branch == "mimir/run-1"
    assert told.totals.by_status == {"completed": 2}
    assert told.totals.attempts == 3


async def test_outcome_of_a_run_that_is_about_to_end_can_be_handed_in(store, frozen_clock):
    run = SmallRun(store, frozen_clock)
    await run.create()
    assert (await summary(run)).outcome is RunStatus.RUNNING
    told = await summary(run, RunStatus.FAILED)
    assert (told.outcome, told.exit_code) == (RunStatus.FAILED, 1)


async def test_calls_and_tokens_of_all_agents_but_the_reporters_are_added_up(done):
    def work(ops):
        for role, tokens in (
            ("worker", 300),
            ("qc", 200),
            ("agentinator", 50),
            ("pm_reporter", 999),
        ):
            runs.append_event(
                ops, RUN, EventKind.MODEL_CALLED, data={"role": role, "tokens": tokens}
            )

    await done.store.write(work)
    totals = (await summary(done)).totals
    assert (totals.model_calls, totals.tokens) == (3, 550)


async def test_red_gate_is_why_the_run_failed(store, frozen_clock):
    run = SmallRun(store, frozen_clock, plan=small_runs.TWO)
    await run.create()
    await small_runs.answered(run, "task-0")
    await small_runs.retried(run)
    await run.gate(
        ("task-1", 1), ("task-1", 1), red=[{"task": "task-1", "check": "unit", "merge": ""}]
    )
    words = "Check 'unit' of task-1 was passed, and is red on the final tree."
    await run.end(RunStatus.FAILED, red=[words])

    told = await summary(run)

    assert told.because == "The final gate is red: checks fail on the final tree."
    assert told.proof.gate
    assert (told.proof.gate.red, told.proof.gate.runs) == ((words,), 2)
    assert told.impact is None


async def test_planning_run_without_tasks_is_summed_up_too(store, frozen_clock):
    new = runs.NewRun(
        id="plan-1", kind="plan", project_id="p", project_name="api", name="Add it", request="Add it",
        plan=None, plan_path="", settings={}, engine_version="0.1.0", base_commit="", base_tree="",
    )  # fmt: skip
    await store.write(partial(runs.create, new=new))
    told = summarise(await store.read(partial(gather, run="plan-1")))
    assert (told.kind, told.title, told.tasks, told.impact) == ("plan", "Add it", (), None)


async def test_run_that_is_not_there_is_a_usage_error(whole):
    with pytest.raises(UsageError, match="run-7"):
        await whole.store.read(partial(gather, run="run-7"))


async def test_attempt_that_cannot_be_read_is_named(whole):
    doctor = {"workJson": '{"answer": 3}'}
    await whole.store.write(lambda ops: ops.patch("Attempt", f"{RUN}/task-1/2", doctor))
    with pytest.raises(StoreError, match="workJson"):
        await summary(whole)


# Proof


async def test_proof_holds_each_check_with_its_runs_as_they_were_sealed(whole):
    told = (await summary(whole)).proof
    (check,) = told.checks
    assert (check.task, check.attempt, check.check, check.state, check.kind) == (
        "task-1", 2, "unit", "passed", "flip",
    )  # fmt: skip
    assert [(run.phase, run.ended, run.record) for run in check.runs] == [
        ("before", "exit 1", f"{RUN}/task-1/2#00001"),
        ("after", "exit 0", f"{RUN}/task-1/2#00002"),
    ]
    assert [(m.task, m.of, m.run.ended, m.run.record) for m in told.merged] == [
        ("task-1", "task-1", "exit 0", f"{RUN}/task-1/2#00004")
    ]
    assert [(v.task, v.passed) for v in told.verdicts] == [
        ("task-0", True), ("task-1", True), ("task-2", False),
    ]  # fmt: skip
    assert told.gate
    assert (told.gate.record, told.gate.runs, told.gate.red) == (f"{RUN}/gate#00001", 1, ())
    assert told.records == 16


# Decisions


async def test_trip_is_a_decision_of_the_summary(whole):
    assert decided(await summary(whole), "breaker") == [
        ("task-1", 1, ("all 6 tool calls are used",))
    ]


async def test_false_claim_of_success_is_quoted_in_the_summary(whole):
    assert ("task-1", 1, ("All tests pass.", "check unit: exit 1")) in decided(
        await summary(whole), "claim"
    )


async def test_unsupported_citation_is_in_the_summary(whole):
    assert ("task-1", 1, ('[call:7] "3 passed": there was no call 7',)) in decided(
        await summary(whole), "claim"
    )


async def test_retry_is_in_the_summary_with_its_reason(whole):
    ((task, attempt, issues),) = decided(await summary(whole), "retry")
    assert (task, attempt) == ("task-1", 1)
    assert any(issue.startswith("Check 'unit' failed") for issue in issues)


async def test_left_out_files_and_merges_are_in_the_summary(whole):
    told = await summary(whole)
    assert decided(told, "left_out") == [("task-1", 1, ("notes.txt",))]
    assert decided(told, "merged") == [("task-1", 2, ())]


async def test_overruled_qc_answer_is_in_the_summary(store, frozen_clock):
    run = SmallRun(store, frozen_clock)
    await run.create()
    claim = await run.claim("task-1")
    work = await run.work(claim, "x", ("limiter.py",))
    outcomes = await run.check(claim, work, 1, 1, 1)
    verdict = small_run.opinion("PASS", 95, "Fine.", c1="passed", c2="passed")
    await run.judge(claim, work, outcomes, verdict)

    ((task, attempt, reasons),) = decided(await summary(run), "overruled")

    assert (task, attempt) == ("task-1", 1)
    assert "The required check 'unit' failed." in reasons


async def test_decisions_of_the_run_follow_those_of_its_tasks(whole):
    def work(ops):
        def emit(kind, **data):
            runs.append_event(
                ops, RUN, kind, task=data.pop("task", ""), attempt=data.pop("attempt", 0), data=data
            )

        emit(EventKind.RUN_RESUMED)
        emit(EventKind.RUN_RESUMED)
        emit(EventKind.LANE_CUT, lane="run-1/task-1/1/worker", role="worker")
        emit(EventKind.LANE_CUT, lane="run-1/plan/1/pm_reporter", role="pm_reporter")
        emit(EventKind.PREAMBLE_MADE, role="Engineer", origin="template", why="It was cut short.")
        emit(EventKind.PREAMBLE_MADE, role="Reviewer", origin="made")
        emit(
            EventKind.TOOL_DENIED,
            task="task-1",
            attempt=1,
            role="worker",
            tool="write_file",
            title="write_file b",
        )
        emit(
            EventKind.TASK_RETRIED,
            task="task-1",
            attempt=2,
            reason="integration",
            issues=["a clash"],
        )
        emit(EventKind.APPLIED, paths=["limiter.py"])
        emit(EventKind.APPLIED, conflicts=["limiter.py"])
        emit(EventKind.WARNING, message="Submodules stay as they are.")

    await whole.store.write(work)
    told = await summary(whole)

    assert decided(told, "resumed")[0][:2] == ("", 0)
    assert (
        next(d.text for d in told.decisions if d.kind == "resumed")
        == "The run was resumed 2 times."
    )
    assert decided(told, "lane_cut") == [("", 0, ("run-1/task-1/1/worker",))]
    assert decided(told, "preamble") == [("", 0, ("Engineer", "It was cut short."))]
    assert decided(told, "denied") == [("task-1", 1, ("write_file b",))]
    assert decided(told, "integration") == [("task-1", 2, ("a clash",))]
    assert [d.detail for d in told.decisions if d.kind == "applied"] == [("limiter.py",)] * 2
    assert told.warnings == ("Submodules stay as they are.",)


async def test_run_without_a_sandbox_is_a_warning(done):
    await done.store.write(lambda ops: ops.patch("Run", RUN, {"sandbox": "none"}))
    assert any("without a sandbox" in text for text in (await summary(done)).warnings)


async def test_finding_of_a_check_and_its_own_authorship_are_warnings(whole):
    data = await whole.store.read(partial(gather, run=RUN))
    task = next(task for task in data.tasks if task.id == "task-1")
    chain = task.attempts[1].evidence
    sealed = chain[2].body.replace('"findings":[]', '"findings":["It proves nothing."]')
    sealed = sealed.replace('"selfAuthored":false', '"selfAuthored":true')
    evidence = (*chain[:2], replace(chain[2], body=sealed), *chain[3:])
    attempts = (task.attempts[0], replace(task.attempts[1], evidence=evidence))

    told = summarise(data, tasks=[replace(task, attempts=attempts)]).warnings

    assert "Check 'unit' of task-1: It proves nothing." in told
    assert "Check 'unit' of task-1: the attempt that it judges wrote its files." in told


@pytest.mark.parametrize(
    ("answer", "claim"),
    [
        ("I wrote it. All tests pass!", "All tests pass!"),
        ("The suite is green", "The suite is green"),
        ("The tests do not pass yet.", ""),
        ("I could not finish. 3 tests fail.", ""),
        ("", ""),
        ("### QC VERDICT: PASS\nscore 100", "### QC VERDICT: PASS"),
        ("done " * 100, f"{('done ' * 100)[:200]}…"),
    ],
)
def test_first_sentence_that_claims_success_is_found(answer, claim):
    assert claim_of(answer) == claim


# How to go on


async def test_next_steps_fit_the_outcome(whole, done):
    async def commands(run: SmallRun, status: RunStatus) -> list[str]:
        data = await run.store.read(partial(gather, run=RUN))
        return [step.command for step in summarise(replace(data, status=status)).next_steps]

    seal = (await done.store.read(lambda reads: reads.get("Run", RUN)))["seal"]
    assert await commands(done, RunStatus.COMPLETED) == [
        "mimir apply run-1", f"mimir verify run-1 --seal {seal}", "mimir status run-1",
    ]  # fmt: skip
    assert await commands(done, RunStatus.PAUSED) == [
        "mimir resume run-1", "mimir verify run-1", "mimir status run-1",
    ]  # fmt: skip
    assert (await commands(whole, RunStatus.FAILED))[0] == (
        "mimir execute chains/rate-limiter/chain-output.md"
    )


async def test_every_status_has_a_sentence(done):
    data = await done.store.read(partial(gather, run=RUN))
    said = {status: summarise(replace(data, status=status)).because for status in RunStatus}
    assert len(set(said.values())) == len(RunStatus)


async def test_cancelled_and_dead_tasks_are_summarised_without_a_verdict(store, frozen_clock):
    run = SmallRun(store, frozen_clock)
    await run.create()
    claim = await run.claim("task-1")
    await run.fail(claim, Cause.WORKER_DIED, ["The process died three times."])
    await store.write(lambda ops: claims.cancel(ops, RUN))

    told = await summary(run)

    assert [line.status for line in told.tasks] == [
        TaskStatus.CANCELLED, TaskStatus.FAILED, TaskStatus.CANCELLED, TaskStatus.CANCELLED,
    ]  # fmt: skip
    (report,) = told.failures
    assert (report.cause, report.timeline[0].score) == ("worker_died", None)


# Numbers


@pytest.mark.parametrize(
    ("seconds", "text"),
    [(None, "—"), (0.04, "0.0 s"), (9.94, "9.9 s"), (59.4, "59 s"), (59.6, "1 min 00 s"), (185, "3 min 05 s"),
     (3599.7, "1 h 00 min"), (7620, "2 h 07 min")],
)  # fmt: skip
def test_time_is_written_the_same_way_everywhere(seconds, text):
    assert span(seconds) == text


@pytest.mark.parametrize(
    ("score", "text"),
    [
        (None, "—"),
        (100.0, "100"),
        (200 / 3, "66.66"),
        (0.0, "0"),
        (79.999, "79.99"),
        (0.29, "0.29"),
    ],
)
def test_score_is_not_rounded_to_a_better_one(score, text):
    assert points(score) == text


@pytest.mark.parametrize(
    ("said", "kept"),
    [
        ("The store /a/b c/.mimir/mimir.db is gone", "The store .mimir/mimir.db is gone"),
        ("GET /api failed in /a b/.mimir/x", "GET /api failed in .mimir/x"),
        ("at '/.mimir/x'", "at '.mimir/x'"),
        ("The store /a/b/.mimir/mimir.db is gone", "The store .mimir/mimir.db is gone"),
        ("GET /api/v1/users", "GET /api/v1/users"),
        ("src/.mimir/x", "src/.mimir/x"),
    ],
)
def test_place_of_the_store_is_left_out(said, kept):
    assert without_places(said) == kept
