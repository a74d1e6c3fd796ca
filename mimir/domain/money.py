"""Money in whole units, so that sums are exact: a unit is the millionth part of a millionth of the currency that prices are given in. Pure."""

from dataclasses import dataclass
from decimal import Decimal

from mimir.domain.usage import TokenUsage

UNITS = 10**12
"""Units of one of the currency. Prices are given per million tokens with six decimals at most: a token costs whole units."""
MOST = 100_000 * UNITS
"""No limit is higher, and no call is charged more, whatever its endpoint says that it used: sums stay within 64 bits."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ModelPrice:
    """What a model's tokens cost."""

    input: int
    """Units a token of the prompt."""
    output: int
    """Units a token of the answer."""

    @classmethod
    def per_million(cls, input: Decimal, output: Decimal) -> "ModelPrice":
        """Make one from what a million tokens cost, with six decimals at most."""
        return cls(input=units(input) // 10**6, output=units(output) // 10**6)

    def of(self, usage: TokenUsage) -> int:
        """Return what a call costs, in units; at most `MOST`."""
        return min(MOST, usage.input_tokens * self.input + usage.output_tokens * self.output)


def units(amount: Decimal) -> int:
    """Return an amount of the currency in units.

    Raises:
        ValueError: It is finer than a unit, or no number.
    """
    if not amount.is_finite() or amount.as_tuple().exponent < -12:  # pyright: ignore[reportOperatorIssue]  finite: a number
        raise ValueError(f"{amount} is no amount of money that can be counted exactly.")
    return int(amount.scaleb(12))


def format_money(amount: int) -> str:
    """Write units as an amount of the currency: whole, with two decimals at least."""
    whole, rest = divmod(abs(amount), UNITS)
    return f"{'-' * (amount < 0)}{whole}.{f'{rest:012d}'.rstrip('0'):0<2}"
