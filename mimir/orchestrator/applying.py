"""Bringing a run's result into the person's directory: never half, never over what they changed meanwhile."""

from dataclasses import dataclass

from mimir.domain.attempt import RunStatus
from mimir.domain.run import Apply, Ending
from mimir.errors import UsageError
from mimir.orchestrator.parts import Parts
from mimir.scheduling.finish import End


@dataclass(frozen=True, slots=True, kw_only=True)
class Applied:
    """What was brought into the person's directory."""

    paths: tuple[str, ...] = ()
    conflicts: tuple[str, ...] = ()
    """Touched files that the person changed meanwhile; then nothing was applied."""


async def finish(parts: Parts, run: str, end: End, apply: Apply) -> Applied:
    """Apply a run's result at its end, if it may be."""
    if apply == "never" or end.outcome is not RunStatus.COMPLETED or not end.commit:
        return Applied()
    raise UsageError(f"Run {run} cannot be applied by this version.")


async def by_hand(parts: Parts, run: str, *, commit: bool) -> Ending:
    """Apply a run's result because the person says so."""
    raise UsageError(f"Run {run} cannot be applied by this version.")
