"""Reads all that a report needs of a run, in one view of the store. What stands there is taken as it is: the audit is `verifying`."""

import hashlib
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from typing import TypeVar, cast

from mimir.agents import receipt
from mimir.attempts.record import JUDGEMENT, OUTCOMES, TRIP, WORK, Work
from mimir.attempts.stored import Stored
from mimir.domain.attempt import RunStatus, Status
from mimir.domain.event import EventKind
from mimir.domain.evidence import Record
from mimir.domain.ids import lane_id
from mimir.domain.verdict import Judgement
from mimir.errors import StoreError
from mimir.reporting.material import (
    ArtifactData,
    AttemptData,
    Part,
    RunData,
    TaskData,
    WorkData,
)
from mimir.reporting.measuring import Measuring
from mimir.reporting.telling import Telling
from mimir.store import fields, runs
from mimir.store.proof import record_of
from mimir.store.protocol import Reads, Row, Where
from mimir.store.schema import Label, unpack

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
_STOPPED = (Status.FAILED, Status.BLOCKED)
"""What a task ends as that the plan is asked about: what follows for the others."""


class Gathering:
    """Reads a run a part at a time: thousands of attempts are never in memory together."""

    def __init__(self, reads: Reads, run: str) -> None:
        """Read what there is once.

        Raises:
            UsageError: There is no such run.
            StoreError: What is stored cannot be read; `mimir verify` names the record.
        """
        self._reads = reads
        self._row = runs.get(reads, run)
        self._measuring = Measuring()
        self._is_plan_asked = False
        telling = Telling()
        for event in runs.each_event(reads, run, NOTED):
            telling.take(event)
        self.head = _head(self._row, telling)
        """The run without its tasks, its plan and what is measured."""

    def parts(self) -> Iterator[Part]:
        """Yield its tasks, in the plan's order."""
        yield from map(self._part, runs.in_batches(runs.each_task(self._reads, self.head.id)))

    def done(self) -> RunData:
        """Return the run without its tasks, when all parts were taken."""
        row, gate = self._row, [self.head.gate]
        return replace(
            self.head,
            plan=runs.plan_of(row) if self._is_plan_asked and row.get("planJson") else None,
            measured=self._measuring.done(self._reads, row),
            evidence=_evidence(self._reads, gate),
        )

    def _part(self, rows: Sequence[Row]) -> Part:
        tasks: list[TaskData] = []
        for one in rows:
            self._measuring.task(one)
            tasks.append(_task(one))
        self._is_plan_asked |= any(task.status in _STOPPED for task in tasks)
        attempts = self._attempts(tasks)
        tried = [one.id for of_task in attempts.values() for one in of_task]
        return Part(
            tasks=tuple(replace(one, attempts=tuple(attempts.get(one.id, ()))) for one in tasks),
            evidence=_evidence(self._reads, tried),
            artifacts={one.id: one for one in _artifacts(self._reads, tried)},
        )

    def _attempts(self, tasks: Sequence[TaskData]) -> Mapping[str, list[AttemptData]]:
        run = self.head.id
        made = [(task.id, task.made) for task in tasks]
        lanes = [lane_id(run, t, n, "worker") for t, most in made for n in range(1, most + 1)]
        where: Where = {"runId": run, "kind": "tool", "lane": ("in", lanes)}
        calls = self._reads.counts(Label.CALL, "lane", where)
        found: dict[str, list[AttemptData]] = {}
        for one in runs.attempts_of(self._reads, run, made):
            self._measuring.attempt(one)
            found.setdefault(fields.text(one, "taskId"), []).append(_attempt(one, run, calls))
        return found


def gather(reads: Reads, run: str) -> RunData:
    """Return a run as it stands, all at once.

    Raises:
        UsageError: There is no such run.
        StoreError: What is stored cannot be read; `mimir verify` names the record.
    """
    gathering = Gathering(reads, run)
    parts = list(gathering.parts())
    done = gathering.done()
    evidence = {chain: records for one in (*parts, done) for chain, records in one.evidence.items()}
    return replace(
        done,
        tasks=tuple(task for part in parts for task in part.tasks),
        evidence={chain: evidence[chain] for chain in sorted(evidence)},
        artifacts={id: one for part in parts for id, one in part.artifacts.items()},
    )


def _head(row: Row, telling: Telling) -> RunData:
    return RunData(
        id=fields.text(row, "id"),
        kind=fields.text(row, "kind"),
        title=fields.text(row, "title") or fields.text(row, "name"),
        request=fields.text(row, "request"),
        goal=fields.text(row, "goal"),
        plan_path=fields.text(row, "planPath"),
        status=RunStatus(fields.text(row, "status")),
        created_at=fields.text(row, "createdAt"),
        engine_version=fields.text(row, "engineVersion"),
        sandbox=fields.text(row, "sandbox"),
        base_commit=fields.text(row, "baseCommit"),
        head=fields.text(row, "head"),
        final_commit=fields.text(row, "finalCommit"),
        seal=fields.text(row, "seal"),
        gate_red=tuple(_texts(row, "gateRedJson")),
        pause_reason=fields.text(row, "pauseReason"),
        pause_message=fields.text(row, "pauseMessage"),
        plan=None,
        events=tuple(telling.kept),
        seconds=telling.seconds,
        spent=telling.spent,
        last=telling.last,
    )


def _task(row: Row) -> TaskData:
    return TaskData(
        id=fields.text(row, "taskId"),
        node=fields.text(row, "id"),
        title=fields.text(row, "title"),
        status=Status(fields.text(row, "status")),
        cause=fields.text(row, "cause"),
        blocked_by=fields.text(row, "blockedBy"),
        made=fields.whole(row, "attemptNumber"),
        accepted=fields.whole(row, "acceptedAttempt"),
        score=_maybe_number(row, "qcScore"),
        feedback=fields.text(row, "qcFeedback"),
        max_retries=fields.whole(row, "maxRetries"),
        integration_retries=fields.whole(row, "integrationRetries"),
        estimated_tool_calls=fields.maybe_whole(row, "estimatedToolCalls"),
        files_changed=tuple(fields.texts(row, "filesChanged")),
        commit=fields.text(row, "integratedCommit"),
        taken_from=fields.text(row, "takenFrom"),
    )


def _attempt(row: Row, run: str, calls: Mapping[str, int]) -> AttemptData:
    task, number = fields.text(row, "taskId"), fields.whole(row, "seq")
    work = _read(WORK, row, "workJson")
    judgement = _read(JUDGEMENT, row, "judgementJson")
    counted = calls.get(lane_id(run, task, number, "worker"), 0)
    return AttemptData(
        id=fields.text(row, "id"),
        number=number,
        cause=fields.text(row, "endCause"),
        issues=tuple(fields.texts(row, "issues")),
        score=_score(row, judgement),
        tool_calls=work.tool_calls if work else counted,
        seconds=_maybe_number(row, "workerDuration"),
        work=_work(work) if work else None,
        outcomes=_read(OUTCOMES, row, "checksJson") or (),
        judgement=judgement,
        trip=_read(TRIP, row, "tripJson"),
        receipts=tuple(
            receipt.sums(values)
            for name in ("receiptJson", "qcReceiptJson")
            if (values := fields.mapping(row, name))
        ),
    )


def _work(work: Work) -> WorkData:
    return WorkData(
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


def _read(stored: Stored[T], row: Row, name: str) -> T | None:
    text = fields.text(row, name)
    if not text:
        return None
    try:
        return stored.read(text)
    except StoreError as error:
        raise StoreError(
            f"Property {name!r} of {row.get('id')!r} cannot be read: {error}",
            next_step="See what was changed: mimir verify",
        ) from None


def _score(row: Row, judgement: Judgement | None) -> float | None:
    return float(judgement.score) if judgement else _maybe_number(row, "score")


def _maybe_number(row: Row, name: str) -> float | None:
    return None if row.get(name) is None else fields.number(row, name)


def _texts(row: Row, name: str) -> list[str]:
    """Read a JSON list of texts; empty if it is not there."""
    text = fields.text(row, name)
    return [str(item) for item in cast("list[object]", unpack(text))] if text else []


def _evidence(reads: Reads, chains: Iterable[str]) -> Mapping[str, tuple[Record, ...]]:
    found: dict[str, list[Record]] = {}
    for batch in runs.in_batches(chains):
        where: Where = {"chain": ("in", batch)}
        for row in reads.find(Label.EVIDENCE, where, order=("chain", "seq")):
            found.setdefault(fields.text(row, "chain"), []).append(record_of(row))
    return {chain: tuple(found[chain]) for chain in sorted(found)}


def _artifacts(reads: Reads, attempts: Iterable[str]) -> Iterator[ArtifactData]:
    """Yield the answers of attempts."""
    for batch in runs.in_batches(f"{attempt}/answer" for attempt in attempts):
        yield from map(_artifact, reads.find(Label.ARTIFACT, {"id": ("in", batch)}))


def _artifact(row: Row) -> ArtifactData:
    text = fields.text(row, "text")
    return ArtifactData(
        id=fields.text(row, "id"),
        sha256=hashlib.sha256(text.encode("utf-8", "surrogatepass")).hexdigest(),
        length=len(text),
    )
