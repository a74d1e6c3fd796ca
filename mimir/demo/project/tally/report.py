"""Tables for people."""

TableRow = tuple[str, str]


def text(head: TableRow, rows: list[TableRow]) -> str:
    """Return a table in plain text: names to the left, values to the right."""
    every = [head, *rows]
    left = max(len(name) for name, _ in every)
    right = max(len(value) for _, value in every)
    return "\n".join(f"{name:<{left}}  {value:>{right}}" for name, value in every)
