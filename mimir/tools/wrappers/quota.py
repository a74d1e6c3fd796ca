"""How often tools may be used in one attempt, beside the breaker's count of all calls.

A quota is asked once a call, in message order, also while a lane is replayed; so its count after a resume is what it was.
"""

from collections import Counter
from collections.abc import Mapping
from typing import Protocol

from mimir.domain.message import CallContext
from mimir.tools.calls.messages import count_noun, quote_text


class ToolQuota(Protocol):
    """A bound on the use of tools."""

    def take(self, tool: str, context: CallContext, /) -> str | None:
        """Count one use and return None, or count nothing and return the reason for the model.

        Never waits: the order of calls is the order of messages.
        """
        ...


class CallQuota:
    """At most so many uses of each named tool; other tools are free."""

    def __init__(self, limits: Mapping[str, int]) -> None:
        self._limits = dict(limits)
        self._used: Counter[str] = Counter()

    def take(self, tool: str, context: CallContext, /) -> str | None:
        """Count one use, or refuse it."""
        del context
        limit = self._limits.get(tool)
        if limit is None:
            return None
        if self._used[tool] >= limit:
            return f"the quota of {quote_text(tool)} in this attempt ({count_noun(limit, 'call')}) is used up."
        self._used[tool] += 1
        return None
