"""Retry or fail: what follows an attempt that was not accepted. Pure."""

from dataclasses import dataclass

from mimir.domain.task_states import Cause

MAX_INTEGRATION_RETRIES = 2


@dataclass(frozen=True, slots=True, kw_only=True)
class RetryInput:
    """What counts for the decision, after the attempt that just ended."""

    cause: Cause
    judged_failures: int
    """With this one; integration and provider trouble never count."""
    max_retries: int
    integration_retries: int
    """So far, this one not counted."""
    same_as_before: bool = False
    """Tree and answer equal those of the judged failure before."""


@dataclass(frozen=True, slots=True, kw_only=True)
class RetryDecision:
    """The decision."""

    retry: bool
    cause: Cause
    """Of the failure; for a retry, its reason."""


_FINAL = (Cause.CRITERIA_IMPOSSIBLE, Cause.UNVERIFIABLE, Cause.QC_UNAVAILABLE, Cause.WORKER_DIED)


def decide(standing: RetryInput) -> RetryDecision:
    """Decide what follows; attempts are `max_retries` + 1, integration retries two."""
    if standing.cause in _FINAL:
        return RetryDecision(retry=False, cause=standing.cause)
    if standing.cause is Cause.INTEGRATION:
        again = standing.integration_retries < MAX_INTEGRATION_RETRIES
        return RetryDecision(retry=again, cause=Cause.INTEGRATION)
    if standing.judged_failures > standing.max_retries:
        return RetryDecision(retry=False, cause=standing.cause)
    if standing.same_as_before:
        return RetryDecision(retry=False, cause=Cause.NO_PROGRESS)
    return RetryDecision(retry=True, cause=standing.cause)
