"""Pinned preambles of a run: every attempt uses the first one of its role."""

from collections.abc import Mapping
from typing import Literal

from mimir.attempts.services import PinnedPreamble
from mimir.domain.plan import PreambleRole
from mimir.store.operations.record_loading import find_json, save_run_text
from mimir.store.protocol import ReadOps, WriteOps
from mimir.store.schema import pack

TEXT = "preambles"
"""Name of the run's text that holds them."""
Preambles = dict[PreambleRole, PinnedPreamble]
_Rows = tuple[tuple[Literal["worker", "qc"], str, str, str], ...]
"""(kind, role, text, hash)."""


def load_preambles(reads: ReadOps, run: str) -> Preambles:
    """Return the preambles that are pinned so far."""
    pinned = find_json(reads, run, TEXT)
    rows = pinned.value.decode(_Rows) if pinned else ()
    return {(kind, role): PinnedPreamble(text=text, hash=hash) for kind, role, text, hash in rows}


def pin_preambles(
    ops: WriteOps, run: str, made: Mapping[PreambleRole, PinnedPreamble]
) -> Preambles:
    """Pin preambles of roles that have none yet; return all that are pinned."""
    # An earlier coordinator may have pinned another text, and attempts may have used it.
    pinned = {**made, **load_preambles(ops, run)}
    rows = [[kind, role, one.text, one.hash] for (kind, role), one in pinned.items()]
    save_run_text(ops, run, TEXT, pack(rows))
    return pinned
