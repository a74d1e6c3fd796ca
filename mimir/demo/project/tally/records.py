"""Lines of an access log, taken apart."""

from collections.abc import Iterable
from dataclasses import dataclass


@dataclass(frozen=True)
class Record:
    """One request."""

    time: str
    method: str
    path: str
    status: int
    ms: int


def parse(line: str) -> Record:
    """Take one line apart, such as `2026-03-01T10:00:00Z GET /cart 200 41`."""
    time, method, path, status, ms = line.split()
    return Record(time=time, method=method, path=path, status=int(status), ms=int(ms))


def read(lines: Iterable[str]) -> list[Record]:
    """Parse every line that is not empty."""
    return [parse(line) for line in lines if line.strip()]
