"""Quota of tools in one attempt, in addition to the circuit breaker's count of all calls.

It counts once a call, in message order, also during the replay of a transcript, so its count after a resume is correct.
"""

from collections import Counter
from collections.abc import Mapping

from mimir.domain.quoted_text import count_noun, quote_text


class CallQuota:
    """Limits of the named tools; other tools are not limited."""

    def __init__(self, limits: Mapping[str, int]) -> None:
        self._limits = dict(limits)
        self._used: Counter[str] = Counter()

    def take(self, tool: str) -> str | None:
        """Count one call and return None, or count nothing and return the reason for the model."""
        limit = self._limits.get(tool)
        if limit is not None and self._used[tool] >= limit:
            return f"the quota of {quote_text(tool)} in this attempt ({count_noun(limit, 'call')}) is used up."
        self._used[tool] += 1
        return None

    def limit_of(self, tool: str) -> int:
        """Return the limit of a tool; 0: it has none."""
        return self._limits.get(tool, 0)

    def refill(self) -> None:
        """Begin to count again."""
        self._used.clear()
