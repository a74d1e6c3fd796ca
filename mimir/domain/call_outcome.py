"""The recorded result of one call of a transcript. Pure."""

from collections.abc import Mapping
from dataclasses import dataclass

from mimir.domain.usage import TokenUsage


@dataclass(frozen=True, slots=True, kw_only=True)
class CallOutcome:
    """Result of one model or tool call, as the transcript stores it for replay."""

    value: Mapping[str, object]
    """JSON values; written and read by the wrapper that recorded the call."""
    tree: str = ""
    """Workspace tree after the call; empty if nothing can have changed."""
    usage: TokenUsage | None = None
    """Model calls only. None: unknown, charged at the reservation."""
