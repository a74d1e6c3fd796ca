"""Release 0.2: one broken line must not cost the whole report."""

import pytest

from tally.records import read

LINE = "2026-03-01T10:00:00Z GET /cart 200 41"
SHORT = "2026-03-01T10:00:01Z GET"
NO_NUMBER = "2026-03-01T10:00:02Z GET /cart 200 -"


def test_a_line_with_fields_missing_is_set_aside():
    broken: list[str] = []
    assert len(read([LINE, SHORT], broken)) == 1
    assert broken == [SHORT]


def test_a_line_without_a_duration_is_set_aside():
    broken: list[str] = []
    assert len(read([LINE, NO_NUMBER, LINE], broken)) == 2
    assert broken == [NO_NUMBER]


def test_nothing_is_set_aside_unless_it_is_asked_for():
    with pytest.raises(ValueError):
        read([LINE, SHORT])
