"""What the rows of tasks and of the run claim: is each claim backed by a sealed record, and bound to this very deliverable?

The rule of the file: `completed` rests on a sealed passing verdict on the tree and the answer that were delivered, a run's `completed` on a
sealed gate without a red check on the final tree.
"""

from collections.abc import Iterable, Iterator, Mapping

from mimir.domain.plan import Task
from mimir.domain.task_states import RUN_ENDED, RunStatus, TaskStatus
from mimir.qc.evidence import seal
from mimir.reporting.audit.attempt_audit import score
from mimir.reporting.audit.audit_data import AuditData, text
from mimir.reporting.audit.chain_audit import AuditedRecord, EvidenceChain
from mimir.store import row_fields
from mimir.store.operations import evidence
from mimir.store.protocol import Row
from mimir.store.schema import well_formed

_CLOSED = (RunStatus.COMPLETED, RunStatus.COMPLETED_WITH_GAPS, RunStatus.FAILED)
"""Ends that a run comes to through its final gate."""


def run_seal(books: AuditData) -> str:
    """Return the run's seal, recomputed; empty: no gate was passed yet."""
    if not books.gate.records and books.gate.length is None:
        return ""
    chains = [
        (text(row, "taskId"), _number(row), books.chains[id].end)
        for id, row in books.attempts.items()
        if books.chains[id].records or row.get("chainHash")
    ]
    return seal.run_seal(books.gate.end, chains)


def task_problems(books: AuditData, row: Row) -> Iterator[str]:
    """Name what a task's row claims without a sealed record that backs it."""
    id, task = str(row["id"]), text(row, "taskId")
    status = text(row, "status")
    told = books.folded.get(task)
    if told is not None and told.value != status:
        yield f"{id}: its status is {status!r}, but its events say {told.value!r}"
    newest = books.attempts.get(f"{id}/{row_fields.int_field(row, 'attemptNumber')}")
    if newest is not None and newest.get("status") != status:
        yield f"{id}: its status is {status!r}, but its attempt {newest['id']} says {newest.get('status')!r}"
    match status:
        case TaskStatus.COMPLETED.value:
            yield from _completed(books, row)
        case TaskStatus.QC_PASSED.value | TaskStatus.QC_FAILED.value:
            yield from _ruled(books, row, passed=status == TaskStatus.QC_PASSED.value)
        case _:
            yield from _scored(books, row)


def run_problems(books: AuditData) -> Iterator[str]:
    """Name what the run's row claims without a sealed record that backs it."""
    run, status = books.id, _run_status(books)
    for task in books.folded:
        if task not in books.tasks and f"{run}/{task}" not in books.damaged:
            yield f"{run}/{task}: this task is gone; the run's events tell of it"
    if status is None:
        yield f"{run}: property 'status' cannot be read; it was changed"
        return
    if status not in RUN_ENDED or text(books.run, "kind") != "execute":
        return
    if status in _CLOSED:
        yield from _sealed_run(books, status)
    if status in (RunStatus.COMPLETED, RunStatus.COMPLETED_WITH_GAPS):
        yield from _completed_run(books, status)


def _completed(books: AuditData, row: Row) -> Iterator[str]:
    id, number = str(row["id"]), row_fields.int_field(row, "acceptedAttempt")
    chain = books.chains.get(f"{id}/{number}")
    delivered = chain.deliverable if chain else None
    if chain is None or delivered is None or not chain.verdicts:
        yield f"{id}: it is completed, but no sealed verdict of attempt {number} backs it"
        return
    first, last = chain.verdicts[0], chain.verdicts[-1]
    yield from (
        f"{one.id}: {id} is completed, but this verdict did not pass it"
        for one in (first, last)
        if one.body.get("passed") is not True
    )
    yield from _bound(id, delivered, first)
    yield from _integrated(books, row, chain, delivered)
    yield from _shown(row, delivered, last)
    yield from _counted(row, chain)


def _bound(id: str, delivered: AuditedRecord, verdict: AuditedRecord) -> Iterator[str]:
    for name, what in (("tree", "tree"), ("answerHash", "answer")):
        if delivered.text(name) != verdict.text(name):
            yield f"{verdict.id}: this verdict is on another {what} than {id} delivered"


def _integrated(
    books: AuditData, row: Row, chain: EvidenceChain, delivered: AuditedRecord
) -> Iterator[str]:
    """Name what does not hold of the way from the deliverable to the line; a task that was taken over has an older one."""
    id, tree = str(row["id"]), text(row, "integratedTree")
    commit = text(row, "integratedCommit")
    told = books.commits.get(text(row, "taskId"))
    if told is not None and told != commit:
        yield f"{id}: property 'integratedCommit' is not the commit that its event names"
    red = f"{id} is completed, but this check is red on its merged tree"
    yield from _red_on(books, chain.merged, tree, red)
    if row.get("takenFrom"):
        return
    changed = delivered.text("tree") != delivered.text("baseTree")
    if changed and not (tree and commit):
        yield f"{id}: it is completed, but the commit of its deliverable is gone"
        return
    proven = {delivered.text("tree"), *(one.about for one in chain.merged)}
    if changed and chain.merged and tree not in proven:
        yield f"{id}: property 'integratedTree' is no tree that its records prove"
    if len(chain.verdicts) > 1 and chain.verdicts[-1].text("tree") != tree:
        yield f"{chain.verdicts[-1].id}: this verdict is on another tree than the one that was merged"


def _red_on(books: AuditData, runs: Iterable[AuditedRecord], tree: str, why: str) -> Iterator[str]:
    """Name runs that stayed red of checks that count."""
    newest: dict[tuple[str, str], AuditedRecord] = {}
    for one in runs:
        if one.about == tree:
            newest[one.text("task"), one.text("check")] = one
    for (task, check), one in newest.items():
        if not one.green and check in _counting(books, task):
            yield f"{one.id}: {why}"


def _counting(books: AuditData, task: str) -> set[str]:
    """Return the required checks of a completed task that its sealed records count as passed."""
    row = books.tasks.get(task)
    if row is None or row.get("status") != TaskStatus.COMPLETED.value:
        return set()
    chain = books.chains.get(f"{row['id']}/{row_fields.int_field(row, 'acceptedAttempt')}")
    return {
        one.text("check")
        for one in (chain.checks if chain else ())
        if one.text("state") == "passed" and one.body.get("required") is True
    }


def _shown(row: Row, delivered: AuditedRecord, verdict: AuditedRecord) -> Iterator[str]:
    """Name what a completed task shows otherwise than its records."""
    id = str(row["id"])
    if row.get("qcScore") != score(verdict) or row.get("qcPassed") is not True:
        yield f"{id}: its score, or that it passed, is not what {verdict.id} sealed"
    if sorted(row_fields.text_list_field(row, "filesChanged")) != sorted(
        map(well_formed, delivered.texts("changed"))
    ):
        yield f"{id}: property 'filesChanged' is not what {delivered.id} sealed"
    yield from _tallied(row, verdict)


def _tallied(row: Row, verdict: AuditedRecord) -> Iterator[str]:
    """Name counts of criteria that the sealed verdict does not bear out; rows of an earlier version have none."""
    sealed = verdict.objects("criteria")
    counts = evidence.properties((str(c.get("state")), str(c.get("basis"))) for c in sealed)
    for name, number in counts.items():
        if row.get(name) not in (None, number):
            yield f"{row['id']}: property {name!r} is not what {verdict.id} sealed"


def _counted(row: Row, chain: EvidenceChain) -> Iterator[str]:
    """Name a check that counts as passed, or a verdict that passed, against what the checks themselves showed."""
    id = str(row["id"])
    states = {one.text("check"): one for one in chain.checks if one.text("state")}
    passed = {check for check, one in states.items() if one.text("state") == "passed"}
    if set(row_fields.text_list_field(row, "passedChecks")) != passed:
        yield f"{id}: property 'passedChecks' is not what the records of its checks say"
    for one in states.values():
        if one.body.get("required") is True and one.text("state") == "failed":
            yield f"{one.id}: {id} is completed, but this required check failed"


def _ruled(books: AuditData, row: Row, *, passed: bool) -> Iterator[str]:
    id = str(row["id"])
    chain = books.chains.get(f"{id}/{row_fields.int_field(row, 'attemptNumber')}")
    if chain is None or not chain.verdicts:
        yield f"{id}: its status is {row.get('status')!r}, but no verdict of its attempt is sealed"
    elif chain.verdicts[0].body.get("passed") is not passed:
        yield f"{id}: its status is {row.get('status')!r}, but {chain.verdicts[0].id} says otherwise"


def _scored(books: AuditData, row: Row) -> Iterator[str]:
    """Compare the score of a task that is not completed with its last verdict."""
    claimed, id = row.get("qcScore"), str(row["id"])
    if claimed is None:
        return
    for number in range(row_fields.int_field(row, "attemptNumber"), 0, -1):
        chain = books.chains.get(f"{id}/{number}")
        if chain and chain.verdicts:
            if claimed != score(chain.verdicts[0]):
                yield f"{id}: property 'qcScore' is not what {chain.verdicts[0].id} sealed"
            yield from _tallied(row, chain.verdicts[0])
            return
    yield f"{id}: it has a score, but no verdict of it is sealed"


def _sealed_run(books: AuditData, status: RunStatus) -> Iterator[str]:
    run, claimed = books.id, text(books.run, "seal")
    found = run_seal(books)
    if not claimed:
        yield f"{run}: it has ended {status.value!r} without a seal"
    elif claimed != found:
        yield f"{run}: property 'seal' is {claimed[:12]}, but its chains give {found[:12] or 'none'}"
    if books.told_seal not in ("", claimed):
        yield f"{run}: property 'seal' is not the one that the event of its end names"
    noted = text(books.run, "outcome")
    if noted and noted != status.value:
        yield f"{run}: its status is {status.value!r}, but its outcome was {noted!r}"


def _completed_run(books: AuditData, status: RunStatus) -> Iterator[str]:
    run = books.id
    for task, row in books.tasks.items():
        if row.get("status") != TaskStatus.COMPLETED.value:
            yield f"{run}: it is {status.value!r}, but task {task} is {row.get('status')!r}"
        elif status is RunStatus.COMPLETED:
            yield from _gaps(books, row)
    yield from _gate(books, status)


def _gaps(books: AuditData, row: Row) -> Iterator[str]:
    chain = books.chains.get(f"{row['id']}/{row_fields.int_field(row, 'acceptedAttempt')}")
    if chain is None or not chain.verdicts:
        return
    last = chain.verdicts[-1]
    still = [c for c in last.objects("criteria") if c.get("state") != "passed"]
    if still:
        yield f"{last.id}: the run is 'completed', but criterion {still[0].get('id')!r} is {still[0].get('state')!r}"


def _gate(books: AuditData, status: RunStatus) -> Iterator[str]:
    run = books.id
    passage, closing = _last_passage(books.gate)
    if closing is None:
        yield f"{run}/gate: the run is {status.value!r}, but no final gate is sealed"
        return
    tree = text(books.run, "headTree")
    if closing.text("tree") != tree:
        yield f"{closing.id}: this gate is on another tree than the result"
    if closing.objects("red"):
        yield f"{closing.id}: the run is {status.value!r}, but this gate is red"
    yield from _red_on(
        books,
        passage,
        tree,
        f"the run is {status.value!r}, but this check is red at its final gate",
    )
    seen = {(one.text("task"), one.text("check")) for one in passage}
    for task in books.plan.tasks if books.plan else ():
        yield from _unguarded(books, task, seen, closing)


def _unguarded(
    books: AuditData, task: Task, seen: set[tuple[str, str]], closing: AuditedRecord
) -> Iterator[str]:
    for check in sorted(_counting(books, task.id)):
        if (task.id, check) not in seen:
            yield f"{closing.id}: this gate did not run check {check!r} of {task.id}"


def _last_passage(gate: EvidenceChain) -> tuple[list[AuditedRecord], AuditedRecord | None]:
    """Return the runs of the last passage and the record that closes it."""
    passages: list[tuple[list[AuditedRecord], AuditedRecord]] = []
    runs: list[AuditedRecord] = []
    for one in gate.records:
        if one.record.kind == "gate":
            passages.append((runs, one))
            runs = []
        else:
            runs.append(one)
    return passages[-1] if passages else ([], None)


def _number(row: Row) -> int:
    number = row.get("seq")
    return number if isinstance(number, int) else -1


def _run_status(books: AuditData) -> RunStatus | None:
    known: Mapping[str, RunStatus] = {status.value: status for status in RunStatus}
    return known.get(text(books.run, "status"))
