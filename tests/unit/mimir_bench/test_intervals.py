import pytest

from mimir_bench.intervals import wilson


@pytest.mark.parametrize(
    ("hits", "tries", "low", "high"),
    [
        (10, 10, 0.7225, 1.0),
        (0, 10, 0.0, 0.2775),
        (5, 10, 0.2366, 0.7634),
        (81, 263, 0.2553, 0.3662),  # Newcombe 1998, table I
        (15, 148, 0.0624, 0.1605),
        (1, 29, 0.0061, 0.1718),
    ],
)
def test_the_interval_is_that_of_the_literature(hits: int, tries: int, low: float, high: float):
    assert wilson(hits, tries) == pytest.approx((low, high), abs=5e-5)


def test_interval_without_trials_is_0_to_1():
    assert wilson(0, 0) == (0.0, 1.0)


def test_more_trials_make_the_interval_narrower():
    widths = [high - low for low, high in (wilson(9 * n, 10 * n) for n in (1, 10, 100))]
    assert widths == sorted(widths, reverse=True)
