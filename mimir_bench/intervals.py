"""Confidence intervals of counted shares."""

import math

Z_95 = 1.959963984540054
"""Normal quantile of a two-sided interval of 95 %."""


def wilson(hits: int, tries: int, z: float = Z_95) -> tuple[float, float]:
    """Return Wilson's interval of a share, which stays within 0 and 1.

    Args:
        hits: 0 to `tries`.
        tries: 0 gives (0, 1).
        z: Quantile of the normal distribution.
    """
    if not tries:
        return 0.0, 1.0
    # Wilson's formula, because shares near 1 of few runs are usual here.
    share, square = hits / tries, z * z
    middle = (share + square / (2 * tries)) / (1 + square / tries)
    half = (
        z / (1 + square / tries) * math.sqrt(share * (1 - share) / tries + square / (4 * tries**2))
    )
    # At the ends the formula is exact, floating point is not.
    low = 0.0 if hits == 0 else middle - half
    high = 1.0 if hits == tries else middle + half
    return low, high
