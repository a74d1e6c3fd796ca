"""Format of numbers and times in a report. Pure."""

import math


def points(score: float | None) -> str:
    """Format a score, rounded down: `100`, `66.66`, `79.99`; a dash for None."""
    if score is None:
        return "—"
    # Rounded first: 0.57 × 100 is less than 57 in binary fractions.
    return f"{math.floor(round(score * 100, 6)) / 100:.6g}"


def span(seconds: float | None) -> str:
    """Format a duration: `0.4 s`, `45 s`, `3 min 05 s`, `2 h 07 min`; a dash for None."""
    if seconds is None:
        return "—"
    if seconds < 10:
        return f"{seconds:.1f} s"
    whole = round(seconds)
    if whole < 60:
        return f"{whole} s"
    if whole < 3600:
        return f"{whole // 60} min {whole % 60:02d} s"
    return f"{whole // 3600} h {whole % 3600 // 60:02d} min"


def format_time(stamp: str) -> str:
    """Format a stored time to the second."""
    return f"{stamp[:10]} {stamp[11:19]} UTC" if len(stamp) >= 19 else "—"


def share(part: float) -> str:
    """Format a share as whole percent."""
    return f"{part * 100:.0f} %"


def percent(part: float) -> str:
    """Format a share as percent with two decimals: `81.25 %`."""
    return f"{part * 100:.2f} %"


def seconds(value: float) -> str:
    """Format seconds to the thousandth: `12.345 s`."""
    return f"{value:.3f} s"


def amount(number: int, one: str, many: str = "") -> str:
    """Format a count: `1 task`, `2,000 tasks`."""
    return f"{number:,} {one if number == 1 else many or one + 's'}"
