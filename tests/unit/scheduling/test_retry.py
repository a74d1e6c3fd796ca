import pytest

from mimir.domain.task_states import Cause
from mimir.scheduling.retry import RetryDecision, RetryInput, decide


def retry_input(cause: Cause = Cause.QC_REJECTED, **more: object) -> RetryInput:
    given = {
        "cause": cause,
        "judged_failures": 1,
        "max_retries": 2,
        "integration_retries": 0,
        **more,
    }
    return RetryInput(**given)  # type: ignore[arg-type]


@pytest.mark.parametrize(("failures", "again"), [(1, True), (2, True), (3, False), (4, False)])
def test_attempts_are_max_retries_and_one(failures: int, again: bool):
    assert decide(retry_input(judged_failures=failures)) == RetryDecision(
        retry=again, cause=Cause.QC_REJECTED
    )


def test_no_retries_means_exactly_one_attempt():
    assert decide(retry_input(max_retries=0)) == RetryDecision(retry=False, cause=Cause.QC_REJECTED)


@pytest.mark.parametrize(
    "cause",
    [Cause.CRITERIA_IMPOSSIBLE, Cause.UNVERIFIABLE, Cause.QC_UNAVAILABLE, Cause.WORKER_DIED],
)
def test_cause_that_a_retry_cannot_repair_is_not_retried(cause: Cause):
    assert decide(retry_input(cause)) == RetryDecision(retry=False, cause=cause)


@pytest.mark.parametrize(("before", "again"), [(0, True), (1, True), (2, False)])
def test_integration_is_retried_twice_at_any_number_of_attempts(before: int, again: bool):
    end = decide(retry_input(Cause.INTEGRATION, judged_failures=9, integration_retries=before))
    assert end == RetryDecision(retry=again, cause=Cause.INTEGRATION)


def test_same_tree_and_answer_again_is_no_progress():
    end = decide(retry_input(Cause.CHECK_FAILED, same_as_before=True))
    assert end == RetryDecision(retry=False, cause=Cause.NO_PROGRESS)


def test_last_attempt_that_repeats_itself_fails_for_its_own_reason():
    end = decide(retry_input(Cause.CHECK_FAILED, judged_failures=3, same_as_before=True))
    assert end == RetryDecision(retry=False, cause=Cause.CHECK_FAILED)
