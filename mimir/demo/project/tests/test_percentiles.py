"""Release 0.2: the mean hides the slow requests."""

import pytest

from tally import stats
from tally.records import Record

LOG = [
    Record(time="10:00", method="GET", path="/", status=200, ms=ms)
    for ms in (40, 10, 30, 20, 50)
]


@pytest.mark.parametrize(("share", "ms"), [(0, 10), (20, 10), (50, 30), (90, 50), (100, 50)])
def test_a_percentile_is_a_duration_that_was_measured(share: int, ms: int):
    assert stats.percentile(LOG, share) == ms


def test_an_empty_log_has_no_slow_request():
    assert stats.percentile([], 95) == 0
