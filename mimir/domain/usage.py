"""Tokens: what was used, and a bound for what will be."""

import math
from dataclasses import dataclass

MOST = 10**9
"""No call has so many: whoever says so is not believed."""


@dataclass(frozen=True, slots=True, kw_only=True)
class TokenUsage:
    """Tokens of one model call, as the provider counted them."""

    input_tokens: int = 0
    output_tokens: int = 0

    @property
    def total(self) -> int:
        """Both together."""
        return self.input_tokens + self.output_tokens

    def __add__(self, other: "TokenUsage") -> "TokenUsage":
        return TokenUsage(
            input_tokens=self.input_tokens + other.input_tokens,
            output_tokens=self.output_tokens + other.output_tokens,
        )


def estimate(text: str) -> int:
    """Estimate the tokens of a text without a tokenizer: one per three and a half UTF-8 bytes, rounded up.

    Four characters a token was measured 27 % low on technical English; this errs on the high side.
    """
    return math.ceil(len(text.encode("utf-8", "surrogatepass")) / 3.5)
