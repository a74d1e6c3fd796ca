"""Records of calls in a transcript."""

from typing import Annotated, Literal

from mimir.domain.call_outcome import CallOutcome
from mimir.domain.usage import TokenUsage
from mimir.domain.value_class import value_class
from mimir.store.records.record_codec import ABSENT, PackedJson, Property, StoredRecord
from mimir.store.schema import NodeLabel


@value_class
class CallOverviewRecord(StoredRecord, label=NodeLabel.CALL, is_partial=True):
    """Projection of a call for lists: no request and no outcome."""

    id: str
    kind: Literal["model", "tool"]
    transcript: Annotated[str, Property(name="lane")]
    """Id of the transcript."""
    number: Annotated[int, Property(name="seq")]
    """0-based within the transcript."""
    run_id: str = ""
    task: str = ""
    """Id in the plan; `PLAN_TASK` for an agent of the run itself."""
    attempt: int = 0
    """1-based."""
    role: str = ""
    title: Annotated[str, Property(name="name")] = ""
    """For users; the model's name in a model call."""
    tool: str = ""
    """Empty: a model call."""
    cost: int | None = None
    """Units of money. None: the model has no price."""
    started_at: str = ""
    """ISO-8601 UTC. Empty: the intent was written with the outcome."""
    is_done: Annotated[bool, Property(name="done")] = False
    """True: the outcome is recorded."""
    finished_at: str = ""
    """ISO-8601 UTC. Empty: no outcome."""
    input_tokens: int | None = None
    """None: unknown."""
    output_tokens: int | None = None
    """None: unknown."""


@value_class
class CallRecord(CallOverviewRecord, is_partial=False):
    """Stored model or tool call: its intent, and its outcome once it is known."""

    fence: int | None = None
    """Fence of the lease under which it was written. None: no task."""
    tries: int = 0
    """Number of times that the call was begun."""
    request_hash: str = ""
    """SHA-256 of the whole request."""
    delta: PackedJson = ABSENT
    """Difference of the request from the calls before; long texts are named by their hash."""
    value: PackedJson = ABSENT
    """Outcome, a JSON object."""
    tree: str = ""
    """Workspace tree after the call. Empty: it cannot have changed."""
    hash: str = ""
    """Hash of the transcript with this call at its end."""

    @property
    def usage(self) -> TokenUsage | None:
        """Tokens of the call; None if the provider did not count them."""
        if self.input_tokens is None:
            return None
        return TokenUsage(input_tokens=self.input_tokens, output_tokens=self.output_tokens or 0)

    @property
    def outcome(self) -> CallOutcome:
        """Recorded outcome.

        Raises:
            StoreError: It is not a JSON object.
        """
        return CallOutcome(value=self.value.mapping(), tree=self.tree, usage=self.usage)
