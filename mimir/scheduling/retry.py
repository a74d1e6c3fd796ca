"""Retry or failure of a task after an attempt that was not accepted. Pure."""

from mimir.domain.task_states import Cause
from mimir.domain.value_class import value_class

MAX_INTEGRATION_RETRIES = 2


@value_class
class RetryInput:
    """Inputs of the retry decision, after the attempt that just ended."""

    cause: Cause
    judged_failures: int
    """With this one; merge conflicts and provider errors never count."""
    max_retries: int
    integration_retries: int
    """Retries after merge conflicts, without this one."""
    same_as_before: bool = False
    """True: tree and answer equal those of the judged failure before."""


@value_class
class RetryDecision:
    """Decision after a failed attempt."""

    retry: bool
    cause: Cause
    """Cause of the failure, or reason of the retry."""


# Another attempt cannot change these causes.
_FINAL = (
    Cause.CRITERIA_IMPOSSIBLE,
    Cause.UNVERIFIABLE,
    Cause.QC_UNAVAILABLE,
    Cause.WORKER_DIED,
    Cause.TIME,
)


def decide(given: RetryInput) -> RetryDecision:
    """Decide between retry and failure: `max_retries` + 1 attempts, two more after conflicts."""
    if given.cause in _FINAL:
        return RetryDecision(retry=False, cause=given.cause)
    if given.cause is Cause.INTEGRATION:
        # The other task's merge came first: this uses up no attempt.
        again = given.integration_retries < MAX_INTEGRATION_RETRIES
        return RetryDecision(retry=again, cause=Cause.INTEGRATION)
    if given.judged_failures > given.max_retries:
        return RetryDecision(retry=False, cause=given.cause)
    # The same result would be rejected again.
    if given.same_as_before:
        return RetryDecision(retry=False, cause=Cause.NO_PROGRESS)
    return RetryDecision(retry=True, cause=given.cause)
