"""Limits of delegation, read from the settings."""

from mimir.domain.invocation import DelegationLimits
from mimir.settings.model import Settings


def read_limits(settings: Settings) -> DelegationLimits:
    """Return the limits of delegation that the settings choose."""
    own = settings.agents
    return DelegationLimits(
        calls=own.session_calls,
        active=own.session_concurrent,
        depth=own.depth,
        refinements=own.refinements,
        similarity=own.similarity_threshold,
        per_day=own.spawns_per_day,
    )
