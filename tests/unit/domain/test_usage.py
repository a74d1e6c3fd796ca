"""Tokens: sums of use, and the estimate that limits further use."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from mimir.domain.usage import TokenUsage, estimate

COUNTS = st.integers(min_value=0, max_value=10**9)


@pytest.mark.parametrize(
    ("text", "tokens"), [("", 0), ("a", 1), ("abc", 1), ("abcd", 2), ("é" * 7, 4), ("\ud800", 1)]
)
def test_token_estimates_of_examples(text: str, tokens: int):
    assert estimate(text) == tokens


@given(st.text(), st.text())
def test_a_longer_text_is_never_estimated_lower(text: str, more: str):
    assert estimate(text + more) >= estimate(text)
    assert estimate(text + more) <= estimate(text) + estimate(more)


@given(COUNTS, COUNTS, COUNTS, COUNTS)
def test_usages_add_up_by_kind(a: int, b: int, c: int, d: int):
    both = TokenUsage(input_tokens=a, output_tokens=b) + TokenUsage(input_tokens=c, output_tokens=d)
    assert both == TokenUsage(input_tokens=a + c, output_tokens=b + d)
    assert both.total == a + b + c + d
