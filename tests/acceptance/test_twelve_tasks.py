"""A failing task stops only its descendants; the run reports it, with the next steps of the user."""

from dataclasses import replace
from pathlib import Path

import pytest

from mimir.domain.event import EventKind
from mimir.planning import parser
from tests.support import invariants
from tests.support.whole_run import (
    FAIL,
    Journey,
    check,
    holds,
    plan,
    qc,
    start,
    step,
    travel,
    worker,
    writes,
    wrote,
)

WALK = Path(__file__).parents[1] / "support" / "twelve_tasks" / "plan.md"
GOOD = ("task-0", "a", "b", "c", "d", "f1", "f2", "f3", "f4")
TEXTS = {"task-0": "ready", "a": "alpha", "b": "beta", "c": "right", "d": "delta"} | {
    f"f{n}": f"fan{n}" for n in range(1, 5)
}
REJECTED = {"auto": "fail", "issues": ["the tone is wrong"], "requiredFixes": ["find another tone"]}


def twelve():
    """The twelve tasks, from their markdown; the checks of `bad` pass, so that QC alone rejects it."""
    parsed = parser.parse_document(WALK)
    assert not parsed.findings
    tasks = (
        replace(t, checks=(holds("bad.txt", "try"),)) if t.id == "bad" else t
        for t in parsed.plan.tasks
    )
    return replace(parsed.plan, tasks=tuple(tasks))


def play():
    attempts = [
        worker("bad", writes("bad.txt", f"try {n}\n"), f"This is try {n}.", attempt=n)
        for n in (1, 2, 3)
    ]
    good = [
        worker(
            id, writes(f"{'env' if id == 'task-0' else id}.txt", f"{TEXTS[id]}\n"), "It is done."
        )
        for id in GOOD
    ]
    return [*attempts, *good, qc("bad", {"verdict": REJECTED, "repeat": "forever"})]


async def test_a_task_that_never_passes_blocks_its_descendants_and_nothing_else(tmp_path: Path):
    journey = await travel(start(tmp_path), twelve(), play(), workers=4)

    assert journey.ending.exit_code == 1
    assert journey.ending.outcome == "failed"
    bad = {"bad": "failed", "e1": "blocked", "e2": "blocked"}
    assert journey.statuses == dict.fromkeys(GOOD, "completed") | bad
    assert journey.facts.files.keys() == {"README.md", "env.txt"} | {f"{t}.txt" for t in GOOD[1:]}
    assert len(journey.facts.attempts("bad")) == 3
    assert all(len(journey.facts.attempts(task)) == 1 for task in GOOD)
    assert not journey.facts.attempts("e1")
    assert journey.facts.branches.keys() == {
        f"mimir/{journey.ending.run}",
        f"mimir/{journey.ending.run}-bad-3",
    }
    _assert_failure_report(journey)
    _assert_impact(journey)
    assert invariants.broken(journey.facts) == []


def _assert_failure_report(journey: Journey) -> None:
    failure = journey.failure("bad")
    assert failure["cause"] == "qc_rejected"
    assert [(e["attempt"], e["score"], e["cause"]) for e in failure["timeline"]] == [
        (n, 0.0, "qc_rejected") for n in (1, 2, 3)
    ]
    assert all("the tone is wrong" in entry["issues"] for entry in failure["timeline"])
    assert any("the tone is wrong" in cause for cause in failure["root_causes"])
    assert "attempts 1, 2, 3" in failure["root_causes"][0]
    assert failure["recommendations"]
    for words in ("Failure report of `bad`", "timeline", "root causes", "recommendations"):
        assert words in journey.report


def _assert_impact(journey: Journey) -> None:
    impact = journey.report_json["impact"]
    assert impact["blocking_tasks"] == ["bad"]
    assert impact["blocked_tasks"] == ["e1", "e2"]
    assert impact["project_delay"] == pytest.approx(2 / 12)
    assert impact["risk_level"] in ("low", "medium", "high")
    assert impact["next_actions"]
    assert impact["lessons_learned"]
    assert "17 % of the plan" in journey.report


async def test_brief_of_a_retry_has_the_issues_of_the_rejected_attempt(tmp_path: Path):
    told = worker(
        "a",
        writes("a.txt", "a\n"),
        "I did what the reviewer asked.",
        attempt=2,
        when={"brief_has": ["find another tone", "the tone is wrong", "It is not good."]},
    )
    parts = [
        worker("a", writes("a.txt", "a\nbad\n"), "It is not good.", attempt=1),
        told,
        qc("a", {"verdict": REJECTED, "repeat": "forever"}, attempt=1),
    ]

    journey = await travel(start(tmp_path), plan(step("a", max_retries=1)), parts)

    assert journey.statuses == {"a": "completed"}
    assert journey.ending.exit_code == 0
    assert journey.facts.tasks["a"]["qcPassedOnAttempt"] == 2
    [retried] = journey.facts.events_of_kind(EventKind.TASK_RETRIED)
    assert retried.data["reason"] == "qc_rejected"
    assert invariants.broken(journey.facts) == []


async def test_brief_of_a_retry_has_answer_diff_check_output_score_and_fixes(tmp_path: Path):
    """Answer, diff, output of the check, the score, and each fix in a numbered list."""
    script = "grep -q '^a$' a.txt || { echo expected a and got something else; exit 3; }"
    known = [
        "All is well.",
        "+wrong",
        "expected a and got something else",
        "Attempt 1: score 0",
        "## Required fixes",
        "1. ",
        "Make check 'unit' pass",
    ]
    parts = [
        worker("a", writes("a.txt", "wrong\n"), "All is well.", attempt=1),
        worker("a", writes("a.txt", "a\n"), "Mended.", attempt=2, when={"brief_has": known}),
    ]
    task = step("a", max_retries=1, checks=(check("sh", "-c", script),))

    journey = await travel(start(tmp_path), plan(task), parts)

    assert journey.statuses == {"a": "completed"}


async def test_no_retry_means_one_attempt(tmp_path: Path):
    parts = [wrote("a"), wrote("b"), qc("a", FAIL)]

    journey = await travel(start(tmp_path), plan(step("a"), step("b"), step("c", "a")), parts)

    assert journey.statuses == {"a": "failed", "b": "completed", "c": "blocked"}
    assert len(journey.facts.attempts("a")) == 1
    assert len(journey.failure("a")["timeline"]) == 1
    assert not journey.facts.events_of_kind(EventKind.TASK_RETRIED)
    assert journey.ending.exit_code == 1


async def test_equal_results_of_two_attempts_end_the_task_early(tmp_path: Path):
    parts = [wrote("a"), qc("a", FAIL)]

    journey = await travel(start(tmp_path), plan(step("a", max_retries=5)), parts)

    assert journey.statuses == {"a": "failed"}
    assert journey.failure("a")["cause"] == "no_progress"
    assert len(journey.facts.attempts("a")) == 2
