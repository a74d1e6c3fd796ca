"""What is said of recordings: what a replay used of one, and where two runs differ."""

from collections.abc import Sequence
from typing import Protocol, cast

from mimir.cli.session import Session

DIFFERENT = 1
"""Exit code where a replay is not as it was recorded."""
MOST_NAMED = 5


class Used(Protocol):
    """What a replay made of a recording."""

    @property
    def calls(self) -> int:
        """Model calls that it holds."""
        ...

    @property
    def served(self) -> int:
        """How many of them were asked for."""
        ...

    @property
    def left(self) -> tuple[str, ...]:
        """Those that nobody asked for."""
        ...

    @property
    def missed(self) -> tuple[str, ...]:
        """Questions that it does not hold."""
        ...

    @property
    def drifts(self) -> int:
        """Questions in which a tool said something else."""
        ...

    @property
    def whole(self) -> bool:
        """True if nothing is left and nothing was missed."""
        ...


class _Replaying(Protocol):
    @property
    def used(self) -> Used: ...


def told(session: Session, mimir: object, code: int, *, is_strict: bool) -> int:
    """Say what was used of a recording; the exit code."""
    used = cast("_Replaying", mimir).used
    for line in lines(used):
        session.console.note(line)
    return code or (DIFFERENT if is_strict and not used.whole else 0)


def lines(used: Used) -> Sequence[str]:
    """Return what was used of a recording, a line each."""
    said = [f"recording: {used.served} of {used.calls} model calls used, {used.drifts} drifted"]
    said += [f"  missed: {what}" for what in used.missed[:MOST_NAMED]]
    said += [f"  not used: lane {what}" for what in used.left[:MOST_NAMED]]
    if len(used.left) > MOST_NAMED:
        said.append(f"  and {len(used.left) - MOST_NAMED} more that were not used")
    return said
