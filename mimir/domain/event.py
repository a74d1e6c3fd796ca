"""Events of a run, each written in the transaction that makes it true. Pure."""

from collections.abc import Mapping
from dataclasses import field
from enum import StrEnum

from mimir.domain.value_class import value_class


class EventKind(StrEnum):
    """Every kind of event; scripts read the names."""

    RUN_CREATED = "RunCreated"
    RUN_STARTED = "RunStarted"
    RUN_PAUSED = "RunPaused"
    RUN_RESUMED = "RunResumed"
    RUN_FINISHED = "RunFinished"
    PLAN_PROPOSED = "PlanProposed"
    PLAN_REPAIRED = "PlanRepaired"
    PREAMBLE_MADE = "PreambleMade"
    TASK_READY = "TaskReady"
    TASK_BLOCKED = "TaskBlocked"
    TASK_CANCELLED = "TaskCancelled"
    ATTEMPT_STARTED = "AttemptStarted"
    LEASE_TAKEN = "LeaseTaken"
    MODEL_CALLED = "ModelCalled"
    TOOL_CALLED = "ToolCalled"
    TOOL_DENIED = "ToolDenied"
    QUESTION_ASKED = "QuestionAsked"
    QUESTION_CLOSED = "QuestionClosed"
    ANSWER_REFUSED = "AnswerRefused"
    BREAKER_TRIPPED = "BreakerTripped"
    LANE_CUT = "LaneCut"
    DRIFT = "Drift"
    WORK_ANSWERED = "WorkAnswered"
    CHECK_RUN = "CheckRun"
    JUDGING_STARTED = "JudgingStarted"
    VERDICT_GIVEN = "VerdictGiven"
    TASK_COMPLETED = "TaskCompleted"
    TASK_RETRIED = "TaskRetried"
    TASK_FAILED = "TaskFailed"
    GATE_PASSED = "GatePassed"
    GATE_FAILED = "GateFailed"
    REPORT_WRITTEN = "ReportWritten"
    APPLIED = "Applied"
    WARNING = "Warning"


@value_class
class Event:
    """One thing that happened in a run."""

    seq: int
    """1-based, without gaps within a run."""
    kind: EventKind
    run: str
    at: str
    """ISO-8601 UTC, fixed width."""
    task: str = ""
    attempt: int = 0
    """0: no attempt."""
    data: Mapping[str, object] = field(default_factory=dict[str, object])
    """JSON values. A change of status has `from` and `to`."""
