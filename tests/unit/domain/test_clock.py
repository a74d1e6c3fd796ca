"""Times as text: fixed width, so that text order is time order."""

from datetime import UTC, datetime, timedelta, timezone

import pytest
from hypothesis import given
from hypothesis import strategies as st

from mimir.domain.clock import moment, stamp

UTC_MOMENTS = st.datetimes(min_value=datetime(1, 1, 2), timezones=st.just(UTC))  # noqa: DTZ001


@given(UTC_MOMENTS)
def test_stamp_of_a_moment_can_be_read_back(at: datetime):
    assert moment(stamp(at)) == at


@given(UTC_MOMENTS, UTC_MOMENTS)
def test_text_order_is_time_order(one: datetime, other: datetime):
    assert (stamp(one) < stamp(other)) == (one < other)
    assert len(stamp(one)) == len(stamp(other))


def test_other_zones_are_written_in_utc():
    there = datetime(2030, 1, 2, 3, 4, 5, 60, tzinfo=timezone(timedelta(hours=2)))
    assert stamp(there) == "2030-01-02T01:04:05.000060Z"


def test_parsed_moment_has_a_time_zone():
    assert moment("2030-01-02T01:04:05.000060Z").tzinfo is UTC


@pytest.mark.parametrize(
    "text",
    [
        "",
        "2030-01-02",
        "2030-01-02T01:04:05Z",
        "2030-01-02T01:04:05.1",
        "2030-01-02 01:04:05.000060Z",
        "2030-01-02T01:04:05.000+02Z",
        "2030-01-02T01:04:05.000+01:00",
        "2030-01-02T01:04:05,000060Z",
        "2030-W01-3T01:04:05.000060Z",
    ],
)
def test_other_texts_are_refused(text: str):
    with pytest.raises(ValueError, match="does not match format"):
        moment(text)


def test_invalid_month_is_refused():
    with pytest.raises(ValueError, match="month must be in"):
        moment("2030-13-02T01:04:05.000060Z")
