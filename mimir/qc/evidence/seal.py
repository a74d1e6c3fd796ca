"""Hash chains over evidence: every edit is found at its record. Pure.

A chain belongs to one attempt, or to a run's final gate. The hash of a record covers the previous record, its place, kind and body, each
with its length, so no two different chains have the same bytes. The name of the chain is the first link, so a chain that is moved
to another attempt does not verify. There is no key: a change of store, report and commit together is not found.
"""

import json
from collections.abc import Iterable, Mapping, Sequence

from mimir.domain.evidence import EvidenceRecord, RecordKind
from mimir.domain.text_hash import hash_texts
from mimir.domain.value_class import value_class


@value_class
class ChainProblem:
    """One thing that is wrong with a chain."""

    chain: str
    seq: int
    """0-based place of the wrong or missing record."""
    what: str
    """The problem, in words."""


def canonical_json(value: Mapping[str, object]) -> str:
    """Write a JSON object in the one sealed form: sorted keys, no blanks, ASCII.

    Raises:
        ValueError: It contains NaN or Infinity.
        TypeError: It contains a value that JSON does not have.
    """
    return json.dumps(value, sort_keys=True, separators=(",", ":"), allow_nan=False)


def first_link(chain: str) -> str:
    """Return the link before the first record of a chain."""
    return hash_texts(("mimir.chain", chain))


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
    """Seal several bodies in this order; return the new records alone."""
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
    """Recompute a chain, and return its problems in chain order.

    A record that is wrong in itself does not make later ones wrong. Without the recorded `length` and `last_hash` (`first_link` of an
    empty chain), a removed end is not found.
    """
    problems = [*_links(chain, records), *_extent(chain, records, length)]
    end = records[-1].hash if records else first_link(chain)
    if last_hash is not None and end != last_hash and not problems:
        what = f"the chain ends with {end[:12]}, but {last_hash[:12]} is its recorded end"
        problems.append(ChainProblem(chain=chain, seq=max(len(records) - 1, 0), what=what))
    return tuple(sorted(problems, key=lambda p: p.seq))


def run_seal(gate_hash: str, chains: Iterable[tuple[str, int, str]]) -> str:
    """Return a run's seal: a hash of the gate's and all attempts' last hashes, in any order."""
    parts = ["mimir.run", gate_hash]
    # Sorted, because processes complete tasks in any order.
    for task, attempt, last in sorted(chains):
        parts += [task, str(attempt), last]
    return hash_texts(parts)


def _links(chain: str, records: Sequence[EvidenceRecord]) -> list[ChainProblem]:
    """Find records that are edited, missing, duplicated or out of place."""
    problems: list[ChainProblem] = []
    previous, expected = first_link(chain), 0

    def report(seq: int, what: str) -> None:
        problems.append(ChainProblem(chain=chain, seq=seq, what=what))

    for record in records:
        if record.seq > expected:
            # Bounded: a forged sequence number may claim millions of missing records.
            for missing in range(expected, min(record.seq, expected + _MAX_NAMED)):
                report(missing, f"record {missing} is missing or out of place")
        elif record.seq < expected:
            report(record.seq, f"record {record.seq} is duplicated or out of place")
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
        what = f"{len(records) - length} record(s) were added after the sealed {length}"
        return [ChainProblem(chain=chain, seq=length, what=what)]
    there = {record.seq for record in records}
    first = next((seq for seq in range(length) if seq not in there), len(records))
    what = (
        f"{length - len(records)} of {length} records are missing, the first of them record {first}"
    )
    return [ChainProblem(chain=chain, seq=first, what=what)]


_MAX_NAMED = 20
"""Most missing records that are listed; a wrong sequence number may claim millions."""


def _link(previous: str, seq: int, kind: str, body: str) -> str:
    return hash_texts((previous, str(seq), kind, body))
