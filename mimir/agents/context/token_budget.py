"""Fitting pieces into a part's budget: critical ones whole, the others whole, cut with a mark, or as a reference. Pure.

The rule of the file: nothing disappears silently. What is not shown leaves a mark that says how to get it, and an entry in the receipt.
"""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from typing import Literal

from mimir.agents.context import quotation
from mimir.agents.context.receipt import (
    ContextReceipt,
    GivenPiece,
    Importance,
    PieceFingerprint,
    WithheldPiece,
    fingerprint,
    mark,
)
from mimir.domain.usage import estimate

LEAST = 60
"""Tokens below which showing the beginning of a piece helps nobody."""
MOST_MARKS = 30
"""References listed one by one in a part; of further ones only the number is told."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ContextPiece:
    """One thing that a context may hold."""

    name: str
    """Unique in a context."""
    title: str = ""
    """Line above the content; always shown whole."""
    content: str
    importance: Importance = "important"
    data: bool = True
    """True: written by a model, a tool or a file; stands in a fence."""
    reference: str = ""
    """How the agent gets what is not shown, such as `read_file("api.py")`."""
    keep: Literal["head", "tail"] = "head"
    """What stays when it is cut."""
    most: int | None = None
    """Tokens shown at most, whatever the budget; None: no bound of its own."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ContextPart:
    """Pieces under one heading, with a budget of their own."""

    heading: str
    pieces: Sequence[ContextPiece]
    budget: int
    """Tokens; critical pieces may exceed it, and leave less to the others."""
    before: str = ""
    """Words of the engine under the heading."""
    merged: Sequence[WithheldPiece] = ()
    between: str = "\n\n"


@dataclass(slots=True)
class ContextBuilder:
    """A context that is being written, with the notes for its receipt."""

    blocks: list[str] = field(default_factory=list[str])
    given: list[GivenPiece] = field(default_factory=list[GivenPiece])
    withheld: list[WithheldPiece] = field(default_factory=list[WithheldPiece])
    marks: dict[str, PieceFingerprint] = field(default_factory=dict[str, PieceFingerprint])
    lane: str = ""

    def note(self, piece: ContextPiece, text: str, *, whole: bool = True) -> None:
        """Write down that `text` of a piece is shown."""
        hash, begins = mark(piece.content)
        self.given.append(
            GivenPiece(
                name=piece.name,
                importance=piece.importance,
                tokens=estimate(text),
                hash=hash,
                whole=whole,
            )
        )
        known = self.marks.get(hash)
        self.marks[hash] = PieceFingerprint(
            hash=hash,
            content=begins,
            first_seen=self.lane,
            use_count=known.use_count + 1 if known else 1,
        )

    def say(self, name: str, text: str) -> None:
        """Add words that are always there."""
        self.note(ContextPiece(name=name, content=text, importance="critical"), text)
        self.blocks.append(text)

    def add(self, part: ContextPart) -> None:
        """Add a part; one that has nothing to show is left out."""
        self.withheld.extend(part.merged)
        if not part.pieces and not part.before:
            return
        shown = self._fit(part)
        lead = [part.before] if part.before else []
        body = [part.between.join(shown)] if shown else []
        self.blocks.append("\n\n".join([part.heading, *lead, *body]))

    def receipt(self, role: str, hidden: Iterable[WithheldPiece] = ()) -> ContextReceipt:
        """Return the receipt of all that was added."""
        return ContextReceipt(
            role=role,
            lane=self.lane,
            given=tuple(self.given),
            withheld=(*self.withheld, *hidden),
            fingerprints=tuple(self.marks.values()),
        )

    @property
    def text(self) -> str:
        """All blocks."""
        return quotation.printable("\n\n".join(self.blocks)) + "\n"

    def _fit(self, part: ContextPart) -> list[str]:
        """Decide by importance, show in the given order."""
        left = part.budget - sum(
            estimate(_whole(p)) for p in part.pieces if p.importance == "critical"
        )
        shown: dict[int, str] = {}
        unlisted = 0
        marks = 0
        for at, piece in _by_importance(part.pieces):
            text, cost = self._show(piece, left)
            left -= cost
            if not text:
                marks += 1
                text = _reference(piece)
                if marks > MOST_MARKS:
                    unlisted += 1
                    continue
            shown[at] = text
        more = [f"[and {unlisted} more of them that are not listed]"] if unlisted else []
        return [*(shown[at] for at in sorted(shown)), *more]

    def _show(self, piece: ContextPiece, left: int) -> tuple[str, int]:
        """Return a piece's text with what it takes of the budget; empty: only a reference fits."""
        whole = _whole(piece)
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
        text = _cut(piece, most)
        self.note(piece, text, whole=False)
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
    """Return at most the first `tokens` of a text, whole lines where there are any."""
    if estimate(text) <= tokens:
        return text
    cut = text.encode("utf-8", "surrogatepass")[: int(tokens * 3.5)].decode("utf-8", "ignore")
    line = cut.rfind("\n")
    return cut[: line + 1] if line > len(cut) // 2 else cut


def last_tokens(text: str, tokens: int) -> str:
    """Return at most the last `tokens` of a text, whole lines where there are any."""
    if estimate(text) <= tokens:
        return text
    data = text.encode("utf-8", "surrogatepass")
    cut = data[len(data) - int(tokens * 3.5) :].decode("utf-8", "ignore")
    line = cut.find("\n")
    return cut[line + 1 :] if 0 <= line < len(cut) // 2 else cut


def _by_importance(pieces: Sequence[ContextPiece]) -> Iterable[tuple[int, ContextPiece]]:
    order: Sequence[Importance] = ("critical", "important", "optional")
    for importance in order:
        yield from ((at, p) for at, p in enumerate(pieces) if p.importance == importance)


def _block(piece: ContextPiece, content: str) -> str:
    body = quotation.fence_block(content) if piece.data else content
    return "\n".join(part for part in (piece.title, body) if part)


def _whole(piece: ContextPiece) -> str:
    return _block(piece, piece.content)


def _cut(piece: ContextPiece, tokens: int) -> str:
    """Show as much as fits, with a mark that says what is missing and where it is."""
    room = max(1, tokens - estimate(piece.title) - LEAST // 2)
    shown = (first_tokens if piece.keep == "head" else last_tokens)(piece.content, room)
    which = "first" if piece.keep == "head" else "last"
    rest = f"; {piece.reference} gives the whole" if piece.reference else ""
    mark = f"[cut: the {which} {len(shown)} of {len(piece.content)} characters are shown{rest}]"
    return f"{_block(piece, shown)}\n{mark}"


def _reference(piece: ContextPiece) -> str:
    rest = f"; {piece.reference} gives it" if piece.reference else ""
    return f"{piece.title or piece.name}\n[left out: {len(piece.content)} characters{rest}]"
