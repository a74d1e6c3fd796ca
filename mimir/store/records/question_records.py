"""Records of questions to the user."""

from typing import Annotated

from mimir.domain.question_states import QuestionKind, QuestionState
from mimir.domain.value_class import value_class
from mimir.store.records.record_codec import ABSENT, PackedJson, Property, StoredRecord
from mimir.store.schema import NodeLabel


@value_class
class QuestionRecord(StoredRecord, label=NodeLabel.QUESTION):
    """Stored question of an agent."""

    id: str
    name: str
    """Title."""
    run_id: str
    project_id: str
    task: str
    """Id in the plan."""
    attempt: int
    transcript: Annotated[str, Property(name="lane")]
    number: Annotated[int, Property(name="seq")]
    """Of the call in its transcript."""
    fence: int
    """Of the lease under which it was asked. 0: a planning run asked, which has no task."""
    kind: QuestionKind = "input"
    risk: int = 1
    """0 to 3."""
    text: str
    schema: PackedJson
    """Form of the answer, a flat JSON Schema."""
    default: PackedJson = ABSENT
    """Values that hold without an answer."""
    is_blocking: bool = True
    """False: the agent continued with the default."""
    asked_by: str
    """Role of the agent."""
    subject: str = ""
    """File that an approval is about. Empty: it asks for input."""
    subject_hash: str = ""
    """SHA-256 of the text that an approval is bound to."""
    state: QuestionState = "open"
    answer: PackedJson = ABSENT
    answered_by: str = ""
    transport: str = ""
    created_at: str = ""
    """ISO-8601 UTC."""
    expires_at: str = ""
    """Empty: never."""
    closed_at: str = ""
    """Empty: it is open."""

    @property
    def values(self) -> dict[str, object] | None:
        """Values of the answer; None: there is none."""
        return dict(self.answer.mapping()) if self.answer else None

    @property
    def default_values(self) -> dict[str, object] | None:
        """Values of the default; None: there is none."""
        return dict(self.default.mapping()) if self.default else None

    @property
    def is_correction(self) -> bool:
        """Whether an answer differs from the default that the work assumed at once."""
        return not self.is_blocking and bool(self.answer) and self.values != self.default_values


@value_class
class QuestionCloseChange(StoredRecord, label=NodeLabel.QUESTION):
    """End of a question."""

    state: QuestionState
    answer: PackedJson = ABSENT
    answered_by: str = ""
    transport: str = ""
    closed_at: str
