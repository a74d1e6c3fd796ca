"""What the sealed records of a run say: each check with its runs, and the final gate. Pure; nothing else is believed here."""

import json
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import cast

from mimir.domain.evidence import EvidenceRecord, describe_exit
from mimir.reporting.summary.run_data import RunData, RunDataPart
from mimir.reporting.summary.task_lines import deciding_attempt

Body = Mapping[str, object]
"""Members of a sealed body."""


def members(record: EvidenceRecord) -> Body:
    """Return the members of a sealed body; none if it is no JSON object."""
    try:
        value = json.loads(record.body)
    except (ValueError, RecursionError):
        return {}
    return cast("Body", value) if isinstance(value, dict) else {}


@dataclass(frozen=True, slots=True, kw_only=True)
class CheckRunLine:
    """One run of a check."""

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


@dataclass(frozen=True, slots=True, kw_only=True)
class CheckLine:
    """One check of one attempt: what its runs prove together."""

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


@dataclass(frozen=True, slots=True, kw_only=True)
class VerdictLine:
    """One sealed ruling."""

    task: str
    attempt: int
    passed: bool
    record: str
    seal: str
    tree: str
    """That it is about."""


@dataclass(frozen=True, slots=True, kw_only=True)
class MergedLine:
    """A check that was run again on a merged tree."""

    task: str
    """Whose deliverable was merged."""
    of: str
    """Whose check it is."""
    check: str
    run: CheckRunLine


@dataclass(frozen=True, slots=True, kw_only=True)
class GateReport:
    """The final gate, as it was passed last."""

    tree: str
    record: str
    seal: str
    runs: int
    red: tuple[str, ...]
    """In words; empty: green."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ProofReport:
    """All that was executed."""

    seal: str
    """Of the run; empty: it is not sealed yet."""
    sandbox: str
    records: int
    checks: tuple[CheckLine, ...]
    verdicts: tuple[VerdictLine, ...]
    """A merged tree may have one of its own."""
    merged: tuple[MergedLine, ...]
    gate: GateReport | None


class ProofCollector:
    """Takes a run a part at a time, and keeps what was executed: of each task the attempt that stands for it."""

    def __init__(self) -> None:
        """Begin with nothing."""
        self._records = 0
        self._checks: list[CheckLine] = []
        self._verdicts: list[VerdictLine] = []
        self._merged: list[MergedLine] = []

    def add_part(self, part: RunDataPart) -> frozenset[str]:
        """Take in some tasks; those of them whose work was merged with that of others."""
        before = len(self._merged)
        for task in part.tasks:
            self._records += sum(len(part.evidence.get(a.id, ())) for a in task.attempts)
            judged = deciding_attempt(task)
            attempt = judged or (task.attempts[-1] if task.attempts else None)
            if attempt is None:
                continue
            records = part.evidence.get(attempt.id, ())
            self._checks += _checks(task.id, attempt.number, attempt.id, records)
            self._verdicts += _verdicts(task.id, attempt.number, attempt.id, records)
            self._merged += _merged(task.id, attempt.id, records)
        return frozenset(line.task for line in self._merged[before:])

    def finish(self, data: RunData) -> ProofReport:
        """Return all of it; `data` is the run, the final gate's records among its evidence."""
        gate = data.evidence.get(data.gate, ())
        return ProofReport(
            seal=data.seal,
            sandbox=data.sandbox,
            records=self._records + len(gate),
            checks=tuple(self._checks),
            verdicts=tuple(self._verdicts),
            merged=tuple(self._merged),
            gate=_gate(data, gate),
        )


def _checks(
    task: str, attempt: int, chain: str, records: Sequence[EvidenceRecord]
) -> Iterable[CheckLine]:
    """Yield a line a check: its runs stand one after another, the last of them carries the state."""
    runs: list[CheckRunLine] = []
    for record in records:
        if record.kind != "check" or "task" in (sealed := members(record)):
            continue
        runs.append(_run(chain, record, sealed))
        if not sealed.get("state"):
            continue
        yield CheckLine(
            task=task,
            attempt=attempt,
            check=_text(sealed, "check"),
            command=_texts(sealed, "argv"),
            kind=_text(sealed, "kind"),
            state=_text(sealed, "state"),
            required=sealed.get("required") is True,
            flaky=sealed.get("flaky") is True,
            self_authored=sealed.get("selfAuthored") is True,
            findings=_texts(sealed, "findings"),
            runs=tuple(runs),
        )
        runs = []


def _verdicts(
    task: str, attempt: int, chain: str, records: Sequence[EvidenceRecord]
) -> Iterable[VerdictLine]:
    for record in records:
        if record.kind == "verdict":
            sealed = members(record)
            yield VerdictLine(
                task=task,
                attempt=attempt,
                passed=sealed.get("passed") is True,
                record=f"{chain}#{record.seq:05d}",
                seal=record.hash,
                tree=_text(sealed, "tree"),
            )


def _merged(task: str, chain: str, records: Sequence[EvidenceRecord]) -> Iterable[MergedLine]:
    for record in records:
        if record.kind == "check" and "task" in (sealed := members(record)):
            yield MergedLine(
                task=task,
                of=_text(sealed, "task"),
                check=_text(sealed, "check"),
                run=_run(chain, record, sealed),
            )


def _gate(data: RunData, records: Sequence[EvidenceRecord]) -> GateReport | None:
    """Return the last passage: a gate that was passed before a crash stands before it in the chain."""
    runs = 0
    found: tuple[EvidenceRecord, int] | None = None
    for record in records:
        if record.kind == "gate":
            found, runs = (record, runs), 0
        else:
            runs += 1
    if found is None:
        return None
    record, seen = found
    return GateReport(
        tree=_text(members(record), "tree"),
        record=f"{data.gate}#{record.seq:05d}",
        seal=record.hash,
        runs=seen,
        red=data.gate_red or _red(members(record)),
    )


def _red(sealed: Body) -> tuple[str, ...]:
    red = sealed.get("red")
    if not isinstance(red, list):
        return ()
    items = [cast("Body", i) for i in cast("list[object]", red) if isinstance(i, dict)]
    return tuple(f"Check {_text(i, 'check')!r} of {_text(i, 'task')} is red." for i in items)


def _run(chain: str, record: EvidenceRecord, sealed: Body) -> CheckRunLine:
    code = sealed.get("exitCode")
    seconds = sealed.get("seconds")
    ended = _ended(sealed)
    return CheckRunLine(
        record=f"{chain}#{record.seq:05d}",
        seal=record.hash,
        phase=_text(sealed, "phase"),
        again=sealed.get("again") is True,
        ended=ended,
        green=ended == "exit 0" and code == 0,
        seconds=float(seconds) if isinstance(seconds, int | float) else 0.0,
        tree=_text(sealed, "tree"),
    )


def _ended(sealed: Body) -> str:
    code = sealed.get("exitCode")
    return describe_exit(
        code if isinstance(code, int) else None,
        timed_out=sealed.get("timedOut") is True,
        missing=sealed.get("missing") is True,
        cut_short=sealed.get("cutShort") is True,
    )


def _text(sealed: Body, name: str) -> str:
    value = sealed.get(name)
    return value if isinstance(value, str) else ""


def _texts(sealed: Body, name: str) -> tuple[str, ...]:
    value = sealed.get(name)
    if not isinstance(value, list):
        return ()
    return tuple(str(item) for item in cast("list[object]", value))
