import pytest

from tally.records import Record, parse, read

LINE = "2026-03-01T10:00:00Z GET /cart 200 41"
CART = Record(time="2026-03-01T10:00:00Z", method="GET", path="/cart", status=200, ms=41)


def test_a_line_is_taken_apart():
    assert parse(LINE) == CART


def test_empty_lines_are_passed_over():
    assert read([LINE, "", "  \n"]) == [CART]


def test_a_broken_line_is_an_error():
    with pytest.raises(ValueError):
        read([LINE, "nonsense"])
