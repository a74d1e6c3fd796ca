"""Records of sessions of invocations."""

from dataclasses import dataclass

from mimir.store.records.record_codec import ABSENT, PackedJson, StoredRecord
from mimir.store.schema import NodeLabel


@dataclass(frozen=True, slots=True, kw_only=True)
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
    refusals: PackedJson = ABSENT
    """Rule → number of refused invocations, a JSON object."""
