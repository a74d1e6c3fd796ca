"""The next records of an attempt's evidence chain."""

from collections.abc import Sequence

from mimir.attempts.desk import Desk
from mimir.domain.evidence import Record
from mimir.qc import seal
from mimir.qc.bodies import Body

Bodies = Sequence[tuple[seal.RecordKind, Body]]


def sealed(desk: Desk, bodies: Bodies) -> tuple[Record, ...]:
    """Seal bodies behind the chain so far; they count once the move that carries them is committed."""
    last = desk.records[-1] if desk.records else None
    return seal.extend(desk.chain, last, bodies)
