"""Audit of one attempt: deliverable, checks, verdict and answer agree with the records."""

from collections.abc import Generator, Iterator
from fractions import Fraction
from typing import TypeVar

from mimir.domain.deliverable import Deliverable
from mimir.domain.evidence import CheckOutcome
from mimir.domain.text_hash import hash_text
from mimir.domain.verdict import Verdict
from mimir.errors import StoreError
from mimir.qc.evidence.payloads import check_bodies, deliverable_body, verdict_body
from mimir.qc.evidence.seal import canonical_json
from mimir.reporting.audit.chain_audit import AuditedRecord, EvidenceChain
from mimir.store.records.audited_records import (
    AuditedArtifactRecord,
    AuditedAttemptRecord,
    AuditedVerdictRecord,
)
from mimir.store.records.record_codec import PackedJson

T = TypeVar("T")


def problems(
    attempt: AuditedAttemptRecord, chain: EvidenceChain, answer: AuditedArtifactRecord | None
) -> Iterator[str]:
    """Yield where the node of an attempt, or its answer, differs from the sealed records."""
    deliverable = yield from _decode(attempt.deliverable, Deliverable)
    yield from _deliverable_problems(attempt, chain, deliverable)
    yield from _check_problems(attempt, chain)
    yield from _judgement_problems(attempt, chain)
    if deliverable:
        yield from _answer_problems(attempt, chain, deliverable, answer)


def verdict_problems(node: AuditedVerdictRecord, chain: EvidenceChain | None) -> Iterator[str]:
    """Yield where a Verdict node differs from the sealed verdicts of its attempt."""
    try:
        verdict = node.verdict.decode(Verdict)
    except StoreError as error:
        yield f"{node.id}: its verdict cannot be read: {error}"
        return
    # `is`: a stored 1 is not True.
    if node.passed is not verdict.passed or node.score != float(verdict.score):
        yield f"{node.id}: its score, or that it passed, was changed"
    if not any(_is_sealed_in(verdict, one) for one in (chain.verdicts if chain else ())):
        yield f"{node.id}: no sealed record holds this verdict"


def sealed_score(verdict: AuditedRecord) -> float | None:
    """Return the score of a sealed verdict; None: it has none that can be read."""
    try:
        return float(Fraction(verdict.text("score")))
    except (ValueError, ZeroDivisionError, OverflowError):
        return None


def _deliverable_problems(
    attempt: AuditedAttemptRecord, chain: EvidenceChain, deliverable: Deliverable | None
) -> Iterator[str]:
    sealed = chain.deliverable
    if sealed is None:
        if chain.records:
            yield f"{chain.name}#00000: the record of the deliverable is gone"
        return
    if deliverable is None:
        yield f"{attempt.id}: its deliverable is gone; {sealed.id} sealed it"
        return
    body = deliverable_body(
        deliverable.tree, deliverable.base_tree, deliverable.answer, deliverable.changed
    )
    if canonical_json(body) != sealed.record.body:
        yield f"{attempt.id}: its deliverable is not the one that {sealed.id} sealed"
    # Accepted attempts do not repeat these two properties.
    if attempt.tree not in (None, deliverable.tree):
        yield f"{attempt.id}: property 'tree' differs from the value that {sealed.id} sealed"
    if attempt.answer_hash not in (None, sealed.text("answerHash")):
        yield f"{attempt.id}: property 'answerHash' differs from the value that {sealed.id} sealed"


def _check_problems(attempt: AuditedAttemptRecord, chain: EvidenceChain) -> Iterator[str]:
    outcomes = yield from _decode(attempt.check_outcomes, tuple[CheckOutcome, ...])
    shown = [canonical_json(body) for outcome in outcomes or () for body in check_bodies(outcome)]
    sealed = chain.checks
    if not chain.records and not shown:
        return
    for number, one in enumerate(sealed):
        if number >= len(shown) or shown[number] != one.record.body:
            yield f"{attempt.id}: its check outcomes differ from the values that {one.id} sealed"
            return
    if len(shown) > len(sealed):
        yield f"{attempt.id}: it has {len(shown) - len(sealed)} check run(s) that no record sealed"


def _judgement_problems(attempt: AuditedAttemptRecord, chain: EvidenceChain) -> Iterator[str]:
    verdict = yield from _decode(attempt.verdict, Verdict)
    if not chain.verdicts:
        if verdict is not None:
            yield f"{attempt.id}: it has a verdict that no record sealed"
        return
    # The first verdict gave the score; a second one judged the merged tree.
    first, last = chain.verdicts[0], chain.verdicts[-1]
    if verdict is None or not _is_sealed_in(verdict, last):
        yield f"{attempt.id}: its verdict is not the one that {last.id} sealed"
    if attempt.qc_score not in (None, sealed_score(first)):
        yield f"{attempt.id}: property 'qcScore' differs from the value that {first.id} sealed"
    if attempt.qc_passed not in (None, first.body.get("passed")):
        yield f"{attempt.id}: property 'qcPassed' differs from the value that {first.id} sealed"


def _is_sealed_in(verdict: Verdict, sealed: AuditedRecord) -> bool:
    # Tree and answer are taken from the record: they bind the verdict, and are no part of it.
    body = dict(verdict_body(verdict, sealed.text("tree"), ""))
    body["answerHash"] = sealed.text("answerHash")
    return canonical_json(body) == sealed.record.body


def _answer_problems(
    attempt: AuditedAttemptRecord,
    chain: EvidenceChain,
    deliverable: Deliverable,
    answer: AuditedArtifactRecord | None,
) -> Iterator[str]:
    id, sealed = f"{attempt.id}/answer", chain.deliverable
    if answer is None:
        yield f"{id}: the answer is gone" + (f"; {sealed.id} sealed it" if sealed else "")
        return
    hash = hash_text(answer.text)
    if sealed and hash != sealed.text("answerHash"):
        yield f"{id}: it was changed; it is not the answer that {sealed.id} sealed"
    elif not sealed and hash != hash_text(deliverable.answer):
        yield f"{id}: it was changed; it is not the answer that the attempt holds"
    if answer.sha256 != hash or answer.length != len(answer.text):
        yield f"{id}: its noted hash or length is not that of its text"
    for name, shown in (
        ("workerOutput", attempt.worker_output),
        ("answerText", attempt.answer_text),
    ):
        if shown is not None and not answer.text.startswith(shown):
            yield f"{attempt.id}: property {name!r} is not the answer that stands in {id}"


def _decode(packed: PackedJson, kind: type[T]) -> Generator[str, None, T | None]:
    """Return a value of the node; yield a problem and return None if it cannot be read."""
    if not packed:
        return None
    try:
        return packed.decode(kind)
    except StoreError:
        yield f"{packed.node}: property {packed.property!r} cannot be read; it was changed"
        return None
