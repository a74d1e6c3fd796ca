"""What an attempt leaves behind at each phase; stored on its node, read again when it is resumed."""

from dataclasses import dataclass
from typing import Generic, TypeVar

from pydantic import TypeAdapter, ValidationError

from mimir.agents.circuit_breaker import Trip
from mimir.domain.evidence import CheckOutcome
from mimir.domain.task_states import Cause
from mimir.domain.usage import TokenUsage
from mimir.domain.verdict import Verdict
from mimir.errors import StoreError
from mimir.store.schema import pack, unpack

T = TypeVar("T")


class JsonCodec(Generic[T]):
    """Writes and reads values of one type."""

    def __init__(self, type: type[T]) -> None:
        self._adapter = TypeAdapter(type)

    def encode(self, value: T) -> str:
        """Return the JSON text of a value."""
        return pack(self._adapter.dump_python(value, mode="json"))

    def decode(self, text: str) -> T:
        """Return the value that `write` wrote.

        Raises:
            StoreError: It is not of this type, or no JSON.
        """
        try:
            return self._adapter.validate_python(unpack(text))
        except ValidationError as error:
            raise StoreError(
                f"What is stored of an attempt cannot be read: {error.error_count()} problem(s).",
                next_step="See what was changed: mimir verify",
            ) from None


NO_USAGE = TokenUsage()
OUTPUT_ON_TASK = 50_000
"""Characters of the answer kept on Task; the whole is an artifact."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Deliverable:
    """The deliverable: what the worker answered and what it changed."""

    answer: str
    base_commit: str
    """Where the attempt started on the run's line."""
    base_tree: str
    tree: str
    """Equal to `base_tree` if nothing was changed."""
    commit: str = ""
    """Empty: nothing changed, the verdict is on the answer."""
    changed: tuple[str, ...] = ()
    left_out: tuple[str, ...] = ()
    """Changed outside the task's `files`; not in the deliverable."""
    protected: tuple[str, ...] = ()
    """Protected files that were changed; restored before the checks run."""
    notes: tuple[str, ...] = ()
    unsupported: tuple[str, ...] = ()
    """Citations of the answer that are not in the worker's ledger."""
    tripped: str = ""
    """What tripped, when and what was left; empty: nothing."""
    tool_calls: int = 0
    messages: int = 0
    usage: TokenUsage = NO_USAGE
    ledger: tuple[tuple[int, str, str], ...] = ()
    """(sequence, tree, text) of the worker's tool calls; texts bounded. Sources `call:<seq>` of QC's quotes."""


@dataclass(frozen=True, slots=True, kw_only=True)
class WorkerUsage:
    """What a worker used of its limits."""

    tool_calls: int = 0
    messages: int = 0
    usage: TokenUsage = NO_USAGE
    seconds: float = 0.0


NO_EFFORT = WorkerUsage()


@dataclass(frozen=True, slots=True, kw_only=True)
class AttemptRejection:
    """An attempt that was judged without QC."""

    cause: Cause
    issues: tuple[str, ...]
    answer: str = ""
    """Empty: the model gave none that can be used."""
    tree: str = ""
    """What the next attempt goes on from: the workspace as it was left, without what was refused."""
    effort: WorkerUsage = NO_EFFORT
    smaller_context: bool = False
    """True: the retry must start with a smaller context."""


@dataclass(frozen=True, slots=True, kw_only=True)
class AttemptState:
    """All that is known of an attempt so far."""

    work: Deliverable | None = None
    rejection: AttemptRejection | None = None
    outcomes: tuple[CheckOutcome, ...] = ()
    judgement: Verdict | None = None
    failure: Cause | None = None
    """Set when the machine itself ended the task (`qc_unavailable`)."""


TRIP = JsonCodec(Trip)
WORK = JsonCodec(Deliverable)
OUTCOMES = JsonCodec(tuple[CheckOutcome, ...])
JUDGEMENT = JsonCodec(Verdict)


def phase_values(answer: str, effort: WorkerUsage) -> dict[str, str | int | float]:
    """Return the values of phase 3."""
    return {
        "workerOutput": answer[:OUTPUT_ON_TASK],
        "workerDuration": round(effort.seconds, 3),
        "workerTokens": effort.usage.total,
        "workerToolCalls": effort.tool_calls,
        "workerMessageCount": effort.messages,
    }
