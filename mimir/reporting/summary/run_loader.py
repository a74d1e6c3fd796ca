"""Reads all that a report needs of a run. What stands there is taken as it is: the audit is `verifying`."""

import hashlib
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from typing import TypeVar, cast

from mimir.agents.context import receipt
from mimir.attempts.results import JUDGEMENT, OUTCOMES, TRIP, WORK, Deliverable, JsonCodec
from mimir.domain.event import Event, EventKind
from mimir.domain.evidence import EvidenceRecord
from mimir.domain.ids import lane_id
from mimir.domain.task_states import RunStatus, TaskStatus
from mimir.domain.verdict import Verdict
from mimir.errors import StoreError
from mimir.reporting.summary.event_totals import EventTotals
from mimir.reporting.summary.metric_inputs import MetricCounter
from mimir.reporting.summary.run_data import (
    ArtifactData,
    AttemptData,
    DeliverableData,
    RunData,
    RunDataPart,
    TaskData,
)
from mimir.store import row_fields
from mimir.store.operations import runs
from mimir.store.operations.evidence import record_of
from mimir.store.protocol import ReadOps, Row, Where
from mimir.store.schema import NodeLabel, unpack

T = TypeVar("T")

NOTED = (
    EventKind.RUN_CREATED,
    EventKind.RUN_PAUSED,
    EventKind.RUN_RESUMED,
    EventKind.PREAMBLE_MADE,
    EventKind.TASK_BLOCKED,
    EventKind.TASK_CANCELLED,
    EventKind.ATTEMPT_STARTED,
    EventKind.MODEL_CALLED,
    EventKind.TOOL_DENIED,
    EventKind.LANE_CUT,
    EventKind.TASK_COMPLETED,
    EventKind.TASK_RETRIED,
    EventKind.TASK_FAILED,
    EventKind.GATE_PASSED,
    EventKind.GATE_FAILED,
    EventKind.APPLIED,
    EventKind.WARNING,
)
"""Events that a report tells of."""
_STOPPED = (TaskStatus.FAILED, TaskStatus.BLOCKED)
"""What a task ends as that the plan is asked about: what follows for the others."""


class RunLoader:
    """Reader of a run in batches of tasks: memory never holds thousands of attempts together."""

    def __init__(self, reads: ReadOps, run: str) -> None:
        """Read from one view of the store.

        Args:
            reads: The view.
            run: Id.
        """
        self._reads = reads
        self._run = run
        self._telling = EventTotals()
        self._measuring = MetricCounter()
        self._is_plan_asked = False

    @property
    def events(self) -> Sequence[Event]:
        """Events that a report lists one by one; complete before the first part is read."""
        return self._telling.kept

    @property
    def seconds(self) -> Mapping[str, float]:
        """Durations as in `RunData`; complete before the first part is read."""
        return self._telling.seconds

    def parts(self) -> Iterator[RunDataPart]:
        """Yield all tasks in the order of the plan."""
        for event in runs.each_event(self._reads, self._run, NOTED):
            self._telling.take(event)
        for rows in runs.in_batches(runs.each_task(self._reads, self._run)):
            yield self._part(rows)

    def finish(self) -> RunData:
        """Return the run without its tasks, after all parts were read.

        Raises:
            UsageError: The run does not exist.
            StoreError: A stored record cannot be read; `mimir verify` names it.
        """
        reads = self._reads
        row = (runs.get if self._is_plan_asked else runs.node)(reads, self._run)
        head = _head(row, self._telling)
        return replace(
            head,
            plan=runs.plan_of(row) if row.get("planJson") else None,
            measured=self._measuring.done(reads, row),
            evidence=_evidence(reads, [head.gate]),
        )

    def _part(self, rows: Sequence[Row]) -> RunDataPart:
        reads, tasks = self._reads, [_task(row) for row in rows]
        made = [(task.id, task.made) for task in tasks]
        tried = list(runs.attempts_of(reads, self._run, made))
        self._measuring.take(rows, tried)
        self._is_plan_asked |= any(task.status in _STOPPED for task in tasks)
        attempts = self._attempts(tried)
        chains = [one.id for of_task in attempts.values() for one in of_task]
        return RunDataPart(
            tasks=tuple(replace(one, attempts=tuple(attempts.get(one.id, ()))) for one in tasks),
            evidence=_evidence(reads, chains),
            artifacts={one.id: one for one in _artifacts(reads, chains)},
        )

    def _attempts(self, rows: Sequence[Row]) -> Mapping[str, list[AttemptData]]:
        unanswered = [_lane(self._run, row) for row in rows if not row.get("workJson")]
        # A call that a pause cut short is repeated later: it does not count yet.
        where: Where = {"lane": ("in", unanswered), "kind": "tool", "done": True}
        calls = self._reads.counts(NodeLabel.CALL, "lane", where) if unanswered else {}
        found: dict[str, list[AttemptData]] = {}
        for row in rows:
            attempt = _attempt(row, calls.get(_lane(self._run, row), 0))
            found.setdefault(row_fields.text_field(row, "taskId"), []).append(attempt)
        return found


def gather(reads: ReadOps, run: str) -> RunData:
    """Return a run as it stands, all at once.

    Raises:
        UsageError: There is no such run.
        StoreError: What is stored cannot be read; `mimir verify` names the record.
    """
    gathering = RunLoader(reads, run)
    parts = list(gathering.parts())
    done = gathering.finish()
    evidence = {chain: records for one in (*parts, done) for chain, records in one.evidence.items()}
    return replace(
        done,
        tasks=tuple(task for part in parts for task in part.tasks),
        evidence={chain: evidence[chain] for chain in sorted(evidence)},
        artifacts={id: one for part in parts for id, one in part.artifacts.items()},
    )


def _head(row: Row, telling: EventTotals) -> RunData:
    return RunData(
        id=row_fields.text_field(row, "id"),
        kind=row_fields.text_field(row, "kind"),
        title=row_fields.text_field(row, "title") or row_fields.text_field(row, "name"),
        request=row_fields.text_field(row, "request"),
        goal=row_fields.text_field(row, "goal"),
        plan_path=row_fields.text_field(row, "planPath"),
        status=RunStatus(row_fields.text_field(row, "status")),
        created_at=row_fields.text_field(row, "createdAt"),
        engine_version=row_fields.text_field(row, "engineVersion"),
        sandbox=row_fields.text_field(row, "sandbox"),
        base_commit=row_fields.text_field(row, "baseCommit"),
        head=row_fields.text_field(row, "head"),
        final_commit=row_fields.text_field(row, "finalCommit"),
        seal=row_fields.text_field(row, "seal"),
        gate_red=tuple(_texts(row, "gateRedJson")),
        pause_reason=row_fields.text_field(row, "pauseReason"),
        pause_message=row_fields.text_field(row, "pauseMessage"),
        plan=None,
        events=tuple(telling.kept),
        seconds=telling.seconds,
        spent=telling.spent,
        last=telling.last,
    )


def _task(row: Row) -> TaskData:
    return TaskData(
        id=row_fields.text_field(row, "taskId"),
        node=row_fields.text_field(row, "id"),
        title=row_fields.text_field(row, "title"),
        status=TaskStatus(row_fields.text_field(row, "status")),
        cause=row_fields.text_field(row, "cause"),
        blocked_by=row_fields.text_field(row, "blockedBy"),
        made=row_fields.int_field(row, "attemptNumber"),
        accepted=row_fields.int_field(row, "acceptedAttempt"),
        score=_maybe_number(row, "qcScore"),
        feedback=row_fields.text_field(row, "qcFeedback"),
        max_retries=row_fields.int_field(row, "maxRetries"),
        integration_retries=row_fields.int_field(row, "integrationRetries"),
        estimated_tool_calls=row_fields.maybe_whole(row, "estimatedToolCalls"),
        files_changed=tuple(row_fields.text_list_field(row, "filesChanged")),
        commit=row_fields.text_field(row, "integratedCommit"),
        taken_from=row_fields.text_field(row, "takenFrom"),
    )


def _lane(run: str, row: Row) -> str:
    """Name the lane of an attempt's worker."""
    return lane_id(
        run, row_fields.text_field(row, "taskId"), row_fields.int_field(row, "seq"), "worker"
    )


def _attempt(row: Row, calls: int) -> AttemptData:
    """Return an attempt; `calls`: of its worker's tools, where it has not answered."""
    work = _read(WORK, row, "workJson")
    judgement = _read(JUDGEMENT, row, "judgementJson")
    return AttemptData(
        id=row_fields.text_field(row, "id"),
        number=row_fields.int_field(row, "seq"),
        cause=row_fields.text_field(row, "endCause"),
        issues=tuple(row_fields.text_list_field(row, "issues")),
        score=_score(row, judgement),
        tool_calls=work.tool_calls if work else calls,
        seconds=_maybe_number(row, "workerDuration"),
        work=_work(work) if work else None,
        outcomes=_read(OUTCOMES, row, "checksJson") or (),
        judgement=judgement,
        trip=_read(TRIP, row, "tripJson"),
        receipts=tuple(
            receipt.receipt_totals(values)
            for name in ("receiptJson", "qcReceiptJson")
            if (values := row_fields.json_field(row, name))
        ),
    )


def _work(work: Deliverable) -> DeliverableData:
    return DeliverableData(
        answer=work.answer,
        base_tree=work.base_tree,
        tree=work.tree,
        commit=work.commit,
        changed=work.changed,
        left_out=work.left_out,
        protected=work.protected,
        notes=work.notes,
        unsupported=work.unsupported,
        tool_calls=work.tool_calls,
    )


def _read(stored: JsonCodec[T], row: Row, name: str) -> T | None:
    text = row_fields.text_field(row, name)
    if not text:
        return None
    try:
        return stored.decode(text)
    except StoreError as error:
        raise StoreError(
            f"Property {name!r} of {row.get('id')!r} cannot be read: {error}",
            next_step="See what was changed: mimir verify",
        ) from None


def _score(row: Row, judgement: Verdict | None) -> float | None:
    return float(judgement.score) if judgement else _maybe_number(row, "score")


def _maybe_number(row: Row, name: str) -> float | None:
    return None if row.get(name) is None else row_fields.float_field(row, name)


def _texts(row: Row, name: str) -> list[str]:
    """Read a JSON list of texts; empty if it is not there."""
    text = row_fields.text_field(row, name)
    return [str(item) for item in cast("list[object]", unpack(text))] if text else []


def _evidence(reads: ReadOps, chains: Iterable[str]) -> Mapping[str, tuple[EvidenceRecord, ...]]:
    found: dict[str, list[EvidenceRecord]] = {}
    for batch in runs.in_batches(chains):
        where: Where = {"chain": ("in", batch)}
        for row in reads.find(NodeLabel.EVIDENCE, where, order=("chain", "seq")):
            found.setdefault(row_fields.text_field(row, "chain"), []).append(record_of(row))
    return {chain: tuple(found[chain]) for chain in sorted(found)}


def _artifacts(reads: ReadOps, attempts: Iterable[str]) -> Iterator[ArtifactData]:
    """Yield the answers of attempts."""
    for batch in runs.in_batches(f"{attempt}/answer" for attempt in attempts):
        yield from map(_artifact, reads.find(NodeLabel.ARTIFACT, {"id": ("in", batch)}))


def _artifact(row: Row) -> ArtifactData:
    text = row_fields.text_field(row, "text")
    return ArtifactData(
        id=row_fields.text_field(row, "id"),
        sha256=hashlib.sha256(text.encode("utf-8", "surrogatepass")).hexdigest(),
        length=len(text),
    )
