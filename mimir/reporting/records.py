"""Evidence nodes as the records that they show."""

from typing import Literal, cast

from mimir.domain.evidence import Record
from mimir.store.protocol import Row


def record_of(row: Row) -> Record:
    """Return the record of an Evidence node without judging it; what is damaged is for the seal to find."""
    seq = row.get("seq")
    return Record(
        seq=seq if isinstance(seq, int) else -1,
        kind=cast('Literal["check", "deliverable", "verdict", "gate"]', str(row.get("kind") or "")),
        body=str(row.get("body") or ""),
        previous=str(row.get("previous") or ""),
        hash=str(row.get("hash") or ""),
    )
