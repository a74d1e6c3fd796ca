"""Audit of claims: a sealed record on the same deliverable backs each claim.

A task's `completed` needs a sealed passing verdict on the tree and answer that were delivered. A run's `completed` needs a sealed final
gate without a red check on the final tree.
"""

from collections.abc import Iterable, Iterator

from mimir.domain.criteria_counts import count_criteria
from mimir.domain.json_value import as_member, as_text
from mimir.domain.plan import Task
from mimir.domain.task_states import RUN_ENDED, RunStatus, TaskStatus
from mimir.qc.evidence import seal
from mimir.qc.evidence.payloads import facts_hash
from mimir.reporting.audit.attempt_audit import sealed_score
from mimir.reporting.audit.audit_data import AuditData
from mimir.reporting.audit.chain_audit import AuditedRecord, EvidenceChain
from mimir.store.records.audited_records import AuditedTaskRecord
from mimir.store.schema import well_formed

_CLOSED = (RunStatus.COMPLETED, RunStatus.COMPLETED_WITH_GAPS, RunStatus.FAILED)
"""Outcomes that the final gate decides."""


def run_seal(data: AuditData) -> str:
    """Return the run's seal, recomputed; empty: no gate was passed yet."""
    if not data.gate.records and data.gate.length is None:
        return ""
    chains = [
        (attempt.task_id, attempt.number, data.chains[id].end)
        for id, attempt in data.stored.attempts.items()
        if data.chains[id].records or attempt.evidence_hash
    ]
    return seal.run_seal(data.gate.end, chains)


def task_problems(data: AuditData, row: AuditedTaskRecord) -> Iterator[str]:
    """Yield claims of a task that no sealed record backs."""
    id, status = row.id, as_text(row.status)
    # Events are a second record of the status: an edit of the node alone is found.
    expected = data.statuses.get(row.task_id)
    if expected is not None and expected.value != status:
        yield f"{id}: its status is {status!r}, but its events say {expected.value!r}"
    newest = data.stored.attempts.get(f"{id}/{row.attempt_number}")
    if newest is not None and newest.status != status:
        yield f"{id}: its status is {status!r}, but its attempt {newest.id} says {newest.status!r}"
    match status:
        case TaskStatus.COMPLETED.value:
            yield from _completion_problems(data, row)
        case TaskStatus.QC_PASSED.value | TaskStatus.QC_FAILED.value:
            yield from _verdict_problems(data, row, passed=status == TaskStatus.QC_PASSED.value)
        case _:
            yield from _score_problems(data, row)


def run_problems(data: AuditData) -> Iterator[str]:
    """Yield claims of the run that no sealed record backs."""
    run, status = data.id, _run_status(data)
    for task in data.statuses:
        if task not in data.stored.tasks and f"{run}/{task}" not in data.stored.damaged:
            yield f"{run}/{task}: this task is gone; the run's events tell of it"
    if status is None:
        yield f"{run}: property 'status' cannot be read; it was changed"
        return
    if status not in RUN_ENDED or data.stored.run.kind == "plan":
        return
    if status in _CLOSED:
        yield from _sealed_run(data, status)
    if status in (RunStatus.COMPLETED, RunStatus.COMPLETED_WITH_GAPS):
        yield from _completed_run(data, status)


def _completion_problems(data: AuditData, row: AuditedTaskRecord) -> Iterator[str]:
    id, number, chain = row.id, row.accepted_attempt, data.accepted_chain(row)
    delivered = chain.deliverable if chain else None
    if chain is None or delivered is None or not chain.verdicts:
        yield f"{id}: it is completed, but no sealed verdict of attempt {number} backs it"
        return
    # The first verdict is on the attempt's own tree, a later one on the merged tree.
    first, last = chain.verdicts[0], chain.verdicts[-1]
    yield from (
        f"{one.id}: {id} is completed, but this verdict did not pass it"
        for one in (first, last)
        if not one.passed
    )
    yield from _binding_problems(id, delivered, first)
    yield from _merge_problems(data, row, chain, delivered)
    yield from _property_problems(row, delivered, last)
    yield from _check_problems(row, chain)


def _binding_problems(id: str, delivered: AuditedRecord, verdict: AuditedRecord) -> Iterator[str]:
    for name, noun in (("tree", "tree"), ("answerHash", "answer")):
        if delivered.text(name) != verdict.text(name):
            yield f"{verdict.id}: this verdict is on another {noun} than {id} delivered"


def _merge_problems(
    data: AuditData, row: AuditedTaskRecord, chain: EvidenceChain, delivered: AuditedRecord
) -> Iterator[str]:
    """Yield where the merge of a deliverable is not proven."""
    id, tree, commit = row.id, row.integrated_tree, row.integrated_commit
    named = data.commits.get(row.task_id)
    if named is not None and named != commit:
        yield f"{id}: property 'integratedCommit' is not the commit that its event names"
    red = f"{id} is completed, but this check is red on its merged tree"
    yield from _red_on(data, chain.merged, tree, red)
    if row.taken_from:  # an earlier run merged it
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


def _red_on(data: AuditData, runs: Iterable[AuditedRecord], tree: str, why: str) -> Iterator[str]:
    """Yield the last red runs of required checks on a tree."""
    # A repeated check run replaces the earlier one.
    newest: dict[tuple[str, str], AuditedRecord] = {}
    for one in runs:
        if one.about == tree:
            newest[one.text("task"), one.text("check")] = one
    for (task, check), one in newest.items():
        if not one.green and check in _required_passed_checks(data, task):
            yield f"{one.id}: {why}"


def _required_passed_checks(data: AuditData, task: str) -> set[str]:
    """Return the required checks of a completed task that its sealed records count as passed."""
    row = data.stored.tasks.get(task)
    if row is None or row.status != TaskStatus.COMPLETED.value:
        return set()
    chain = data.accepted_chain(row)
    return {
        one.text("check")
        for one in (chain.checks if chain else ())
        if one.text("state") == "passed" and one.body.get("required") is True
    }


def _property_problems(
    row: AuditedTaskRecord, delivered: AuditedRecord, verdict: AuditedRecord
) -> Iterator[str]:
    """Yield where a completed task differs from its records."""
    if row.qc_score != sealed_score(verdict) or row.qc_passed is not True:
        yield f"{row.id}: its score or its state of passing differs from the value that {verdict.id} sealed"
    if sorted(row.files_changed) != sorted(map(well_formed, delivered.texts("changed"))):
        yield f"{row.id}: property 'filesChanged' differs from the value that {delivered.id} sealed"
    yield from _count_problems(row, verdict)


def _count_problems(row: AuditedTaskRecord, verdict: AuditedRecord) -> Iterator[str]:
    """Yield criteria counts that differ from the sealed verdict; old tasks have no counts."""
    sealed = verdict.objects("criteria")
    counts = count_criteria((str(c.get("state")), str(c.get("basis"))) for c in sealed)
    for name, stored, number in (
        ("criteriaExecuted", row.criteria_executed, counts.executed),
        ("criteriaJudged", row.criteria_judged, counts.judged),
        ("criteriaUnverified", row.criteria_unverified, counts.unverified),
        ("criteriaFailed", row.criteria_failed, counts.failed),
        ("criteriaOpen", row.criteria_open, counts.open),
    ):
        if stored not in (None, number):
            yield f"{row.id}: property {name!r} differs from the value that {verdict.id} sealed"


def _check_problems(row: AuditedTaskRecord, chain: EvidenceChain) -> Iterator[str]:
    """Yield checks that count as passed although their records say otherwise."""
    states = {one.text("check"): one for one in chain.checks if one.text("state")}
    passed = {check for check, one in states.items() if one.text("state") == "passed"}
    if set(row.passed_checks) != passed:
        yield f"{row.id}: property 'passedChecks' differs from the records of its checks"
    for one in states.values():
        if one.body.get("required") is True and one.text("state") == "failed":
            yield f"{one.id}: {row.id} is completed, but this required check failed"
    for one in chain.controls:
        if one.text("control") == "insensitive":
            yield f"{one.id}: {row.id} is completed, but this check ignored changed expectations"


def _verdict_problems(data: AuditData, row: AuditedTaskRecord, *, passed: bool) -> Iterator[str]:
    id, chain = row.id, data.chains.get(f"{row.id}/{row.attempt_number}")
    if chain is None or not chain.verdicts:
        yield f"{id}: its status is {row.status!r}, but no verdict of its attempt is sealed"
    elif chain.verdicts[0].body.get("passed") is not passed:
        yield f"{id}: its status is {row.status!r}, but {chain.verdicts[0].id} says otherwise"


def _score_problems(data: AuditData, row: AuditedTaskRecord) -> Iterator[str]:
    """Compare the score of a task that is not completed with its last verdict."""
    claimed, id = row.qc_score, row.id
    if claimed is None:
        return
    # The newest attempt may have no verdict yet: the score is of an earlier one.
    for number in range(row.attempt_number, 0, -1):
        chain = data.chains.get(f"{id}/{number}")
        if chain and chain.verdicts:
            if claimed != sealed_score(chain.verdicts[0]):
                yield f"{id}: property 'qcScore' differs from the value that {chain.verdicts[0].id} sealed"
            yield from _count_problems(row, chain.verdicts[0])
            return
    yield f"{id}: it has a score, but no verdict of it is sealed"


def _sealed_run(data: AuditData, status: RunStatus) -> Iterator[str]:
    run, claimed = data.id, data.stored.run.seal
    found = run_seal(data)
    if not claimed:
        yield f"{run}: it has ended {status.value!r} without a seal"
    elif claimed != found:
        yield f"{run}: property 'seal' is {claimed[:12]}, but its chains give {found[:12] or 'none'}"
    sealed = _last_passage(data.gate)[1]
    if sealed and data.record.facts and sealed.text("facts") != facts_hash(data.record.facts):
        yield f"{run}: its plan, settings, tasks or outcome differ from the values that {sealed.id} sealed"
    if data.end_seal not in ("", claimed):
        yield f"{run}: property 'seal' is not the one that the event of its end names"
    noted = data.stored.run.outcome
    if noted and noted != status.value:
        yield f"{run}: its status is {status.value!r}, but its outcome was {noted!r}"


def _completed_run(data: AuditData, status: RunStatus) -> Iterator[str]:
    run = data.id
    for task, row in data.stored.tasks.items():
        if row.status != TaskStatus.COMPLETED.value:
            yield f"{run}: it is {status.value!r}, but task {task} is {row.status!r}"
        elif status is RunStatus.COMPLETED:
            yield from _gaps(data, row)
    yield from _gate(data, status)


def _gaps(data: AuditData, row: AuditedTaskRecord) -> Iterator[str]:
    chain = data.accepted_chain(row)
    if chain is None or not chain.verdicts:
        return
    last = chain.verdicts[-1]
    still = [c for c in last.objects("criteria") if c.get("state") != "passed"]
    if still:
        yield f"{last.id}: the run is 'completed', but criterion {still[0].get('id')!r} is {still[0].get('state')!r}"


def _gate(data: AuditData, status: RunStatus) -> Iterator[str]:
    run = data.id
    passage, closing = _last_passage(data.gate)
    if closing is None:
        yield f"{run}/gate: the run is {status.value!r}, but no final gate is sealed"
        return
    tree = data.stored.run.head_tree
    if closing.text("tree") != tree:
        yield f"{closing.id}: this gate is on another tree than the result"
    if closing.objects("red"):
        yield f"{closing.id}: the run is {status.value!r}, but this gate is red"
    yield from _red_on(
        data,
        passage,
        tree,
        f"the run is {status.value!r}, but this check is red at its final gate",
    )
    # Without this comparison, a gate that runs no check would be green.
    seen = {(one.text("task"), one.text("check")) for one in passage}
    for task in data.stored.plan.tasks if data.stored.plan else ():
        yield from _missing_gate_checks(data, task, seen, closing)


def _missing_gate_checks(
    data: AuditData, task: Task, seen: set[tuple[str, str]], closing: AuditedRecord
) -> Iterator[str]:
    for check in sorted(_required_passed_checks(data, task.id)):
        if (task.id, check) not in seen:
            yield f"{closing.id}: this gate did not run check {check!r} of {task.id}"


def _last_passage(gate: EvidenceChain) -> tuple[list[AuditedRecord], AuditedRecord | None]:
    """Return the runs of the last passage and the record that closes it."""
    # After a crash between gate and end, the gate is passed again.
    passages: list[tuple[list[AuditedRecord], AuditedRecord]] = []
    runs: list[AuditedRecord] = []
    for one in gate.records:
        if one.record.kind == "gate":
            passages.append((runs, one))
            runs = []
        else:
            runs.append(one)
    return passages[-1] if passages else ([], None)


def _run_status(data: AuditData) -> RunStatus | None:
    return as_member(data.stored.run.status, RunStatus)
