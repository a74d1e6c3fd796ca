"""Results of an attempt: its state after each phase, stored for a resume."""

from typing import assert_never

from mimir.domain.deliverable import Deliverable
from mimir.domain.evidence import CheckOutcome
from mimir.domain.task_states import Cause, TaskStatus
from mimir.domain.usage import TokenUsage
from mimir.domain.value_class import value_class
from mimir.domain.verdict import Verdict
from mimir.store.records.task_changes import WorkAnsweredChange

OUTPUT_ON_TASK = 50_000
"""Characters of the answer that are kept on the task; the whole answer is an artifact."""


@value_class
class WorkerUsage:
    """Usage of a worker in one attempt."""

    tool_calls: int = 0
    messages: int = 0
    usage: TokenUsage = TokenUsage()
    seconds: float = 0.0


NO_EFFORT = WorkerUsage()


@value_class
class Working:
    """The worker has not answered yet."""


@value_class
class AttemptRejection:
    """The attempt was rejected without QC."""

    cause: Cause
    issues: tuple[str, ...]
    answer: str = ""
    """Empty: the model gave no usable answer."""
    tree: str = ""
    """Start of the next attempt: the workspace without the refused changes."""
    effort: WorkerUsage = NO_EFFORT
    smaller_context: bool = False
    """True: the retry must start with a smaller context."""
    work: Deliverable | None = None
    """Changes that a program left without success; they are kept, not checked."""


@value_class
class Checking:
    """The worker delivered; the checks have not run yet."""

    work: Deliverable


@value_class
class Judging:
    """The checks have run; QC has not answered yet."""

    work: Deliverable
    outcomes: tuple[CheckOutcome, ...]


@value_class
class Judged:
    """The engine gave its verdict."""

    work: Deliverable
    outcomes: tuple[CheckOutcome, ...]
    verdict: Verdict


@value_class
class NotJudged:
    """QC was unavailable, so the machine failed the task."""


AttemptState = Working | AttemptRejection | Checking | Judging | Judged | NotJudged


def status_of(state: AttemptState) -> TaskStatus:
    """Return the status of a task whose attempt is in this state."""
    match state:
        case Working() | AttemptRejection():
            return TaskStatus.WORKER_EXECUTING
        case Checking():
            return TaskStatus.WORKER_COMPLETED
        case Judging():
            return TaskStatus.QC_EXECUTING
        case Judged():
            return TaskStatus.QC_PASSED if state.verdict.passed else TaskStatus.QC_FAILED
        case NotJudged():
            # The machine itself writes this status, with the failure report.
            return TaskStatus.FAILED
        case _:
            assert_never(state)


def answered_change(answer: str, effort: WorkerUsage, now: str) -> WorkAnsweredChange:
    """Return the change of a task whose worker answered (phase 3)."""
    return WorkAnsweredChange(
        worker_output=answer[:OUTPUT_ON_TASK],
        worker_duration=round(effort.seconds, 3),
        worker_tokens=effort.usage.total,
        worker_tool_calls=effort.tool_calls,
        worker_message_count=effort.messages,
        worker_completed_at=now,
    )
