"""How often Python looks for garbage while a run is served."""

import contextlib
import gc
from collections.abc import Generator

_THRESHOLDS = (5_000, 5, 5)
"""New objects until the newest are looked through, and how many such looks until older ones are. With Python's own 700 it took a
tenth of a run's processor time, and more in longer runs, to find hardly anything; with 20,000 a long run held several MB of garbage."""


@contextlib.contextmanager
def reduced_collection() -> Generator[None]:
    """Look less often meanwhile, and not at what is there already (modules, the plan); where somebody turned it off, it stays off."""
    before = gc.get_threshold()
    if not gc.isenabled() or not before[0]:
        yield
        return
    gc.freeze()
    gc.set_threshold(*_THRESHOLDS)
    try:
        yield
    finally:
        gc.set_threshold(*before)
        gc.unfreeze()
