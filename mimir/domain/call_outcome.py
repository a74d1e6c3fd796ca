"""What a lane records of a call: the outcome that a replay serves again."""

from collections.abc import Mapping
from dataclasses import dataclass

from mimir.domain.usage import TokenUsage


@dataclass(frozen=True, slots=True, kw_only=True)
class CallOutcome:
    """The result of one model or tool call, in the form in which the journal keeps it."""

    value: Mapping[str, object]
    """JSON values; written and read by the wrapper that made it."""
    tree: str = ""
    """Workspace tree after the call; empty where nothing can have changed."""
    usage: TokenUsage | None = None
    """Model calls only. None: unknown, charged at the reservation."""
