"""Proof of a run: check runs, verdicts and final gate, from sealed records alone. Pure."""

import json
from collections.abc import Iterable, Sequence
from dataclasses import replace

from mimir.domain.evidence import EvidenceRecord, describe_exit
from mimir.domain.json_value import (
    NO_MEMBERS,
    JsonObject,
    as_number,
    as_object,
    as_objects,
    as_text,
    as_texts,
    as_whole_number,
)
from mimir.domain.value_class import value_class
from mimir.reporting.summary.run_data import AttemptData, RunData, TaskData


def members(record: EvidenceRecord) -> JsonObject:
    """Return the members of a sealed body; none if it is not a JSON object."""
    try:
        return as_object(json.loads(record.body))
    except (ValueError, RecursionError):
        return NO_MEMBERS


@value_class
class CheckRunLine:
    """One check run."""

    record: str
    """Id of its Evidence node."""
    seal: str
    """Hash of the record."""
    phase: str
    """`before`, `after`, `merged` or `gate`."""
    again: bool
    """True: the second run on one tree, made because the first was red."""
    ended: str
    """`exit 0`, `timed out`, `program missing` or `killed`."""
    green: bool
    seconds: float
    tree: str
    passed: int = 0
    """Tests that passed."""
    counted: int = 0
    """Tests that decided something. 0: the exit code alone is known."""
    skipped: int = 0
    shared: bool = False
    """True: the result of an equal command on this tree, which was not executed again."""


@value_class
class ControlLine:
    """Negative control of one check."""

    record: str
    """Id of its Evidence node."""
    seal: str
    state: str
    """`red`, `insensitive` or `unexercised`."""
    method: str
    """Change of the control."""
    sensitive: int
    """Tests that it turned red."""
    counted: int
    """Tests of the green run. 0: the exit code alone is known."""
    runs: int
    seconds: float
    reason: str


@value_class
class CheckLine:
    """One check of one attempt with its runs."""

    task: str
    attempt: int
    check: str
    command: tuple[str, ...]
    kind: str
    state: str
    required: bool
    flaky: bool
    self_authored: bool
    findings: tuple[str, ...]
    runs: tuple[CheckRunLine, ...]
    control: ControlLine | None = None
    """None: no control was run."""


@value_class
class VerdictLine:
    """One sealed verdict."""

    task: str
    attempt: int
    passed: bool
    record: str
    seal: str
    tree: str
    """Tree that was judged."""


@value_class
class MergedLine:
    """One check run on a merged tree."""

    task: str
    """Task whose deliverable was merged."""
    of: str
    """Task that the check belongs to."""
    check: str
    run: CheckRunLine


@value_class
class GateReport:
    """Last passage of the final gate."""

    tree: str
    record: str
    seal: str
    runs: int
    red: tuple[str, ...]
    """Red checks in words. Empty: the gate is green."""


@value_class
class ProofReport:
    """Everything that the engine executed and sealed."""

    seal: str
    """Of the run. Empty: it is not sealed."""
    sandbox: str
    records: int
    checks: tuple[CheckLine, ...]
    verdicts: tuple[VerdictLine, ...]
    """A merged tree can have a verdict of its own."""
    merged: tuple[MergedLine, ...]
    gate: GateReport | None


@value_class
class TaskProof:
    """Proof of one task: the records of the attempt that decided it."""

    records: int
    """Records of all attempts."""
    checks: tuple[CheckLine, ...] = ()
    verdicts: tuple[VerdictLine, ...] = ()
    merged: tuple[MergedLine, ...] = ()


def deciding_attempt(task: TaskData) -> AttemptData | None:
    """Return the accepted attempt, otherwise the last judged one."""
    for attempt in reversed(task.attempts):
        if attempt.judgement and task.accepted in (0, attempt.number):
            return attempt
    return None


def prove_task(task: TaskData) -> TaskProof:
    """Collect the proof of a task."""
    count = sum(len(attempt.evidence) for attempt in task.attempts)
    # Rejected attempts are in the failure report; their proof would hide the one that counts.
    attempt = deciding_attempt(task) or task.last_attempt
    if attempt is None:
        return TaskProof(records=count)
    checks, verdicts, merged = list[CheckLine](), list[VerdictLine](), list[MergedLine]()
    runs: list[CheckRunLine] = []
    controls: dict[str, ControlLine] = {}
    for record in attempt.evidence:
        if record.kind not in ("check", "control", "verdict"):
            continue  # the body of a deliverable is large
        sealed = members(record)
        if record.kind == "control":
            controls[as_text(sealed.get("check"))] = _control_line(attempt.id, record, sealed)
        elif record.kind == "verdict":
            verdicts.append(_verdict_line(task, attempt, record, sealed))
        # A check on a merged tree names its task: it may be the check of another one.
        elif "task" in sealed:
            merged.append(
                MergedLine(
                    task=task.id,
                    of=as_text(sealed["task"]),
                    check=as_text(sealed.get("check")),
                    run=_run_line(attempt.id, record, sealed),
                )
            )
        else:
            runs.append(_run_line(attempt.id, record, sealed))
            # The runs of one check are consecutive records; the last one has the state.
            if sealed.get("state"):
                checks.append(_check_line(task, attempt, sealed, runs))
                runs = []
    # Controls are sealed after all check runs, with the verdict.
    controlled = tuple(replace(one, control=controls.get(one.check)) for one in checks)
    return TaskProof(
        records=count, checks=controlled, verdicts=tuple(verdicts), merged=tuple(merged)
    )


def prove_run(data: RunData, proofs: Sequence[TaskProof]) -> ProofReport:
    """Join the proofs of all tasks with that of the final gate."""
    return ProofReport(
        seal=data.seal,
        sandbox=data.sandbox,
        records=sum(proof.records for proof in proofs) + len(data.gate_evidence),
        checks=tuple(line for proof in proofs for line in proof.checks),
        verdicts=tuple(line for proof in proofs for line in proof.verdicts),
        merged=tuple(line for proof in proofs for line in proof.merged),
        gate=_gate_report(data, data.gate_evidence),
    )


def record_id(chain: str, record: EvidenceRecord) -> str:
    """Return the id of a record's node."""
    # Five digits: ids sort in the order of the chain.
    return f"{chain}#{record.seq:05d}"


def _check_line(
    task: TaskData, attempt: AttemptData, sealed: JsonObject, runs: Iterable[CheckRunLine]
) -> CheckLine:
    return CheckLine(
        task=task.id,
        attempt=attempt.number,
        check=as_text(sealed.get("check")),
        command=tuple(as_texts(sealed.get("argv"))),
        kind=as_text(sealed.get("kind")),
        state=as_text(sealed.get("state")),
        # An edited value other than `true` counts as false.
        required=sealed.get("required") is True,
        flaky=sealed.get("flaky") is True,
        self_authored=sealed.get("selfAuthored") is True,
        findings=tuple(as_texts(sealed.get("findings"))),
        runs=tuple(runs),
    )


def _verdict_line(
    task: TaskData, attempt: AttemptData, record: EvidenceRecord, sealed: JsonObject
) -> VerdictLine:
    return VerdictLine(
        task=task.id,
        attempt=attempt.number,
        passed=sealed.get("passed") is True,
        record=record_id(attempt.id, record),
        seal=record.hash,
        tree=as_text(sealed.get("tree")),
    )


def _gate_report(data: RunData, records: Sequence[EvidenceRecord]) -> GateReport | None:
    # A gate that was passed before a crash is earlier in the chain: the last gate counts.
    closing = [place for place, record in enumerate(records) if record.kind == "gate"]
    if not closing:
        return None
    record = records[closing[-1]]
    sealed = members(record)
    red = as_objects(sealed.get("red"))
    return GateReport(
        tree=as_text(sealed.get("tree")),
        record=record_id(data.gate, record),
        seal=record.hash,
        runs=closing[-1] - (closing[-2] + 1 if len(closing) > 1 else 0),
        red=data.gate_red
        or tuple(
            f"Check {as_text(one.get('check'))!r} of {as_text(one.get('task'))} is red."
            for one in red
        ),
    )


def _control_line(chain: str, record: EvidenceRecord, sealed: JsonObject) -> ControlLine:
    return ControlLine(
        record=record_id(chain, record),
        seal=record.hash,
        state=as_text(sealed.get("control")),
        method=as_text(sealed.get("method")),
        sensitive=as_whole_number(sealed.get("sensitive")) or 0,
        counted=as_whole_number(sealed.get("counted")) or 0,
        runs=as_whole_number(sealed.get("runs")) or 0,
        seconds=float(as_number(sealed.get("seconds")) or 0.0),
        reason=as_text(sealed.get("reason")),
    )


def describe_sealed_end(sealed: JsonObject) -> str:
    """Describe how a sealed check run ended."""
    return describe_exit(
        as_whole_number(sealed.get("exitCode")),
        timed_out=sealed.get("timedOut") is True,
        missing=sealed.get("missing") is True,
        cut_short=sealed.get("cutShort") is True,
        is_contradicted=as_object(sealed.get("tests")).get("green") is False,
    )


def sealed_counts(tests: JsonObject) -> tuple[int, int, int]:
    """Return the passed, counted and skipped tests of a sealed report; zeros: there is none."""
    names = ("passed", "failed", "errored", "skipped")
    passed, failed, errored, skipped = (as_whole_number(tests.get(name)) or 0 for name in names)
    return passed, passed + failed + errored, skipped


def _run_line(chain: str, record: EvidenceRecord, sealed: JsonObject) -> CheckRunLine:
    ended = describe_sealed_end(sealed)
    passed, counted, skipped = sealed_counts(as_object(sealed.get("tests")))
    return CheckRunLine(
        record=record_id(chain, record),
        seal=record.hash,
        phase=as_text(sealed.get("phase")),
        again=sealed.get("again") is True,
        ended=ended,
        green=ended == "exit 0",
        seconds=float(as_number(sealed.get("seconds")) or 0.0),
        tree=as_text(sealed.get("tree")),
        passed=passed,
        counted=counted,
        skipped=skipped,
        shared=sealed.get("shared") is True,
    )
