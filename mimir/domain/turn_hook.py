"""Hook by which a wait lets another attempt use the CPU. Pure."""

from collections.abc import Callable
from contextvars import ContextVar


def give_way() -> None:
    """Let another attempt use the CPU before a wait; without effect outside of attempts."""
    give = YIELD_TURN.get()
    if give is not None:
        give()


# Set where an attempt starts; inherited by asyncio tasks.
YIELD_TURN: ContextVar[Callable[[], None] | None] = ContextVar("turn", default=None)
