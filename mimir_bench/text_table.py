"""Tables in plain text."""

from collections.abc import Sequence


def grid(columns: Sequence[str], rows: Sequence[Sequence[object]]) -> list[str]:
    """Format a table: first column left, others right; columns without content are dropped."""
    texts = [[str(cell) for cell in row] for row in rows]
    shown = [n for n in range(len(columns)) if n == 0 or any(row[n] for row in texts)]
    widths = {n: max(len(columns[n]), *(len(row[n]) for row in texts), 0) for n in shown}

    def line(cells: Sequence[str]) -> str:
        laid = [cells[n].rjust(widths[n]) if n else cells[n].ljust(widths[n]) for n in shown]
        return "  ".join(laid).rstrip()

    return [line(columns), *(line(row) for row in texts)]


def share(part: float, whole: float) -> str:
    """Return a share in percent; 100 and 0 only if exact."""
    if not whole:
        return "-"
    percent = 100 * part / whole
    # Rounding must not turn 999 of 1000 into "100 %".
    if 0 < part < whole:
        percent = min(max(percent, 0.1), 99.9)
    return f"{percent:.1f} %" if percent % 1 else f"{percent:.0f} %"
