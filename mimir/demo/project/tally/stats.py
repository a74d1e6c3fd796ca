"""Numbers of a log."""

from tally.records import Record


def requests(log: list[Record]) -> int:
    """Count the requests."""
    return len(log)


def errors(log: list[Record]) -> int:
    """Count the requests that the service failed to answer."""
    return sum(record.status >= 500 for record in log)


def mean_ms(log: list[Record]) -> float:
    """Return the mean duration in milliseconds; 0 for an empty log."""
    return sum(record.ms for record in log) / len(log) if log else 0.0
