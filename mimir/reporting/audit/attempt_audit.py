"""One attempt: does what its node holds (deliverable, checks, judgement, answer) agree with what was sealed of it?"""

from collections.abc import Generator, Iterator
from fractions import Fraction
from typing import TypeVar

from mimir.attempts.results import JUDGEMENT, OUTCOMES, WORK, Deliverable, JsonCodec
from mimir.domain.verdict import Verdict
from mimir.errors import StoreError
from mimir.qc.evidence.payloads import check_bodies, deliverable_body, verdict_body
from mimir.qc.evidence.seal import canonical_json, fingerprint
from mimir.reporting.audit.chain_audit import AuditedRecord, EvidenceChain
from mimir.store import row_fields
from mimir.store.operations import evidence
from mimir.store.protocol import Row

T = TypeVar("T")


def problems(row: Row, chain: EvidenceChain, answer: Row | None) -> Iterator[str]:
    """Name what an attempt's node, or its answer, says otherwise than the sealed records.

    Args:
        row: The attempt.
        chain: Its chain.
        answer: The artifact of its closing answer, if there is one.
    """
    work = yield from _read(WORK, row, "workJson")
    yield from _deliverable(row, chain, work)
    yield from _checks(row, chain)
    yield from _judgement(row, chain)
    yield from _answer(row, chain, work, answer)


def verdict_problems(row: Row, chain: EvidenceChain | None) -> Iterator[str]:
    """Name what a Verdict node says otherwise than the sealed verdicts of its attempt."""
    id = str(row["id"])
    try:
        judgement = evidence.judgement_of(row)
    except StoreError as error:
        yield f"{id}: its judgement cannot be read: {error}"
        return
    if row.get("passed") is not judgement.passed or row.get("score") != float(judgement.score):
        yield f"{id}: its score, or that it passed, was changed"
    if not any(_is_of(judgement, one) for one in (chain.verdicts if chain else ())):
        yield f"{id}: no sealed record holds this verdict"


def score(verdict: AuditedRecord) -> float | None:
    """Return the score of a sealed verdict; None: it holds none that can be read."""
    try:
        return float(Fraction(verdict.text("score")))
    except (ValueError, ZeroDivisionError, OverflowError):
        return None


def _deliverable(row: Row, chain: EvidenceChain, work: Deliverable | None) -> Iterator[str]:
    sealed = chain.deliverable
    if sealed is None:
        if chain.records:
            yield f"{chain.name}#00000: the record of the deliverable is gone"
        return
    if work is None:
        yield f"{row['id']}: its deliverable is gone; {sealed.id} sealed it"
        return
    body = deliverable_body(work.tree, work.base_tree, work.answer, work.changed)
    if canonical_json(body) != sealed.record.body:
        yield f"{row['id']}: its deliverable is not the one that {sealed.id} sealed"
    noted = {"tree": work.tree, "answerHash": sealed.text("answerHash")}
    for name, value in noted.items():
        if row.get(name) not in (None, value):
            yield f"{row['id']}: property {name!r} is not what {sealed.id} sealed"


def _checks(row: Row, chain: EvidenceChain) -> Iterator[str]:
    outcomes = yield from _read(OUTCOMES, row, "checksJson")
    told = [canonical_json(body) for outcome in outcomes or () for body in check_bodies(outcome)]
    sealed = chain.checks
    if not chain.records and not told:
        return
    for number, one in enumerate(sealed):
        if number >= len(told) or told[number] != one.record.body:
            yield f"{row['id']}: what it says of its checks is not what {one.id} sealed"
            return
    if len(told) > len(sealed):
        yield f"{row['id']}: it tells of {len(told) - len(sealed)} check run(s) that no record sealed"


def _judgement(row: Row, chain: EvidenceChain) -> Iterator[str]:
    judgement = yield from _read(JUDGEMENT, row, "judgementJson")
    verdicts = chain.verdicts
    if not verdicts:
        if judgement is not None:
            yield f"{row['id']}: it holds a judgement that no record sealed"
        return
    first, last = verdicts[0], verdicts[-1]
    if judgement is None or not _is_of(judgement, last):
        yield f"{row['id']}: its judgement is not the one that {last.id} sealed"
    claimed = row.get("qcScore")
    if claimed is not None and claimed != score(first):
        yield f"{row['id']}: property 'qcScore' is not what {first.id} sealed"
    if row.get("qcPassed") not in (None, first.body.get("passed")):
        yield f"{row['id']}: property 'qcPassed' is not what {first.id} sealed"


def _is_of(judgement: Verdict, sealed: AuditedRecord) -> bool:
    """True if this ruling was sealed in this record; tree and answer are the record's own."""
    body = dict(verdict_body(judgement, sealed.text("tree"), ""))
    body["answerHash"] = sealed.text("answerHash")
    return canonical_json(body) == sealed.record.body


def _answer(
    row: Row, chain: EvidenceChain, work: Deliverable | None, answer: Row | None
) -> Iterator[str]:
    if work is None:
        return
    id, sealed = f"{row['id']}/answer", chain.deliverable
    if answer is None:
        yield f"{id}: the answer is gone" + (f"; {sealed.id} sealed it" if sealed else "")
        return
    text = row_fields.text_field(answer, "text")
    hash = fingerprint(text)
    if sealed and hash != sealed.text("answerHash"):
        yield f"{id}: it was changed; it is not the answer that {sealed.id} sealed"
    elif not sealed and hash != fingerprint(work.answer):
        yield f"{id}: it was changed; it is not the answer that the attempt holds"
    if answer.get("sha256") != hash or answer.get("length") != len(text):
        yield f"{id}: its noted hash or length is not that of its text"
    for name in ("workerOutput", "answerText"):
        told = row.get(name)
        if isinstance(told, str) and not text.startswith(told):
            yield f"{row['id']}: property {name!r} is not the answer that stands in {id}"


def _read(stored: JsonCodec[T], row: Row, name: str) -> Generator[str, None, T | None]:
    """Return a value of the node; None, and its problem, if it cannot be read."""
    text = row.get(name)
    if text is None:
        return None
    try:
        return stored.decode(text if isinstance(text, str) else "")
    except StoreError:
        yield f"{row['id']}: property {name!r} cannot be read; it was changed"
        return None
