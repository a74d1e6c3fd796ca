"""Amounts of money in integer units of 10^-12, so that sums are exact. Pure."""

from collections.abc import Mapping
from decimal import Decimal

from mimir.domain.json_value import as_array, as_object, as_text, as_whole_number
from mimir.domain.usage import ChargedUsage, TokenUsage
from mimir.domain.value_class import value_class

# Units of one currency unit: with prices of six decimals a token costs whole units.
UNITS = 10**12
# Highest limit, and highest charge of one call: sums stay within 64 bits.
MOST = 100_000 * UNITS


@value_class
class ModelPrice:
    """Price of a model's tokens."""

    input: int
    """Units a prompt token."""
    output: int
    """Units an answer token."""
    cached: int | None = None
    """Units a prompt token from the provider's cache. None: as `input`."""
    long_from: int = 0
    """Prompt tokens above which `long` is charged for the whole call. 0: never."""
    long: "ModelPrice | None" = None
    as_of: str = ""
    """Date of the price list, YYYY-MM-DD. Empty: the user has set the price."""

    @classmethod
    def per_million(
        cls, input: Decimal, output: Decimal, cached: Decimal | None = None
    ) -> "ModelPrice":
        """Return the price from amounts per million tokens."""
        own = None if cached is None else units(cached) // 10**6
        return cls(input=units(input) // 10**6, output=units(output) // 10**6, cached=own)

    def cost(self, usage: TokenUsage) -> int:
        """Return the cost of a call in units; at most `MOST`."""
        if self.long is not None and usage.input_tokens > self.long_from:
            return self.long.cost(usage)
        cached = usage.cached_tokens if isinstance(usage, ChargedUsage) else 0
        cached = min(cached, usage.input_tokens)
        prompt = (usage.input_tokens - cached) * self.input
        prompt += cached * (self.input if self.cached is None else self.cached)
        return min(MOST, prompt + usage.output_tokens * self.output)


def encode_price(price: ModelPrice) -> list[object]:
    """Return a price as it is stored: [input, output], and a table of its further parts."""
    more: dict[str, object] = {}
    if price.cached is not None:
        more["cached"] = price.cached
    if price.long is not None:
        more |= {"long_from": price.long_from, "long": encode_price(price.long)}
    if price.as_of:
        more["as_of"] = price.as_of
    return [price.input, price.output, *([more] if more else [])]


def decode_price(value: object) -> ModelPrice:
    """Return a stored price."""
    row = as_array(value)
    more: Mapping[str, object] = as_object(row[2]) if len(row) > 2 else {}
    return ModelPrice(
        input=as_whole_number(row[0]) or 0,
        output=as_whole_number(row[1]) or 0,
        cached=as_whole_number(more.get("cached")),
        long_from=as_whole_number(more.get("long_from")) or 0,
        long=decode_price(more["long"]) if "long" in more else None,
        as_of=as_text(more.get("as_of")),
    )


def date_of_prices(pinned: Mapping[str, object]) -> str:
    """Return the oldest date of stored prices; empty: the user has set them all."""
    dates = {decode_price(one).as_of for one in pinned.values()} - {""}
    return min(dates, default="")


def units(amount: Decimal) -> int:
    """Return an amount in units; raise ValueError if it is not finite or too fine."""
    if not amount.is_finite() or amount.as_tuple().exponent < -12:  # pyright: ignore[reportOperatorIssue]  finite: a number
        raise ValueError(f"{amount} is no amount of money that can be counted exactly.")
    return int(amount.scaleb(12))


def read_amount(text: str) -> int | None:
    """Return the units of an amount that a program reports; None: it is no plausible one."""
    try:
        amount = Decimal(text)
        if not amount.is_finite() or not 0 <= amount * UNITS <= MOST:
            return None
        return units(amount.quantize(Decimal("1e-12")))
    except ArithmeticError:
        return None


def format_money(amount: int) -> str:
    """Format units as an amount with two decimals at least."""
    whole, rest = divmod(abs(amount), UNITS)
    return f"{'-' * (amount < 0)}{whole}.{f'{rest:012d}'.rstrip('0'):0<2}"
