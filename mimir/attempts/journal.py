"""Journal of an attempt: the only way in which its nodes reach the store."""

from collections.abc import Mapping, Sequence
from typing import Protocol

from mimir.domain.deliverable import Deliverable
from mimir.domain.event import EventKind
from mimir.domain.evidence import EvidenceRecord
from mimir.domain.task_states import Cause, TaskStatus
from mimir.domain.verdict import Verdict
from mimir.store.records.record_codec import StoredRecord
from mimir.store.transcripts.stored_transcript import StoredTranscript

Changes = Sequence[StoredRecord]
"""Properties of one node that are written together."""


class AttemptJournal(Protocol):
    """Writes of one attempt, each under its fence.

    Every method raises `LeaseLost` if another process holds the task.
    """

    async def open_transcript(self, role: str) -> StoredTranscript:
        """Open the attempt's transcript of a role."""
        ...

    async def transition(
        self,
        to: TaskStatus,
        kind: EventKind,
        *,
        task: Changes = (),
        attempt: Changes = (),
        data: Mapping[str, object] | None = None,
        records: Sequence[EvidenceRecord] = (),
        artifacts: Mapping[str, str] | None = None,
        verdict: Verdict | None = None,
        defer: bool = False,
    ) -> bool:
        """Change the status, with all that belongs to the phase and its event, in one transaction.

        Args:
            to: New status.
            kind: Kind of the event.
            task: Changes of the task.
            attempt: Changes of the attempt, besides those that it shares with the task.
            data: Data of the event.
            records: Evidence records; they extend the attempt's chain.
            artifacts: Texts by the suffix of their ids.
            verdict: Verdict that is given with the transition.
            defer: True: commit with the attempt's next write, if only thinking lies between the two.

        Returns:
            True. Only an exception prevents the write.
        """
        ...

    async def note(
        self, kind: EventKind, *changes: StoredRecord, data: Mapping[str, object]
    ) -> None:
        """Write an event and changes of the attempt; the status stays."""
        ...

    async def failure_values(
        self, work: Deliverable, cause: Cause, reason: str
    ) -> tuple[Changes, Changes]:
        """Return the changes (of task, of attempt) for a task that fails without a verdict."""
        ...
