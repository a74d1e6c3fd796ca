"""Recomputes every seal of a run, and holds what its rows claim against what was sealed. It changes nothing.

There is no key: who rewrites store, report and final commit together, so that all agree, is not found. Everyone else is: an edit, a
deletion, a reorder or a truncation of records, answers and objects is named by its record. Of a run that has not ended, what is there
is verified.
"""

from collections.abc import Iterator
from dataclasses import dataclass
from functools import partial

from mimir.errors import DamagedNode, StoreError
from mimir.reporting.audit import attempt_audit, chain_audit, claim_audit, git_objects
from mimir.reporting.audit.audit_data import AuditData, load_audit_data, text
from mimir.reporting.audit.git_objects import History
from mimir.store.protocol import GraphStore


@dataclass(frozen=True, slots=True, kw_only=True)
class AuditResult:
    """What recomputing showed."""

    run: str
    ok: bool
    """True: nothing was found wrong."""
    records: int
    """How many were recomputed."""
    seal: str
    """Of the run, recomputed; empty: its final gate was not passed yet."""
    problems: tuple[str, ...]
    """Each begins with the id of its record or node."""


async def verify(store: GraphStore, history: History, run: str, seal: str = "") -> AuditResult:
    """Verify a run.

    Args:
        store: Where it is; only read.
        history: Where its objects are.
        run: Its id.
        seal: What its seal must be, from a report or a commit. Empty: the one that is stored.

    Raises:
        UsageError: There is no such run.
    """
    try:
        books = await store.read(partial(load_audit_data, run=run))
    except DamagedNode as error:
        lost = f"{error.id}: it cannot be read; it was changed"
        return AuditResult(run=run, ok=False, records=0, seal="", problems=(lost,))
    found = [*_in_store(books, seal), *await git_objects.problems(books, history)]
    problems = tuple(dict.fromkeys(found))
    return AuditResult(
        run=run,
        ok=not problems,
        records=sum(len(chain.records) for chain in books.chains.values()),
        seal=claim_audit.run_seal(books),
        problems=problems,
    )


def _in_store(books: AuditData, seal: str) -> Iterator[str]:
    yield from books.unread
    yield from (f"{id}: it belongs to no chain of this run" for id in books.strays)
    for chain in books.chains.values():
        yield from chain_audit.problems(chain, books.id)
    for id, row in books.attempts.items():
        answer = books.answers.get(f"{id}/answer")
        yield from _each(id, attempt_audit.problems(row, books.chains[id], answer))
    for row in books.verdicts:
        id = str(row["id"])
        owner = books.chains.get(id.rpartition("/verdict/")[0])
        yield from _each(id, attempt_audit.verdict_problems(row, owner))
    for row in books.tasks.values():
        yield from _each(str(row["id"]), claim_audit.task_problems(books, row))
    yield from _each(books.id, claim_audit.run_problems(books))
    yield from _each(books.id, _given(books, seal.strip().lower()))


def _each(id: str, problems: Iterator[str]) -> Iterator[str]:
    """Pass problems on; a property of another type than its own is one of them."""
    try:
        yield from problems
    except StoreError as error:
        yield f"{id}: it was changed: {error}"


def _given(books: AuditData, seal: str) -> Iterator[str]:
    found = claim_audit.run_seal(books)
    if not seal or seal == found:
        return
    if not found:
        yield f"{books.id}: it has no seal yet; it is {text(books.run, 'status')!r}"
    else:
        yield f"{books.id}: its seal is {found[:12]}, not {seal[:12]} as was given"
