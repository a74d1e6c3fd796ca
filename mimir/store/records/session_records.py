"""Records of sessions of invocations."""

from mimir.domain.value_class import value_class
from mimir.store.records.record_codec import ABSENT, PackedJson, StoredRecord
from mimir.store.schema import NodeLabel


@value_class
class SessionRecord(StoredRecord, label=NodeLabel.SESSION):
    """Stored session; its invocations are the runs that name it."""

    id: str
    project_id: str = ""
    principal: str = ""
    """Client of the server that it belongs to. Empty: the user."""
    name: str = ""
    """Purpose. Empty: its first invocation began it."""
    chat: str | None = None
    """Id of the conversation in the client. None: not given."""
    created_at: str = ""
    """ISO-8601 UTC."""
    last_seen_at: str = ""
    """Last contact, ISO-8601 UTC."""
    has_own_budget: bool = False
    """Whether its client limited it; otherwise the settings do."""
    max_calls: int | None = None
    """Model calls of all its runs. None: no limit."""
    max_tokens: int | None = None
    """None: no limit."""
    max_cost: int | None = None
    """Units of money. None: no limit."""
    tree_calls: int = 0
    """Model calls of its runs."""
    tree_tokens: int = 0
    """Tokens that its runs have used and reserved."""
    tree_cost: int = 0
    """Units of money that its runs have spent and reserved."""
    refusals: PackedJson = ABSENT
    """Rule → number of refused invocations, a JSON object."""


@value_class
class SessionBudgetChange(StoredRecord, label=NodeLabel.SESSION):
    """Limits of a session; None: no limit."""

    max_calls: int | None
    max_tokens: int | None
    max_cost: int | None
