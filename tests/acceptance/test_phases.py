"""Properties of a task's node in each of ten phases: each name of the contract, current values on Task, a copy on Attempt."""

import json
from collections.abc import Iterable
from pathlib import Path

from mimir.store.schema import PHASES
from tests.support.whole_run import Journey, plan, qc, start, step, travel, worker, writes, wrote

REJECTED = {"auto": "fail", "issues": ["the tone is wrong"], "requiredFixes": ["find another tone"]}
OPTIONAL = {"retryReason", "integratedCommit", "integrationRetries", "chainHash", "chainLength"}
"""Properties of optional parts only if they exist; the chain is its attempt's alone."""


def names(*phases: int) -> set[str]:
    return {name for phase in phases for name in PHASES[phase]} - OPTIONAL


def lacking(row: dict[str, object], wanted: Iterable[str]) -> set[str]:
    return {name for name in wanted if row.get(name) is None}


async def two_attempts(tmp_path: Path, *, second: object) -> Journey:
    parts = [
        worker("a", writes("a.txt", "a\nbad\n"), "The first.", attempt=1),
        worker("a", writes("a.txt", "a\n"), "The second.", attempt=2),
        qc("a", {"verdict": REJECTED, "repeat": "forever"}, attempt=1),
        qc("a", {"verdict": second, "repeat": "forever"}, attempt=2),
    ]
    return await travel(start(tmp_path), plan(step("a", max_retries=1)), parts)


async def test_completed_task_has_the_properties_of_every_phase(tmp_path: Path):
    journey = await two_attempts(tmp_path, second={"auto": "pass"})

    row = journey.facts.tasks["a"]
    assert lacking(row, names(1, 2, 3, 4, 5, 6, 7, 8, 10)) == set()
    assert (row["retryReason"], row["nextAttemptNumber"]) == ("qc_failure", 2)
    assert (row["totalAttempts"], row["retriesNeeded"], row["qcFailuresCount"]) == (2, 1, 1)
    assert row["qcPassedOnAttempt"] == 2
    tools = sum(len(journey.facts.tool_calls("a", n)) for n in (1, 2))
    assert row["totalToolCalls"] == tools == 2
    calls = [c for c in journey.facts.nodes["Call"] if c["task"] == "a" and c["kind"] == "model"]
    assert row["totalTokensUsed"] == sum(c["inputTokens"] + c["outputTokens"] for c in calls)
    assert json.loads(str(row["qcAttemptMetricsJson"])) == {
        "history": [{"attempt": 1, "score": 0.0}, {"attempt": 2, "score": 100.0}],
        "lowestScore": 0.0,
        "highestScore": 100.0,
        "avgScore": 50.0,
    }


async def test_the_history_of_verdicts_grows_with_each(tmp_path: Path):
    journey = await two_attempts(tmp_path, second={"auto": "pass"})

    history = json.loads(str(journey.facts.tasks["a"]["qcVerificationHistoryJson"]))
    assert [(h["attempt"], h["passed"], h["score"]) for h in history] == [
        (1, False, 0.0),
        (2, True, 100.0),
    ]
    assert "the tone is wrong" in history[0]["issues"]
    assert "find another tone" in history[0]["requiredFixes"]


async def test_error_context_of_a_retry_has_issues_and_required_fixes(tmp_path: Path):
    journey = await two_attempts(tmp_path, second={"auto": "pass"})

    context = json.loads(str(journey.facts.tasks["a"]["retryErrorContextJson"]))
    assert context["previousAttempt"] == 1
    assert context["qcFeedback"] == "Not every criterion is met."
    assert "the tone is wrong" in context["issues"]
    assert "find another tone" in context["requiredFixes"]


async def test_failed_task_has_the_properties_of_every_phase(tmp_path: Path):
    journey = await two_attempts(tmp_path, second=REJECTED)

    row = journey.facts.tasks["a"]
    assert lacking(row, names(1, 2, 3, 4, 5, 6, 9)) == set()
    assert (row["totalAttempts"], row["totalQCFailures"]) == (2, 2)
    report = json.loads(str(row["qcFailureReportJson"]))
    assert [entry["attempt"] for entry in report["timeline"]] == [1, 2]
    metrics = json.loads(str(row["qcAttemptMetricsJson"]))
    assert (metrics["lowestScore"], metrics["highestScore"], metrics["avgScore"]) == (0, 0, 0)


async def test_each_attempt_keeps_its_own_copy(tmp_path: Path):
    journey = await two_attempts(tmp_path, second={"auto": "pass"})

    first, second = journey.facts.attempts("a")
    for row in (first, second):
        assert lacking(row, names(2, 3, 4, 5) | {"qcScore", "qcPassed", "qcFeedback"}) == set()
    assert (first["workerOutput"], second["workerOutput"]) == ("The first.", "The second.")
    assert (first["qcPassed"], second["qcPassed"]) == (False, True)
    assert (first["qcScore"], second["qcScore"]) == (0.0, 100.0)
    assert first["retryPreparedAt"]
    assert second["isRetry"]


async def test_a_task_that_passes_at_once_needed_no_retry(tmp_path: Path):
    journey = await travel(start(tmp_path), plan(step("a")), [wrote("a")])

    row = journey.facts.tasks["a"]
    assert lacking(row, names(1, 2, 3, 4, 5, 6, 8, 10)) == set()
    assert (row["qcFailuresCount"], row["retriesNeeded"], row["totalAttempts"]) == (0, 0, 1)
    assert row["isRetry"] is False


async def test_attempt_rejected_without_qc_has_its_worker_properties(tmp_path: Path):
    idle = worker("a", {"calls": [{"tool": "list_files", "arguments": {}}]}, "I did it.")

    journey = await travel(start(tmp_path), plan(step("a", files=("a.txt",))), [idle])

    row = journey.facts.tasks["a"]
    assert (row["workerOutput"], row["workerToolCalls"]) == ("I did it.", 1)
    assert (row["totalToolCalls"], row["totalAttempts"]) == (1, 1)
    assert row["workerTokens"] > 0
