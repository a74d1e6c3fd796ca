"""Verification of a run: recomputes every seal and compares every claim with its records.

There is no key: the audit misses a user that rewrites the store, the report and the final commit so that all agree. Any other change is
reported with its record: an edit, a deletion, another order or a truncation of records, answers and objects.
"""

from collections.abc import Iterator
from functools import partial

from mimir.domain.value_class import value_class
from mimir.errors import DamagedNode
from mimir.reporting.audit import attempt_audit, chain_audit, claim_audit, git_objects, run_audit
from mimir.reporting.audit.audit_data import AuditData, load_audit_data
from mimir.reporting.audit.run_audit import ReportHash
from mimir.store.protocol import GraphStore
from mimir.store.sealing.row_digests import run_chain
from mimir.workspace.git.history import GitHistory


@value_class
class AuditResult:
    """Result of the verification of a run."""

    run: str
    ok: bool
    """True: there is no problem."""
    records: int
    """Recomputed records."""
    seal: str
    """Seal of the run, recomputed. Empty: the final gate has not run."""
    record: str
    """Hash of the record of the run, which covers more than the seal. Empty: it has none."""
    problems: tuple[str, ...]
    """Each begins with the id of its record or node."""


async def verify(
    store: GraphStore,
    history: GitHistory,
    run: str,
    seal: str = "",
    report_hash: ReportHash = lambda _: None,
) -> AuditResult:
    """Verify a run; of one that has not ended, everything that exists.

    Args:
        store: Store of the run; it is only read.
        history: Hidden repository with its git objects.
        run: Its id.
        seal: Expected seal, from a report or a commit, or hash of the record. Empty: the stored one.
        report_hash: Reads the file of the report.

    Raises:
        UsageError: There is no such run.
    """
    try:
        data = await store.read(partial(load_audit_data, run=run))
    except DamagedNode as error:
        lost = f"{error.id}: it cannot be read; it was changed"
        return AuditResult(run=run, ok=False, records=0, seal="", record="", problems=(lost,))
    found = [*_store_problems(data, seal)]
    found += run_audit.report_problems(data.record, report_hash, has_seal=bool(seal))
    found += [*await git_objects.problems(data, history)]
    # Two nodes can lead to the same problem.
    problems = tuple(dict.fromkeys(found))
    return AuditResult(
        run=run,
        ok=not problems,
        records=sum(len(chain.records) for chain in data.chains.values()),
        seal=claim_audit.run_seal(data),
        record=_record_hash(data),
        problems=problems,
    )


def _store_problems(data: AuditData, seal: str) -> Iterator[str]:
    stored = data.stored
    yield from stored.unread
    yield from (f"{id}: it belongs to no chain of this run" for id in data.strays)
    for chain in data.chains.values():
        yield from chain_audit.problems(chain)
    for id, attempt in stored.attempts.items():
        answer = stored.answers.get(f"{id}/answer")
        yield from attempt_audit.problems(attempt, data.chains[id], answer)
    for verdict in stored.verdicts:
        owner = data.chains.get(verdict.id.rpartition("/verdict/")[0])
        yield from attempt_audit.verdict_problems(verdict, owner)
    for task in stored.tasks.values():
        yield from claim_audit.task_problems(data, task)
    yield from claim_audit.run_problems(data)
    yield from data.record.problems
    yield from _seal_problems(data, seal.strip().lower())


def _seal_problems(data: AuditData, seal: str) -> Iterator[str]:
    found = claim_audit.run_seal(data)
    if seal and not found:
        yield f"{data.id}: it has no seal yet; it is {data.stored.run.status!r}"
    elif seal and seal not in (found, _record_hash(data)):
        yield f"{data.id}: its seal is {found[:12]}, not {seal[:12]} as was given"


def _record_hash(data: AuditData) -> str:
    sealed = data.chains[run_chain(data.id)].records
    return sealed[0].record.hash if sealed else ""
