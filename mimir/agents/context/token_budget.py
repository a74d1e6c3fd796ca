"""Fitting of pieces into a token budget: whole, cut with a mark, or as a reference. Pure.

Nothing disappears silently: a piece that is not shown leaves a mark that says how to get it, and an entry in the receipt.
"""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from typing import Literal

from mimir.agents.context import quotation
from mimir.agents.context.excerpts import cut_around
from mimir.agents.context.receipt import (
    ContextReceipt,
    GivenPiece,
    Importance,
    PieceFingerprint,
    WithheldPiece,
    fingerprint,
    mark,
)
from mimir.domain.quoted_text import storable
from mimir.domain.usage import estimate
from mimir.domain.value_class import value_class

# The beginning of a piece is useless below so many tokens.
LEAST = 60
# References of one part that are listed; further ones are only counted.
MOST_MARKS = 30


@value_class
class ContextPiece:
    """One piece that a context may hold."""

    name: str
    """Unique in its context."""
    title: str = ""
    """Line above the content; never cut."""
    content: str
    importance: Importance = "important"
    data: bool = True
    """True: untrusted text, so it is fenced."""
    reference: str = ""
    """Way for the agent to get the rest, such as `read_file("api.py")`."""
    keep: Literal["head", "tail"] = "head"
    """The part that a cut keeps."""
    focus: tuple[int, ...] = ()
    """Lines that a cut keeps with their surroundings, the best first; empty: see `keep`."""
    most: int | None = None
    """Token limit of the piece; None: only the part's budget."""


@value_class
class ContextPart:
    """Pieces under one heading, with their own budget."""

    heading: str
    pieces: Sequence[ContextPiece]
    budget: int
    """Tokens; critical pieces may exceed it and leave less for the others."""
    before: str = ""
    """The engine's words under the heading."""
    merged: Sequence[WithheldPiece] = ()
    between: str = "\n\n"


@dataclass(slots=True)
class ContextBuilder:
    """Builder of one context and its receipt."""

    blocks: list[str] = field(default_factory=list[str])
    given: list[GivenPiece] = field(default_factory=list[GivenPiece])
    withheld: list[WithheldPiece] = field(default_factory=list[WithheldPiece])
    marks: dict[str, PieceFingerprint] = field(default_factory=dict[str, PieceFingerprint])
    lane: str = ""

    def note(self, piece: ContextPiece, text: str, *, whole: bool = True) -> None:
        """Enter the shown `text` of a piece in the receipt."""
        hash, excerpt = mark(piece.content)
        tokens, importance = estimate(text), piece.importance
        self.given.append(
            GivenPiece(
                name=piece.name, importance=importance, tokens=tokens, hash=hash, whole=whole
            )
        )
        uses = self.marks[hash].use_count if hash in self.marks else 0
        self.marks[hash] = PieceFingerprint(
            hash=hash, content=excerpt, first_seen=self.lane, use_count=uses + 1
        )

    def add_text(self, name: str, text: str) -> None:
        """Add a text that is never cut."""
        self.note(ContextPiece(name=name, content=text, importance="critical"), text)
        self.blocks.append(text)

    def add(self, part: ContextPart) -> None:
        """Add a part; an empty one is left out."""
        self.withheld.extend(part.merged)
        if not part.pieces and not part.before:
            return
        shown = self._fit(part)
        lead = [part.before] if part.before else []
        body = [part.between.join(shown)] if shown else []
        self.blocks.append("\n\n".join([part.heading, *lead, *body]))

    def receipt(self, role: str, hidden: Iterable[WithheldPiece] = ()) -> ContextReceipt:
        """Return the receipt of everything added."""
        return ContextReceipt(
            role=role,
            lane=self.lane,
            given=tuple(self.given),
            withheld=(*self.withheld, *hidden),
            fingerprints=tuple(self.marks.values()),
        )

    @property
    def text(self) -> str:
        """The whole context."""
        return storable("\n\n".join(self.blocks)) + "\n"

    def _fit(self, part: ContextPart) -> list[str]:
        """Return the texts to show: chosen by importance, in the given order."""
        # Critical pieces are always shown, so their cost comes first.
        left = part.budget - sum(
            estimate(_block(p, p.content)) for p in part.pieces if p.importance == "critical"
        )
        shown: dict[int, str] = {}
        references = 0
        for at, piece in _by_importance(part.pieces):
            text, cost = self._show(piece, left)
            left -= cost
            if not text:
                references += 1
                if references > MOST_MARKS:
                    continue
                text = _reference(piece)
            shown[at] = text
        unlisted = references - MOST_MARKS
        more = [f"[and {unlisted} more of them that are not listed]"] if unlisted > 0 else []
        return [*(shown[at] for at in sorted(shown)), *more]

    def _show(self, piece: ContextPiece, left: int) -> tuple[str, int]:
        """Return the text of a piece and its cost; empty: only a reference fits."""
        whole = _block(piece, piece.content)
        tokens = estimate(whole)
        if piece.importance == "critical":
            self.note(piece, whole)
            return whole, 0
        most = left if piece.most is None else min(left, piece.most)
        if tokens <= most:
            self.note(piece, whole)
            return whole, tokens
        if most < LEAST:
            self._withhold(piece, tokens)
            return "", 0
        text = _cut_piece(piece, most)
        self.note(piece, text, whole=False)
        # At least 1: some text is withheld, even if the estimate says none.
        self._withhold(piece, max(1, tokens - estimate(text)))
        return text, estimate(text)

    def _withhold(self, piece: ContextPiece, tokens: int) -> None:
        self.withheld.append(
            WithheldPiece(
                name=piece.name,
                why="budget",
                tokens=tokens,
                hash=fingerprint(piece.content),
                reference=piece.reference,
            )
        )


def first_tokens(text: str, tokens: int) -> str:
    """Return at most the first `tokens` of a text, if possible whole lines."""
    if estimate(text) <= tokens:
        return text
    # 3.5 bytes a token, as `usage.estimate` counts.
    cut = text.encode("utf-8", "surrogatepass")[: int(tokens * 3.5)].decode("utf-8", "ignore")
    line = cut.rfind("\n")
    return cut[: line + 1] if line > len(cut) // 2 else cut


def last_tokens(text: str, tokens: int) -> str:
    """Return at most the last `tokens` of a text, if possible whole lines."""
    if estimate(text) <= tokens:
        return text
    data = text.encode("utf-8", "surrogatepass")
    cut = data[len(data) - int(tokens * 3.5) :].decode("utf-8", "ignore")
    line = cut.find("\n")
    return cut[line + 1 :] if 0 <= line < len(cut) // 2 else cut


def _by_importance(pieces: Sequence[ContextPiece]) -> Iterable[tuple[int, ContextPiece]]:
    order: Sequence[Importance] = ("critical", "important", "optional")
    return sorted(enumerate(pieces), key=lambda item: order.index(item[1].importance))


def _block(piece: ContextPiece, content: str) -> str:
    body = quotation.fence_block(content) if piece.data else content
    return "\n".join(part for part in (piece.title, body) if part)


def _cut_piece(piece: ContextPiece, tokens: int) -> str:
    """Return as much of a piece as fits, with a mark for the rest."""
    room = max(1, tokens - estimate(piece.title) - LEAST // 2)
    rest = f"; {piece.reference} gives the whole" if piece.reference else ""
    size = len(piece.content)
    if piece.focus and (shown := cut_around(piece.content, piece.focus, room)):
        mark = f"[cut: {size} characters, of which the parts that matter are shown{rest}]"
        return f"{_block(piece, shown)}\n{mark}"
    shown = (first_tokens if piece.keep == "head" else last_tokens)(piece.content, room)
    which = "first" if piece.keep == "head" else "last"
    mark = f"[cut: the {which} {len(shown)} of {size} characters are shown{rest}]"
    return f"{_block(piece, shown)}\n{mark}"


def _reference(piece: ContextPiece) -> str:
    rest = f"; {piece.reference} gives it" if piece.reference else ""
    return f"{piece.title or piece.name}\n[left out: {len(piece.content)} characters{rest}]"
