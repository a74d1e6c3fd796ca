"""Changes of a run: properties of one write. None removes one, unless skipped."""

from typing import Annotated

from mimir.domain.value_class import value_class
from mimir.store.records.record_codec import ABSENT, PackedJson, Property, StoredRecord
from mimir.store.schema import NodeLabel


@value_class
class RunEnvironmentChange(StoredRecord, label=NodeLabel.RUN):
    """Environment that is pinned when a run is created."""

    user_head: str | None
    """None: the user's branch has no commit."""
    user_branch: str | None
    is_exchanged: bool
    ignore_rules: str
    sandbox: str
    from_run: str | None
    """None: nothing is reused."""


@value_class
class RunLimitsChange(StoredRecord, label=NodeLabel.RUN, skips_none=True):
    """New totals of a run, and the time that it used; None keeps a value."""

    max_calls: int | None = None
    max_tokens: int | None = None
    time_limit_seconds: float | None = None
    seconds_used: float | None = None
    """Time until a pause."""
    max_cost: int | None = None
    """Units of money."""


@value_class
class RunPauseChange(StoredRecord, label=NodeLabel.RUN):
    """Reason of a pause; None for both when the run resumes."""

    pause_reason: str | None = None
    pause_message: str | None = None


@value_class
class RunQueueChange(StoredRecord, label=NodeLabel.RUN):
    """Place of an invocation in the queue of its session; None for both: its work has begun."""

    queued_at: str | None = None
    dequeued_at: str | None = None


@value_class
class RunSealChange(StoredRecord, label=NodeLabel.RUN):
    """Result of the final gate."""

    outcome: str
    seal: str
    final_commit: str | None
    """None: no task changed a file."""
    gate_red: PackedJson
    """Red checks in words, a JSON array."""
    broken_checks: tuple[str, ...] | None = None
    """Broken checks of completed tasks in words. None: no check is broken."""
    result_branch: str | None = None
    """None: the usual name."""


@value_class
class RunApplicationChange(StoredRecord, label=NodeLabel.RUN):
    """Journal of an application: the steps before the first file changes."""

    steps: Annotated[PackedJson, Property(name="applyJson")]
    """Absent: the application was undone."""


@value_class
class RunAppliedChange(StoredRecord, label=NodeLabel.RUN):
    """End of an application."""

    applied_at: str
    """ISO-8601."""
    applied_commit: str | None
    """None: no commit was made."""


@value_class
class RunPinnedChange(StoredRecord, label=NodeLabel.RUN, skips_none=True):
    """Values that are pinned after a run is stored; absent properties do not change."""

    learned: PackedJson = ABSENT
    """Role → expected minutes, a JSON object."""
    plan_run: str | None = None
    """Planning run that made the plan."""
    models: PackedJson = ABSENT
    """Role → model that replaces the pinned one when the run resumes, a JSON object."""


@value_class
class RunAssuranceChange(StoredRecord, label=NodeLabel.RUN):
    """Assurance level of an invocation that ends."""

    assurance: str
