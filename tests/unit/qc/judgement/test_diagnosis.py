import pytest

from mimir.domain.failure import TimelineEntry
from mimir.domain.plan import Plan, Task
from mimir.domain.task_states import Cause, TaskStatus
from mimir.qc.judgement.diagnosis import (
    RECOMMENDATIONS,
    blocked_share,
    failure_report,
    failure_summary,
)


def entry(
    attempt: int, *issues: str, cause: Cause = Cause.CHECK_FAILED, score: float | None = None
):
    return TimelineEntry(attempt=attempt, score=score, cause=cause.value, issues=issues)


def task(id: str, *dependencies: str, minutes: float | None = None) -> Task:
    return Task(
        id=id,
        title=f"Title of {id}",
        prompt="p",
        worker_role="w",
        dependencies=dependencies,
        estimated_minutes=minutes,
    )


def test_failure_report_has_the_complete_timeline():
    timeline = (entry(1, "a", score=40.0), entry(2, "b", score=60.0))

    report = failure_report("t", Cause.CHECK_FAILED, timeline)

    assert report.timeline == timeline
    assert report.cause == "check_failed"


def test_same_trouble_of_several_attempts_is_one_root_cause_named_first():
    report = failure_report(
        "t",
        Cause.CHECK_FAILED,
        (
            entry(1, "The name is wrong.", "Check 'unit' failed after 0.12 s at 0x7f00aa: exit 1"),
            entry(2, "Check 'unit' failed after 3.40 s at 0x55bbcc: exit 1"),
            entry(3, "Check 'unit' failed after 1.01 s at 0x11: exit 2"),
        ),
    )

    assert report.root_causes == (
        "check_failed (attempts 1, 2, 3): Check 'unit' failed after 0.12 s at 0x7f00aa: exit 1",
        "check_failed (attempt 1): The name is wrong.",
    )


def test_equal_text_under_another_cause_is_another_root_cause():
    report = failure_report(
        "t",
        Cause.QC_REJECTED,
        (
            entry(1, "It fails.", cause=Cause.INTEGRATION),
            entry(2, "It fails.", cause=Cause.QC_REJECTED),
        ),
    )

    assert len(report.root_causes) == 2


def test_attempt_without_an_issue_is_in_the_failure_report():
    assert failure_report(
        "t", Cause.WORKER_DIED, (entry(1, cause=Cause.WORKER_DIED),)
    ).root_causes == ("worker_died (attempt 1): No issue was named.",)


def test_long_and_broken_messages_become_one_short_line():
    report = failure_report("t", Cause.CHECK_FAILED, (entry(1, "x\ny " * 500),))

    assert "\n" not in report.root_causes[0]
    assert len(report.root_causes[0]) < 400


@pytest.mark.parametrize("cause", list(Cause))
def test_every_cause_has_its_recommendation(cause):
    report = failure_report("t", cause, (entry(1, "x", cause=cause),))

    assert report.recommendations[0] == RECOMMENDATIONS[cause]


def test_recommendations_follow_the_end_then_the_way_to_it():
    report = failure_report(
        "t",
        Cause.NO_PROGRESS,
        (
            entry(1, "x", cause=Cause.CHECK_FAILED, score=10.0),
            entry(2, "x", cause=Cause.CHECK_FAILED, score=70.0),
        ),
        tripped=("", "tool_calls: 6 of 6"),
    )

    assert report.recommendations[:2] == (
        RECOMMENDATIONS[Cause.NO_PROGRESS],
        RECOMMENDATIONS[Cause.CHECK_FAILED],
    )
    assert "tool_calls: 6 of 6" in report.recommendations[2]
    assert "rising" in report.recommendations[3]


PLAN = Plan(
    title="p",
    tasks=(
        task("a", minutes=10),
        task("b", "a", minutes=20),
        task("c", "b", minutes=30),
        task("d", minutes=40),
        task("e", minutes=20),
    ),
)
STATUSES = {
    "a": TaskStatus.FAILED,
    "b": TaskStatus.BLOCKED,
    "c": TaskStatus.BLOCKED,
    "d": TaskStatus.COMPLETED,
    "e": TaskStatus.FAILED,
}


def reports():
    return {
        id: failure_report(id, Cause.CHECK_FAILED, (entry(1, f"{id} is wrong."),))
        for id in ("a", "e")
    }


def test_failure_summary_has_blocking_and_blocked_tasks_and_the_share():
    summary = failure_summary(PLAN, STATUSES, reports())

    assert summary is not None
    assert summary.blocking_tasks == ("a",)
    assert summary.blocked_tasks == ("b", "c")
    assert summary.project_delay == pytest.approx(50 / 120)
    assert summary.risk_level == "medium"


def test_next_actions_begin_with_the_task_that_unblocks_most():
    summary = failure_summary(PLAN, STATUSES, reports())

    assert summary is not None
    assert summary.next_actions[0].startswith("a: ")
    assert "frees 2 blocked" in summary.next_actions[0]
    assert summary.next_actions[1].startswith("e: ")
    assert "--from" in summary.next_actions[-1]
    assert summary.lessons_learned == (
        "a (Title of a) ended check_failed after 1 attempt(s). Mostly: check_failed (attempt 1): a is wrong.",
        "e (Title of e) ended check_failed after 1 attempt(s). Mostly: check_failed (attempt 1): e is wrong.",
    )


def test_run_without_failure_has_no_summary():
    assert failure_summary(PLAN, dict.fromkeys("abcde", TaskStatus.COMPLETED), {}) is None


@pytest.mark.parametrize(
    ("statuses", "risk"),
    [
        ({"e": TaskStatus.FAILED}, "low"),
        ({"b": TaskStatus.FAILED, "c": TaskStatus.BLOCKED}, "medium"),
        (
            {
                "a": TaskStatus.FAILED,
                "b": TaskStatus.BLOCKED,
                "c": TaskStatus.BLOCKED,
                "d": TaskStatus.BLOCKED,
            },
            "high",
        ),
    ],
)
def test_risk_follows_from_the_blocked_share(statuses, risk):
    summary = failure_summary(PLAN, statuses, {})

    assert summary is not None
    assert summary.risk_level == risk


@pytest.mark.parametrize(
    ("minutes", "expected"),
    [((10, 30), 0.75), ((None, None), 0.5), ((10, None), 0.5), ((0, 0), 0.5)],
)
def test_blocked_share_counts_minutes_or_their_default(minutes, expected):
    plan = Plan(title="p", tasks=(task("a", minutes=minutes[0]), task("b", minutes=minutes[1])))

    assert blocked_share(plan, ["b"]) == expected
