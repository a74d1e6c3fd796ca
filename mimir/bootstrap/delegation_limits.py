"""Limits of delegation, read from the settings."""

from mimir.domain import money
from mimir.domain.invocation import DelegationLimits
from mimir.domain.run import RunBudget
from mimir.settings.model import Settings


def read_limits(settings: Settings) -> DelegationLimits:
    """Return the limits of delegation that the settings choose."""
    own = settings.agents
    cost = own.session_max_cost
    return DelegationLimits(
        calls=own.session_calls,
        active=own.session_concurrent,
        depth=own.depth,
        refinements=own.refinements,
        similarity=own.similarity_threshold,
        per_day=own.spawns_per_day,
        budget=RunBudget(
            max_calls=own.session_max_calls,
            max_tokens=own.session_max_tokens,
            max_cost=None if cost is None else money.units(cost),
        ),
    )
