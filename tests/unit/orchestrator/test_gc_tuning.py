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


def test_meanwhile_it_looks_less_often_and_not_at_what_was_there():
    before = gc.get_threshold()
    with reduced_collection():
        assert gc.get_threshold()[0] > before[0]
        assert gc.get_freeze_count() > 0
    assert gc.get_threshold() == before
    assert gc.get_freeze_count() == 0


def test_it_is_as_it_was_after_a_failure_too():
    before = gc.get_threshold()
    with pytest.raises(KeyError), reduced_collection():
        raise KeyError
    assert (gc.get_threshold(), gc.get_freeze_count()) == (before, 0)


def test_whoever_turned_it_off_finds_it_off():
    gc.disable()
    with reduced_collection():
        assert (gc.isenabled(), gc.get_freeze_count()) == (False, 0)
    assert not gc.isenabled()
