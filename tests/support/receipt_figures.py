"""Figures over the receipts of many agents: reduction, deduplication, fingerprints.

Reduction = 1 − given ÷ available. Deduplication = 1 − unique ÷ total, where total = given + merged, and unique counts each
normalised piece once over all receipts.
"""

from collections.abc import Iterable, Sequence
from dataclasses import replace

from mimir.agents.context.receipt import ContextReceipt, PieceFingerprint


def merge_fingerprints(receipts: Iterable[ContextReceipt]) -> tuple[PieceFingerprint, ...]:
    """Return every piece once, in the order of first use, with the number of its uses."""
    found: dict[str, PieceFingerprint] = {}
    for receipt in receipts:
        for one in receipt.fingerprints:
            known = found.get(one.hash)
            found[one.hash] = (
                replace(known, use_count=one.use_count + known.use_count) if known else one
            )
    return tuple(found.values())


def reduction_ratio(receipts: Sequence[ContextReceipt]) -> float:
    """Return 1 − given ÷ available; 0 if nothing was available."""
    available = sum(r.available_tokens for r in receipts)
    return 1 - sum(r.given_tokens for r in receipts) / available if available else 0.0


def deduplication_ratio(receipts: Sequence[ContextReceipt]) -> float:
    """Return 1 − unique ÷ total; 0 if nothing was given."""
    total = 0
    unique: dict[str, int] = {}
    for receipt in receipts:
        for piece in receipt.comparable_pieces:
            total += piece.tokens
            unique[piece.hash] = max(piece.tokens, unique.get(piece.hash, 0))
    return 1 - sum(unique.values()) / total if total else 0.0
