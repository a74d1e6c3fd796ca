"""Loading and changing of typed records for the packages above the store.

A `kind` argument chooses the record class: a projection reads its own properties alone. Every function raises a `StoreError` if a stored
record is invalid, and `load_run…` a `UsageError` with the nearest ids if there is no such run.
"""

import dataclasses
from collections.abc import Collection, Iterable, Iterator, Sequence
from typing import Literal, TypeVar

from mimir.domain import ids
from mimir.domain.event import EventKind
from mimir.domain.evidence import EvidenceRecord
from mimir.domain.plan import Plan
from mimir.domain.task_states import RunStatus, TaskStatus
from mimir.errors import StoreError
from mimir.store.operations import claim_candidates, evidence, runs, worker_processes
from mimir.store.operations.runs import RunKind
from mimir.store.protocol import ReadOps, Row, Where, WriteOps
from mimir.store.records.artifact_records import (
    ArtifactRecord,
    CheckRunRecord,
    JsonArtifactRecord,
    ProcessRecord,
)
from mimir.store.records.attempt_records import AttemptRecord
from mimir.store.records.call_records import CallRecord
from mimir.store.records.record_codec import PackedJson, StoredRecord, decode, encode, selection
from mimir.store.records.run_records import RunRecord
from mimir.store.records.task_records import TaskAnswerRecord, TaskRecord
from mimir.store.row_fields import int_field, text_field
from mimir.store.run_reading import NEWEST_FIRST, find_records, load_record, load_run
from mimir.store.schema import EdgeType, NodeLabel

R = TypeVar("R", bound=StoredRecord)


def load_run_with_plan(reads: ReadOps, run: str) -> RunRecord:
    """Load a run with its plan, which may be megabytes."""
    record = load_run(reads, run)
    plan = find_plan_text(reads, run)
    return dataclasses.replace(record, plan=PackedJson(plan, run, "planJson"))


def find_plan_text(reads: ReadOps, run: str) -> str:
    """Return the stored text of a run's plan; empty if it has none."""
    return evidence.artifact(reads, runs.plan_id(run)) or ""


def find_run(reads: ReadOps, run: str) -> RunRecord | None:
    """Load a run without its plan; None if there is none."""
    return load_record(reads, RunRecord, run)


def find_runs(
    reads: ReadOps, *, project_id: str = "", status: RunStatus | None = None
) -> list[RunRecord]:
    """Load runs, newest first; of one project or status if given."""
    project: Where = {"projectId": project_id} if project_id else {}
    wanted: Where = {"status": status.value} if status else {}
    return find_records(reads, RunRecord, {**project, **wanted}, order=NEWEST_FIRST)


def find_latest_run(
    reads: ReadOps, *, project_id: str, kinds: Collection[RunKind], plan_path: str | None = None
) -> RunRecord | None:
    """Load the project's newest run of these kinds, of one plan file if given, or None."""
    path: Where = {} if plan_path is None else {"planPath": plan_path}
    where: Where = {"projectId": project_id, "kind": ("in", list(kinds)), **path}
    return next(iter(find_records(reads, RunRecord, where, order=NEWEST_FIRST, limit=1)), None)


def decode_plan(run: RunRecord) -> Plan:
    """Return the plan of a run that was loaded with it.

    Raises:
        StoreError: The run has no plan.
    """
    if not run.plan:
        raise StoreError(f"Run {run.id!r} has no plan.")
    return runs.read_plan(run.plan.text)


def load_tasks(reads: ReadOps, run: str, kind: type[R]) -> list[R]:
    """Load a run's tasks in the plan's order."""
    return find_records(reads, kind, {"runId": run}, order=("seq",))


def iterate_tasks(reads: ReadOps, run: str, kind: type[R]) -> Iterator[R]:
    """Yield a run's tasks in the plan's order, one batch in memory at a time."""
    only = selection(kind)
    chosen, after = (*only, "seq") if only else (), -1
    while True:
        where: Where = {"runId": run, "seq": (">", after)}
        found = reads.find(NodeLabel.TASK, where, order=("seq",), limit=runs.AT_ONCE, only=chosen)
        yield from (decode(kind, row) for row in found)
        if len(found) < runs.AT_ONCE:
            return
        after = int_field(found[-1], "seq")


def find_task(reads: ReadOps, run: str, task: str) -> TaskRecord | None:
    """Load a task; None if there is none."""
    return load_record(reads, TaskRecord, ids.task_id(run, task))


def find_attempt(reads: ReadOps, run: str, task: str, number: int) -> AttemptRecord | None:
    """Load an attempt; None if there is none."""
    return load_record(reads, AttemptRecord, ids.attempt_id(run, task, number))


def iterate_attempts(
    reads: ReadOps, run: str, made: Iterable[tuple[str, int]], kind: type[R]
) -> Iterator[R]:
    """Yield attempts in batches by task and number; `made`: (task, attempts so far)."""
    # Attempts are by far the largest part of a run.
    wanted = (ids.attempt_id(run, task, n) for task, tried in made for n in range(1, tried + 1))
    for batch in runs.in_batches(wanted):
        found = reads.find(kind.label, {"id": ("in", batch)}, only=selection(kind))
        known = {str(row["id"]): row for row in found}
        yield from (decode(kind, known.pop(id)) for id in batch if id in known)


def load_run_attempts(reads: ReadOps, run: str, kind: type[R]) -> list[R]:
    """Load all attempts of a run by task and number."""
    return find_records(reads, kind, {"runId": run}, order=("taskId", "seq"))


def load_task_attempts(reads: ReadOps, run: str, task: str) -> list[AttemptRecord]:
    """Load all attempts of a task by number."""
    # Along the edges: a search by task would read every attempt of the run.
    names = reads.neighbours(ids.task_id(run, task), [EdgeType.HAS_ATTEMPT], "out")
    found = [one for name in names if (one := load_record(reads, AttemptRecord, name))]
    return sorted(found, key=lambda attempt: attempt.number)


def load_calls(
    reads: ReadOps, transcript: str, *, kind: Literal["model", "tool"] | None = None
) -> list[CallRecord]:
    """Load the calls of a transcript in order; of one kind if given."""
    wanted: Where = {"kind": kind} if kind else {}
    return find_records(reads, CallRecord, {"lane": transcript, **wanted}, order=("seq",))


def find_call(reads: ReadOps, transcript: str, number: int) -> CallRecord | None:
    """Load a call; None if there is none."""
    return load_record(reads, CallRecord, ids.call_id(transcript, number))


def find_text(reads: ReadOps, run: str, name: str) -> ArtifactRecord | None:
    """Load a text of a run, such as `prose` or `made`; None if there is none."""
    return load_record(reads, ArtifactRecord, f"{run}#{name}")


def find_json(reads: ReadOps, run: str, name: str) -> JsonArtifactRecord | None:
    """Load JSON of a run, such as `preambles`, `brief` or `background`; None if there is none."""
    return load_record(reads, JsonArtifactRecord, f"{run}#{name}")


def load_whole_answer(reads: ReadOps, task: TaskAnswerRecord, *, longest_kept: int) -> str:
    """Return the whole answer of a task; its node has the beginning."""
    # A text that is shorter than the limit cannot have been cut.
    kept = task.worker_output
    if len(kept) < longest_kept:
        return kept
    name = ids.attempt_id(task.run_id, task.task_id, task.accepted_attempt)
    return evidence.artifact(reads, f"{name}/answer") or kept


def load_processes(reads: ReadOps, run: str) -> list[ProcessRecord]:
    """Load the registrations of a run's processes, oldest first; those that left too."""
    where: Where = {"runId": run, "kind": worker_processes.KIND}
    return find_records(reads, ProcessRecord, where, order=("since",))


def load_check_runs(reads: ReadOps, run: str, *, since: str = "") -> list[CheckRunRecord]:
    """Load a run's check runs in the order in which they ended, from a time on."""
    where: Where = {"runId": run, "kind": evidence.CHECK_RUN_KIND, "createdAt": (">=", since)}
    return find_records(reads, CheckRunRecord, where, order=("createdAt", "id"))


def lease_holder(
    run: RunRecord,
    lease: Literal["coordinator", "integrator"],
    now: str,
    dead: Collection[str] = (),
) -> str:
    """Return the holder of a run's lease; empty if free, over, or of a lost process."""
    owner, until = {
        "coordinator": (run.coordinator, run.coordinator_until),
        "integrator": (run.integrator, run.integrator_until),
    }[lease]
    return owner if owner and owner not in dead and until > now else ""


def find_held_tasks(reads: ReadOps, run: str) -> list[TaskRecord]:
    """Load the tasks under a lease, in the plan's order."""
    return find_records(
        reads, TaskRecord, {"runId": run, "claimState": claim_candidates.HELD}, order=("seq",)
    )


def load_task_answers(reads: ReadOps, nodes: Sequence[str]) -> list[TaskAnswerRecord]:
    """Load the answers of tasks by the ids of their nodes."""
    return find_records(reads, TaskAnswerRecord, {"id": ("in", list(nodes))})


def find_attempts_with_status(
    reads: ReadOps, run: str, statuses: Collection[TaskStatus]
) -> list[AttemptRecord]:
    """Load the attempts of a run that have one of these statuses, by id."""
    values = [status.value for status in statuses]
    return find_records(
        reads, AttemptRecord, {"runId": run, "status": ("in", values)}, order=("id",)
    )


def load_run_calls(
    reads: ReadOps, run: str, *, kind: Literal["model", "tool"] | None = None
) -> list[CallRecord]:
    """Load the calls of a run; of one kind if given."""
    wanted: Where = {"kind": kind} if kind else {}
    return find_records(reads, CallRecord, {"runId": run, **wanted})


def load_tool_calls(
    reads: ReadOps, run_ids: Collection[str], tools: Collection[str]
) -> list[CallRecord]:
    """Load the calls of these tools in runs, by transcript and number."""
    where: Where = {"runId": ("in", list(run_ids)), "kind": "tool", "tool": ("in", list(tools))}
    return find_records(reads, CallRecord, where, order=("lane", "seq"))


def find_open_call(reads: ReadOps, transcript: str) -> CallRecord | None:
    """Load the newest call of a transcript that has no outcome; None if each has one."""
    where: Where = {"lane": transcript, "done": False}
    return next(iter(find_records(reads, CallRecord, where, order=("-seq",), limit=1)), None)


def count_events(reads: ReadOps, run: str) -> dict[str, int]:
    """Count a run's events by kind."""
    return reads.counts(NodeLabel.EVENT, "kind", {"runId": run})


def find_last_event_time(reads: ReadOps, run: str, kinds: Collection[EventKind]) -> str:
    """Return when the newest event of these kinds happened; empty if there is none."""
    where: Where = {"runId": run, "kind": ("in", [kind.value for kind in kinds])}
    last = reads.find(NodeLabel.EVENT, where, order=("-seq",), limit=1)
    return text_field(last[0], "at") if last else ""


def find_last_gate_record(reads: ReadOps, run: str) -> EvidenceRecord | None:
    """Load the newest evidence record of the final gate; None if no gate was sealed."""
    last = reads.find(NodeLabel.EVIDENCE, {"runId": run, "kind": "gate"}, order=("-seq",), limit=1)
    return evidence.record_of(last[0]) if last else None


def load_evidence(reads: ReadOps, chains: Iterable[str]) -> dict[str, tuple[EvidenceRecord, ...]]:
    """Load the evidence records of chains by name; a chain without any is left out."""
    found: dict[str, list[EvidenceRecord]] = {}
    for batch in runs.in_batches(chains):
        where: Where = {"chain": ("in", batch)}
        for row in reads.find(NodeLabel.EVIDENCE, where, order=("chain", "seq")):
            found.setdefault(text_field(row, "chain"), []).append(evidence.record_of(row))
    return {chain: tuple(found[chain]) for chain in sorted(found)}


def iterate_answers(reads: ReadOps, attempts: Iterable[str]) -> Iterator[ArtifactRecord]:
    """Yield the answers of attempts by the ids of their nodes, one batch in memory at a time."""
    for batch in runs.in_batches(f"{attempt}/answer" for attempt in attempts):
        yield from find_records(reads, ArtifactRecord, {"id": ("in", batch)})


def save_change(ops: WriteOps, id: str, *changes: StoredRecord) -> bool:
    """Write changes of one node together; False if there is no such node.

    Raises:
        StoreError: The changes are of nodes with different labels.
    """
    labels = {change.label for change in changes}
    if len(labels) != 1:
        raise StoreError(f"The changes of {id!r} are not of one kind of node: {sorted(labels)}.")
    return ops.patch(labels.pop(), id, encode(*changes))


def save_run_text(ops: WriteOps, run: str, name: str, text: str) -> None:
    """Write a text of a run, to be found by its name; it replaces one that has the name."""
    # The name is part of the id, so a second text of the name replaces the first.
    row: Row = {"id": f"{run}#{name}", "name": name, "runId": run, "kind": name, "text": text}
    ops.upsert(NodeLabel.ARTIFACT, [row])
