from mimir.reporting.verifying import verify
from tests.support import small_run


async def test_untouched_run_is_verified(store, frozen_clock):
    run = await small_run.whole(store, frozen_clock)
    found = await verify(store, run.history, small_run.RUN)
    assert found.problems == ()
    assert found.ok


async def test_untouched_completed_run_is_verified(store, frozen_clock):
    run = await small_run.completed(store, frozen_clock)
    found = await verify(store, run.history, small_run.RUN)
    assert found.problems == ()
