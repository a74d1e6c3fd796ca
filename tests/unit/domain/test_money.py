"""Money is counted in whole units and written exactly."""

from decimal import Decimal

import pytest

from mimir.domain import money
from mimir.domain.money import ModelPrice
from mimir.domain.usage import ChargedUsage, TokenUsage


@pytest.mark.parametrize(
    ("amount", "written"),
    [
        (0, "0.00"),
        (1, "0.000000000001"),
        (15 * 10**10, "0.15"),
        (2 * 10**12, "2.00"),
        (-5 * 10**11, "-0.50"),
        (10**17, "100000.00"),
    ],
)
def test_units_are_written_as_integers(amount: int, written: str):
    assert money.format_money(amount) == written
    assert money.units(Decimal(written)) == amount


@pytest.mark.parametrize("text", ["NaN", "Infinity", "0.0000000000001"])
def test_inexact_amount_of_money_is_refused(text: str):
    with pytest.raises(ValueError, match="no amount of money"):
        money.units(Decimal(text))


def test_a_price_is_exact_to_the_token():
    price = ModelPrice.per_million(Decimal("0.15"), Decimal("0.000001"))
    assert (
        money.format_money(price.cost(TokenUsage(input_tokens=3, output_tokens=7)))
        == "0.000000450007"
    )


def test_no_call_costs_more_than_any_limit():
    assert (
        ModelPrice(input=10**10, output=10**10).cost(TokenUsage(input_tokens=10**9)) == money.MOST
    )


def test_cached_tokens_and_long_prompts_have_prices_of_their_own():
    price = ModelPrice(
        input=10,
        output=100,
        cached=1,
        long_from=1000,
        long=ModelPrice(input=20, output=200),
        as_of="2026-11-01",
    )
    assert price.cost(ChargedUsage(input_tokens=1000, cached_tokens=900, output_tokens=1)) == 2000
    # Above the threshold the whole call costs more; without a price of its own the cache is no discount.
    assert price.cost(ChargedUsage(input_tokens=1001, cached_tokens=900, output_tokens=1)) == 20_220
    assert money.decode_price(money.encode_price(price)) == price
    assert money.encode_price(ModelPrice(input=1, output=2)) == [1, 2], "as older versions store it"
    pinned = {"a": money.encode_price(price), "b": [1, 2]}
    assert money.date_of_prices(pinned) == "2026-11-01"
    assert money.date_of_prices({"b": [1, 2]}) == ""
