"""Context receipt: the given and the withheld parts of one agent, with reasons. Pure.

`available` = given + withheld. A piece is identified by the hash of its normalised text.
"""

import hashlib
import unicodedata
from collections.abc import Mapping
from functools import lru_cache
from sys import intern
from typing import Literal, TypeVar, get_args

from mimir.agents.stored_fields import decode_fields, encode_fields
from mimir.domain.json_value import JsonObject, as_objects, as_whole_number, is_array
from mimir.domain.value_class import value_class
from mimir.errors import StoreError

T = TypeVar("T")
Importance = Literal["critical", "important", "optional"]
"""Critical is never cut."""
Why = Literal["role", "budget", "duplicate", "similar"]
"""`role`: not for this role; `budget`: did not fit; `duplicate`, `similar`: merged."""

_WHYS: tuple[Why, ...] = get_args(Why)

# Characters stored with a fingerprint; the transcript's brief holds the whole.
EXCERPT = 100


@value_class
class GivenPiece:
    """One piece of a context."""

    name: str
    """`file:api.py`, `dependency:task-1.0`, `prompt` …"""
    importance: Importance
    tokens: int
    hash: str
    """Of the whole normalised piece, also if only a part is shown."""
    whole: bool = True
    """False: cut, with a mark; the rest is withheld for its budget."""


@value_class
class WithheldPiece:
    """One piece that is not in a context, or only in part."""

    name: str
    why: Why
    tokens: int
    hash: str = ""
    reference: str = ""
    """Way for the agent to get it; empty: none."""
    kept: str = ""
    """Of a merged piece: the beginning of the given one."""
    text: str = ""
    """Of a similar piece: its own words, so that none is lost."""


@value_class
class PieceFingerprint:
    """A normalised piece and the number of its uses."""

    hash: str
    content: str
    """Its beginning, normalised."""
    first_seen: str
    """Transcript of its first use; a time would differ in a replay."""
    use_count: int


@value_class
class ContextReceipt:
    """Receipt of one context."""

    role: str
    lane: str
    given: tuple[GivenPiece, ...]
    withheld: tuple[WithheldPiece, ...] = ()
    fingerprints: tuple[PieceFingerprint, ...] = ()

    @property
    def given_tokens(self) -> int:
        """Tokens of the context, as `usage.estimate` counts."""
        return sum(piece.tokens for piece in self.given)

    @property
    def available_tokens(self) -> int:
        """Tokens given and withheld."""
        return self.given_tokens + sum(piece.tokens for piece in self.withheld)

    @property
    def checksum(self) -> str:
        """SHA-256 over the fingerprints of the critical pieces, which are never cut."""
        hashes = sorted(piece.hash for piece in self.given if piece.importance == "critical")
        return hashlib.sha256("\n".join(hashes).encode()).hexdigest()

    @property
    def comparable_pieces(self) -> tuple[GivenPiece | WithheldPiece, ...]:
        """Pieces that count for deduplication: given, or merged with a given one."""
        merged = (w for w in self.withheld if w.why in ("duplicate", "similar"))
        return (*self.given, *merged)

    def as_json(self) -> dict[str, object]:
        """Return the receipt as JSON values, with the names of the store."""
        return {
            "role": self.role,
            "lane": self.lane,
            # Computed, but stored: queries of the store cannot sum.
            "availableTokens": self.available_tokens,
            "givenTokens": self.given_tokens,
            "given": [encode_fields(piece) for piece in self.given],
            # Empty texts are left out: most withheld pieces have only a name and a size.
            "withheld": [
                {name: value for name, value in encode_fields(piece).items() if value != ""}
                for piece in self.withheld
            ],
            "fingerprints": [encode_fields(piece) for piece in self.fingerprints],
        }

    @classmethod
    def from_json(cls, values: JsonObject) -> "ContextReceipt":
        """Read the form of `as_json`; raise `StoreError` for any other form."""
        return cls(
            role=_text(values, "role"),
            lane=_text(values, "lane"),
            given=_pieces(GivenPiece, values, "given"),
            withheld=_pieces(WithheldPiece, values, "withheld"),
            fingerprints=_pieces(PieceFingerprint, values, "fingerprints"),
        )


@value_class
class ReceiptTotals:
    """Sums of a receipt, in estimated tokens."""

    role: str
    given: int
    available: int
    withheld: Mapping[str, int]
    """Reason → tokens; sorted."""


def receipt_totals(values: JsonObject) -> ReceiptTotals:
    """Sum receipts in the form of `ContextReceipt.as_json`; `StoreError` for any other form."""
    withheld: dict[str, int] = {}
    # No piece is built: a report sums the receipts of thousands of attempts, and equal texts are one object.
    for piece in _objects(values, "withheld"):
        why = intern(_text(piece, "why"))
        if why not in _WHYS:
            raise StoreError(f"A context receipt has {why!r} for why.")
        withheld[why] = withheld.get(why, 0) + _tokens(piece)
    given = sum(_tokens(piece) for piece in _objects(values, "given"))
    return ReceiptTotals(
        role=intern(_text(values, "role")),
        given=given,
        available=given + sum(withheld.values()),
        withheld=dict(sorted(withheld.items())),
    )


def flatten_receipt(receipt: ContextReceipt, prefix: str = "") -> dict[str, int | list[str]]:
    """Return a receipt as plain properties, for store queries that cannot read JSON.

    A piece of `contextPieces` is 16 digits of its hash, a blank, its tokens. With the prefix `qc` the first name is
    `qcContextTokens`.
    """
    values: dict[str, int | list[str]] = {
        "contextTokens": receipt.given_tokens,
        "contextTokensAvailable": receipt.available_tokens,
        "contextPieces": [f"{p.hash[:16]} {p.tokens}" for p in receipt.comparable_pieces],
        "contextGiven": [f"{p.name} ({p.tokens})" for p in receipt.given],
        "contextWithheld": [f"{p.name} ({p.tokens}, {p.why})" for p in receipt.withheld],
    }
    return {f"{prefix}{n[0].upper()}{n[1:]}" if prefix else n: v for n, v in values.items()}


def fingerprint(text: str) -> str:
    """Return the SHA-256 of a text, normalised: NFC, white space collapsed."""
    return mark(text)[0]


@lru_cache(maxsize=32)  # every attempt needs the fingerprint of its long preamble
def mark(text: str) -> tuple[str, str]:
    """Return a text's fingerprint and its normalised beginning."""
    normal = " ".join(unicodedata.normalize("NFC", text).split())
    hash = hashlib.sha256(normal.encode("utf-8", "backslashreplace")).hexdigest()
    return hash, normal[:EXCERPT]


def _text(values: JsonObject, name: str) -> str:
    value = values.get(name)
    if not isinstance(value, str):
        raise StoreError(f"A context receipt has {value!r} for {name}.")
    return value


def _tokens(values: JsonObject) -> int:
    tokens = as_whole_number(values.get("tokens"))
    if tokens is None:
        raise StoreError(f"A context receipt has {values.get('tokens')!r} for tokens.")
    return tokens


def _objects(values: JsonObject, name: str) -> list[JsonObject]:
    items = values.get(name)
    objects = as_objects(items)
    if not is_array(items) or len(objects) < len(items):
        raise StoreError(f"A context receipt has {items!r} for {name}.")
    return objects


def _pieces(kind: type[T], values: JsonObject, name: str) -> tuple[T, ...]:
    return tuple(decode_fields(kind, item, "A context receipt") for item in _objects(values, name))
