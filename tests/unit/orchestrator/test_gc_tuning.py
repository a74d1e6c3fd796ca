"""A run is served with a collector that looks seldom, and leaves it as it was."""

import gc

import pytest

from mimir.orchestrator.gc_tuning import reduced_collection


@pytest.fixture(autouse=True)
def as_it_was():
    before, enabled = gc.get_threshold(), gc.isenabled()
    gc.set_threshold(700, 10, 10)  # as Python starts; the tests' own is another
    yield
    gc.set_threshold(*before)
    (gc.enable if enabled else gc.disable)()
    gc.unfreeze()


def test_reduced_collection_raises_the_threshold_and_freezes_objects():
    before = gc.get_threshold()
    with reduced_collection():
        assert gc.get_threshold()[0] > before[0]
        assert gc.get_freeze_count() > 0
    assert gc.get_threshold() == before
    assert gc.get_freeze_count() == 0


def test_garbage_collection_is_restored_after_a_failure():
    before = gc.get_threshold()
    with pytest.raises(KeyError), reduced_collection():
        raise KeyError
    assert (gc.get_threshold(), gc.get_freeze_count()) == (before, 0)


def test_disabled_garbage_collection_stays_disabled():
    gc.disable()
    with reduced_collection():
        assert (gc.isenabled(), gc.get_freeze_count()) == (False, 0)
    assert not gc.isenabled()
