"""System clock and random ids: the only sources of time and randomness in a process."""

import os
import time
from datetime import UTC, datetime


class SystemClock:
    """Clock of the machine."""

    def now(self) -> datetime:
        """Return the time of day, UTC."""
        return datetime.now(UTC)

    def monotonic(self) -> float:
        """Return seconds that never go back."""
        return time.monotonic()


class RandomIds:
    """Short ids: the minute, then random letters; sorted by time, safe in file names and refs."""

    def new(self, kind: str) -> str:
        """Return an id such as `run-1121-1714-3fa9c2`."""
        # Six hexadecimal digits: two processes may create runs in the same minute.
        return f"{kind}-{datetime.now(UTC):%m%d-%H%M}-{os.urandom(3).hex()}"
