"""Amounts of money in integer units of 10^-12, so that sums are exact. Pure."""

from dataclasses import dataclass
from decimal import Decimal

from mimir.domain.usage import TokenUsage

# Units of one currency unit: with prices of six decimals a token costs whole units.
UNITS = 10**12
# Highest limit, and highest charge of one call: sums stay within 64 bits.
MOST = 100_000 * UNITS


@dataclass(frozen=True, slots=True, kw_only=True)
class ModelPrice:
    """Price of a model's tokens."""

    input: int
    """Units a prompt token."""
    output: int
    """Units an answer token."""

    @classmethod
    def per_million(cls, input: Decimal, output: Decimal) -> "ModelPrice":
        """Return the price from amounts per million tokens."""
        return cls(input=units(input) // 10**6, output=units(output) // 10**6)

    def cost(self, usage: TokenUsage) -> int:
        """Return the cost of a call in units; at most `MOST`."""
        return min(MOST, usage.input_tokens * self.input + usage.output_tokens * self.output)


def units(amount: Decimal) -> int:
    """Return an amount in units; raise ValueError if it is not finite or too fine."""
    if not amount.is_finite() or amount.as_tuple().exponent < -12:  # pyright: ignore[reportOperatorIssue]  finite: a number
        raise ValueError(f"{amount} is no amount of money that can be counted exactly.")
    return int(amount.scaleb(12))


def format_money(amount: int) -> str:
    """Format units as an amount with two decimals at least."""
    whole, rest = divmod(abs(amount), UNITS)
    return f"{'-' * (amount < 0)}{whole}.{f'{rest:012d}'.rstrip('0'):0<2}"
