"""Who thinks now: what is about to wait for the world lets the next one think, whoever called it."""

from collections.abc import Callable
from contextvars import ContextVar


def give_way() -> None:
    """Let others go on: what comes now takes a while. Said as often as one likes, and by nobody's work without effect."""
    give = TURN.get()
    if give is not None:
        give()


TURN: ContextVar[Callable[[], None] | None] = ContextVar("turn", default=None)
"""Set where an attempt begins; inherited by everything that is started there."""
