"""What an agent was given, what was withheld and why: one receipt a context, and what a fleet of them says. Pure.

`available` = given + withheld: everything that the PM had. Reduction = 1 − given ÷ available. Deduplication = 1 − unique ÷ total, where
total = given + withheld as duplicate, and unique counts each normalised piece once over the whole fleet.
"""

import hashlib
import unicodedata
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache
from sys import intern
from typing import Literal, cast, get_args

from mimir.errors import StoreError

Importance = Literal["critical", "important", "optional"]
"""Critical is never cut."""
Why = Literal["role", "budget", "duplicate", "similar"]
"""`role`: not for this role; `budget`: did not fit, referenced; `duplicate`, `similar`: merged with what is given."""

_IMPORTANCES: tuple[str, ...] = get_args(Importance)
_WHYS: tuple[str, ...] = get_args(Why)

EXCERPT = 100
"""Characters of a piece kept with its fingerprint; the whole stands in the lane's brief."""


@dataclass(frozen=True, slots=True, kw_only=True)
class GivenPiece:
    """One piece that stands in the context."""

    name: str
    """`file:api.py`, `dependency:task-1.0`, `prompt` …"""
    importance: Importance
    tokens: int
    hash: str
    """Of the whole normalised piece, also when only a part of it is shown."""
    whole: bool = True
    """False: cut, with a mark; what is missing is withheld for its budget."""


@dataclass(frozen=True, slots=True, kw_only=True)
class WithheldPiece:
    """One piece that does not stand in the context, or only in part."""

    name: str
    why: Why
    tokens: int
    hash: str = ""
    reference: str = ""
    """How the agent can get it; empty: it cannot."""
    kept: str = ""
    """Merged pieces: the name of what stands for it."""
    text: str = ""
    """Similar pieces: the words that were merged, so that none is lost."""


@dataclass(frozen=True, slots=True, kw_only=True)
class PieceFingerprint:
    """A normalised piece, and how often it was used."""

    hash: str
    content: str
    """Its beginning, normalised."""
    first_seen: str
    """Lane in which it was used first; a time would differ in a replay."""
    use_count: int


@dataclass(frozen=True, slots=True, kw_only=True)
class ContextReceipt:
    """What one agent was given."""

    role: str
    lane: str
    given: tuple[GivenPiece, ...]
    withheld: tuple[WithheldPiece, ...] = ()
    fingerprints: tuple[PieceFingerprint, ...] = ()

    @property
    def given_tokens(self) -> int:
        """Tokens of the context, by `usage.estimate`."""
        return sum(piece.tokens for piece in self.given)

    @property
    def available_tokens(self) -> int:
        """Tokens of all that there was to give."""
        return self.given_tokens + sum(piece.tokens for piece in self.withheld)

    def as_json(self) -> dict[str, object]:
        """Return the receipt as JSON values, names as in the store."""
        return {
            "role": self.role,
            "lane": self.lane,
            "availableTokens": self.available_tokens,
            "givenTokens": self.given_tokens,
            "given": [
                {
                    "name": g.name,
                    "importance": g.importance,
                    "tokens": g.tokens,
                    "hash": g.hash,
                    "whole": g.whole,
                }
                for g in self.given
            ],
            "withheld": [_withheld_json(w) for w in self.withheld],
            "fingerprints": [_fingerprint_json(f) for f in self.fingerprints],
        }

    @classmethod
    def from_json(cls, values: Mapping[str, object]) -> "ContextReceipt":
        """Read what `as_json` wrote.

        Raises:
            StoreError: It is not of that form.
        """
        return cls(
            role=_text(values, "role"),
            lane=_text(values, "lane"),
            given=tuple(
                GivenPiece(
                    name=_text(g, "name"),
                    importance=cast("Importance", _one_of(g, "importance", _IMPORTANCES)),
                    tokens=_count(g, "tokens"),
                    hash=_text(g, "hash"),
                    whole=g.get("whole") is True,
                )
                for g in _objects(values, "given")
            ),
            withheld=tuple(_withheld(w) for w in _objects(values, "withheld")),
            fingerprints=tuple(
                PieceFingerprint(
                    hash=_text(f, "hash"),
                    content=_text(f, "content"),
                    first_seen=_text(f, "firstSeen"),
                    use_count=_count(f, "useCount"),
                )
                for f in _objects(values, "fingerprints")
            ),
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class ReceiptTotals:
    """What a receipt adds up to."""

    role: str
    given: int
    """Tokens, by the engine's estimate."""
    available: int
    withheld: Mapping[str, int]
    """Why → tokens; sorted."""


def sums(values: Mapping[str, object]) -> ReceiptTotals:
    """Add up what `ContextReceipt.as_json` wrote; what is not added up is not read.

    Raises:
        StoreError: It is not of that form.
    """
    withheld: dict[str, int] = {}
    for piece in _objects(values, "withheld"):
        why = intern(_one_of(piece, "why", _WHYS))
        withheld[why] = withheld.get(why, 0) + _count(piece, "tokens")
    given = sum(_count(piece, "tokens") for piece in _objects(values, "given"))
    return ReceiptTotals(
        role=intern(_text(values, "role")),
        given=given,
        available=given + sum(withheld.values()),
        withheld=dict(sorted(withheld.items())),
    )


def flatten_receipt(receipt: ContextReceipt, prefix: str = "") -> dict[str, int | list[str]]:
    """Return a receipt's figures as plain properties, for questions to the store that cannot look into JSON.

    Args:
        receipt: Of one context.
        prefix: Before each name: `qc` makes `contextTokens` into `qcContextTokens`.

    Returns:
        `contextTokens` given, `contextTokensAvailable`, and `contextPieces`: one text for each piece that was given or merged
        away, the first 16 digits of its hash, a blank, its tokens. `contextGiven` and `contextWithheld`: the same for a person, by
        name.
    """
    pieces = [f"{piece.hash[:16]} {piece.tokens}" for piece in _counted(receipt)]
    values: dict[str, int | list[str]] = {
        "contextTokens": receipt.given_tokens,
        "contextTokensAvailable": receipt.available_tokens,
        "contextPieces": pieces,
        "contextGiven": [f"{piece.name} ({piece.tokens})" for piece in receipt.given],
        "contextWithheld": [f"{p.name} ({p.tokens}, {p.why})" for p in receipt.withheld],
    }
    return {f"{prefix}{n[0].upper()}{n[1:]}" if prefix else n: v for n, v in values.items()}


def normalise_text(text: str) -> str:
    """Return a text in the form in which pieces are compared: NFC, white space collapsed."""
    return " ".join(unicodedata.normalize("NFC", text).split())


def fingerprint(text: str) -> str:
    """Return the SHA-256 of a normalised text."""
    return mark(text)[0]


@lru_cache(maxsize=32)
def mark(text: str) -> tuple[str, str]:
    """Return a text's fingerprint, and how it begins when it is normalised. Every attempt asks of its preamble, which is long."""
    normal = normalise_text(text)
    hash = hashlib.sha256(normal.encode("utf-8", "backslashreplace")).hexdigest()
    return hash, normal[:EXCERPT]


def fingerprints(receipts: Iterable[ContextReceipt]) -> tuple[PieceFingerprint, ...]:
    """Return every piece of a fleet once, in the order of first use, with the number of its uses over all receipts."""
    found: dict[str, PieceFingerprint] = {}
    for receipt in receipts:
        for one in receipt.fingerprints:
            known = found.get(one.hash)
            found[one.hash] = PieceFingerprint(
                hash=one.hash,
                content=one.content,
                first_seen=known.first_seen if known else one.first_seen,
                use_count=one.use_count + (known.use_count if known else 0),
            )
    return tuple(found.values())


def reduction(receipts: Sequence[ContextReceipt]) -> float:
    """Return 1 − given ÷ available over a fleet; 0 where nothing was available."""
    available = sum(r.available_tokens for r in receipts)
    return 1 - sum(r.given_tokens for r in receipts) / available if available else 0.0


def deduplication(receipts: Sequence[ContextReceipt]) -> float:
    """Return 1 − unique ÷ total over a fleet; 0 where nothing was given."""
    total = 0
    unique: dict[str, int] = {}
    for receipt in receipts:
        for piece in _counted(receipt):
            total += piece.tokens
            unique[piece.hash] = max(piece.tokens, unique.get(piece.hash, 0))
    return 1 - sum(unique.values()) / total if total else 0.0


def _counted(receipt: ContextReceipt) -> tuple[GivenPiece | WithheldPiece, ...]:
    """Return the pieces that a fleet's deduplication counts: given, or merged with what is given."""
    merged = (w for w in receipt.withheld if w.why in ("duplicate", "similar"))
    return (*receipt.given, *merged)


def _withheld_json(piece: WithheldPiece) -> dict[str, object]:
    values: dict[str, object] = {"name": piece.name, "why": piece.why, "tokens": piece.tokens}
    more = {
        "hash": piece.hash,
        "reference": piece.reference,
        "kept": piece.kept,
        "text": piece.text,
    }
    return values | {name: value for name, value in more.items() if value}


def _withheld(values: Mapping[str, object]) -> WithheldPiece:
    return WithheldPiece(
        name=_text(values, "name"),
        why=cast("Why", _one_of(values, "why", _WHYS)),
        tokens=_count(values, "tokens"),
        hash=_text(values, "hash", ""),
        reference=_text(values, "reference", ""),
        kept=_text(values, "kept", ""),
        text=_text(values, "text", ""),
    )


def _fingerprint_json(one: PieceFingerprint) -> dict[str, object]:
    return {
        "hash": one.hash,
        "content": one.content,
        "firstSeen": one.first_seen,
        "useCount": one.use_count,
    }


def _text(values: Mapping[str, object], name: str, default: str | None = None) -> str:
    value = values.get(name, default)
    if not isinstance(value, str):
        raise StoreError(f"A context receipt has {value!r} for {name}.")
    return value


def _count(values: Mapping[str, object], name: str) -> int:
    value = values.get(name)
    if not isinstance(value, int) or isinstance(value, bool):
        raise StoreError(f"A context receipt has {value!r} for {name}.")
    return value


def _one_of(values: Mapping[str, object], name: str, allowed: Sequence[str]) -> str:
    value = _text(values, name)
    if value not in allowed:
        raise StoreError(f"A context receipt has {value!r} for {name}.")
    return value


def _objects(values: Mapping[str, object], name: str) -> list[Mapping[str, object]]:
    value = values.get(name)
    if not isinstance(value, list):
        raise StoreError(f"A context receipt has {value!r} for {name}.")
    items = cast("list[object]", value)
    if not all(isinstance(item, dict) for item in items):
        raise StoreError(f"A context receipt has something that is no object in {name}.")
    return cast("list[Mapping[str, object]]", items)
