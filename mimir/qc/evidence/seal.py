"""Hash chains over what the engine saw: any edit, deletion, reorder or truncation is named by its record. Pure.

A chain belongs to one attempt, or to a run's final gate. Each record's hash covers the record before it, its place, its kind and
its body, each part with its length before it, so that no two different chains are written as the same bytes. The chain's name is the
first link: a chain that is moved to another attempt does not verify there. There is no key: who rewrites store, report and commit
together is not found.
"""

import hashlib
import json
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Literal

from mimir.domain.evidence import EvidenceRecord

RecordKind = Literal["check", "deliverable", "verdict", "gate"]


@dataclass(frozen=True, slots=True, kw_only=True)
class ChainProblem:
    """One thing that is wrong with a chain."""

    chain: str
    seq: int
    """0-based place in the chain of the record that is wrong or missing."""
    what: str
    """What was found, in words."""


def canonical_json(value: Mapping[str, object]) -> str:
    """Write a JSON object in the one form that is sealed: sorted keys, no blanks, ASCII.

    Raises:
        ValueError: NaN or Infinity in it, which JSON does not have.
        TypeError: Something in it is no JSON value.
    """
    return json.dumps(value, sort_keys=True, separators=(",", ":"), allow_nan=False)


def fingerprint(text: str) -> str:
    """Return the SHA-256 of a text; half surrogates, which a model may send, are hashed as they stand."""
    return hashlib.sha256(text.encode("utf-8", "surrogatepass")).hexdigest()


def first_link(chain: str) -> str:
    """Return the link before the first record of the chain with this name."""
    return _digest(("mimir.chain", chain))


def append(
    chain: str, last: EvidenceRecord | None, kind: RecordKind, body: Mapping[str, object]
) -> EvidenceRecord:
    """Seal `body` as the next record after `last` (None: the chain is empty)."""
    seq = 0 if last is None else last.seq + 1
    previous = first_link(chain) if last is None else last.hash
    text = canonical_json(body)
    return EvidenceRecord(
        seq=seq, kind=kind, body=text, previous=previous, hash=_link(previous, seq, kind, text)
    )


def extend(
    chain: str,
    last: EvidenceRecord | None,
    bodies: Iterable[tuple[RecordKind, Mapping[str, object]]],
) -> tuple[EvidenceRecord, ...]:
    """Seal several bodies in this order; the new records alone."""
    records: list[EvidenceRecord] = []
    for kind, body in bodies:
        last = append(chain, last, kind, body)
        records.append(last)
    return tuple(records)


def verify(
    chain: str,
    records: Sequence[EvidenceRecord],
    *,
    length: int | None = None,
    last_hash: str | None = None,
) -> tuple[ChainProblem, ...]:
    """Recompute a chain.

    Args:
        chain: Its name.
        records: As stored, in stored order.
        length: How many there must be, as written beside the chain. None: not known, so a cut-off end is not found.
        last_hash: Hash of its last record, as written beside the chain (the `first_link` of an empty one). None: not known.

    Returns:
        What is wrong, in chain order; empty: every record is the one that was sealed. A record that is wrong in itself does not
        make those after it wrong.
    """
    problems = [*_links(chain, records), *_extent(chain, records, length)]
    end = records[-1].hash if records else first_link(chain)
    if last_hash is not None and end != last_hash and not problems:
        what = f"the chain ends with {end[:12]}, but {last_hash[:12]} was written beside it"
        problems.append(ChainProblem(chain=chain, seq=max(len(records) - 1, 0), what=what))
    return tuple(sorted(problems, key=lambda p: p.seq))


def run_seal(gate_hash: str, chains: Iterable[tuple[str, int, str]]) -> str:
    """Return the seal of a run: one hash over the gate's last hash and each (task, attempt, last hash of its chain).

    The order in which they are given does not matter.
    """
    parts = ["mimir.run", gate_hash]
    for task, attempt, last in sorted(chains):
        parts += [task, str(attempt), last]
    return _digest(parts)


def _links(chain: str, records: Sequence[EvidenceRecord]) -> list[ChainProblem]:
    """Find records that are edited, missing, doubled or out of place."""
    problems: list[ChainProblem] = []
    previous, expected = first_link(chain), 0

    def report(seq: int, what: str) -> None:
        problems.append(ChainProblem(chain=chain, seq=seq, what=what))

    for record in records:
        if record.seq > expected:
            for missing in range(expected, min(record.seq, expected + _MAX_NAMED)):
                report(missing, f"record {missing} is missing or out of place")
        elif record.seq < expected:
            report(record.seq, f"record {record.seq} stands twice or out of place")
        elif record.previous != previous:
            report(record.seq, f"record {record.seq} does not follow the record before it")
        if record.hash != _link(record.previous, record.seq, record.kind, record.body):
            report(record.seq, f"record {record.seq} was changed: its hash is not that of its body")
        previous, expected = record.hash, record.seq + 1
    return problems


def _extent(
    chain: str, records: Sequence[EvidenceRecord], length: int | None
) -> list[ChainProblem]:
    if length is None or len(records) == length:
        return []
    if len(records) > length:
        what = f"{len(records) - length} record(s) were added behind the sealed {length}"
        return [ChainProblem(chain=chain, seq=length, what=what)]
    there = {record.seq for record in records}
    first = next((seq for seq in range(length) if seq not in there), len(records))
    what = f"{length - len(records)} of {length} records are gone, the first of them record {first}"
    return [ChainProblem(chain=chain, seq=first, what=what)]


_MAX_NAMED = 20
"""Missing records named one by one; a wrong sequence number may claim millions."""


def _link(previous: str, seq: int, kind: str, body: str) -> str:
    return _digest((previous, str(seq), kind, body))


def _digest(parts: Iterable[str]) -> str:
    """Hash texts with their lengths, so that moving a byte from one to the next changes the hash."""
    digest = hashlib.sha256()
    for part in parts:
        data = part.encode("utf-8", "surrogatepass")
        digest.update(len(data).to_bytes(8, "big"))
        digest.update(data)
    return digest.hexdigest()
