"""What was decided on the way: limits reached, retries with their reasons, claims that did not hold, calls that were refused. Pure.

`text` is the engine's; `detail` quotes what models, plans and commands wrote, and is shown as a quotation.
"""

import re
from collections.abc import Collection, Iterable, Iterator, Sequence
from dataclasses import dataclass
from itertools import islice
from typing import cast

from mimir.domain.event import Event, EventKind
from mimir.reporting.summary.proofs import CheckLine, ProofReport
from mimir.reporting.summary.run_data import AttemptData, RunDataPart, TaskData, without_places
from mimir.reporting.summary.task_lines import describe_trip

MOST_TITLES = 5
"""Refused calls of one agent that are named."""
MOST_CLAIM = 200
"""Characters of a worker's claim."""

_CLAIM = re.compile(
    r"\b(pass(es|ed|ing)?|green|succe(ed|eds|eded|ss|ssful|ssfully)|works?|working|fixed|done|"
    r"complete[sd]?|correct(ly)?|implemented|ready|verified)\b",
    re.IGNORECASE,
)
_DENIAL = re.compile(r"\b(not|no|fail\w*|cannot|unable|without|red)\b|n't\b", re.IGNORECASE)
_SENTENCES = re.compile(r"(?<=[.!?])\s+|\n+")


@dataclass(frozen=True, slots=True, kw_only=True)
class ReportedDecision:
    """One thing that was decided or caught."""

    kind: str
    """`breaker`, `retry`, `integration`, `claim`, `overruled`, `left_out`, `protected`, `denied`, `merged`, `lane_cut`, `resumed`,
    `preamble`, `applied`."""
    task: str
    """Empty: of the run."""
    attempt: int
    """0: of no attempt."""
    text: str
    detail: tuple[str, ...] = ()


class DecisionCollector:
    """Takes a run a part at a time, and keeps what was decided and what a person should know."""

    def __init__(self, events: Sequence[Event]) -> None:
        """Begin with the events that a report tells of one by one; more may come, those of a task before it is taken."""
        self._events = events
        self._sorted = 0
        """Events that were looked at for whose they are."""
        self._of: dict[tuple[str, int], list[Event]] = {}
        """(task, attempt) → its events, until it is taken."""
        self._found: list[ReportedDecision] = []
        self._notes: list[str] = []

    def take(self, part: RunDataPart, merged: Collection[str]) -> None:
        """Take in some tasks, and which of them were merged with the work of others."""
        self._sort()
        for task in part.tasks:
            for attempt in task.attempts:
                place = (task.id, attempt.number)
                events = self._of.pop(place, ())
                self._found += _attempt(task, attempt)
                self._found += _denied(place, events)
                self._found += map(_retry, _only(EventKind.TASK_RETRIED, events))
                notes = attempt.work.notes if attempt.work else ()
                self._notes += [f"{task.id}, attempt {attempt.number}: {note}" for note in notes]
            if task.id in merged:
                text = "It was merged with the work of other tasks, and its checks ran again on the merged tree."
                made = ReportedDecision(
                    kind="merged", task=task.id, attempt=task.accepted, text=text
                )
                self._found.append(made)

    def _sort(self) -> None:
        for event in islice(self._events, self._sorted, None):
            if event.kind in (EventKind.TOOL_DENIED, EventKind.TASK_RETRIED):
                self._of.setdefault((event.task, event.attempt), []).append(event)
        self._sorted = len(self._events)

    def decisions(self) -> tuple[ReportedDecision, ...]:
        """Return what was decided, task by task in the plan's order, then what concerns the run."""
        return (*self._found, *_of_run(self._events))

    def warnings(self, proof: ProofReport) -> tuple[str, ...]:
        """Return what a person should know, each once."""
        found: list[str] = []
        if proof.sandbox == "none":
            found.append(
                'Commands and checks ran without a sandbox: `sandbox = "none"` was set by name.'
            )
        said = (_word(e, "message") for e in self._events if e.kind is EventKind.WARNING)
        found += map(without_places, said)
        for check in proof.checks:
            found += _findings(check)
        return tuple(dict.fromkeys(text for text in (*found, *self._notes) if text))


def claim_of(answer: str) -> str:
    """Return the first sentence of an answer that claims success; empty: none does."""
    for sentence in _SENTENCES.split(answer):
        words = " ".join(sentence.split())
        if _CLAIM.search(words) and not _DENIAL.search(words):
            return words if len(words) <= MOST_CLAIM else f"{words[:MOST_CLAIM]}…"
    return ""


def _attempt(task: TaskData, attempt: AttemptData) -> Iterator[ReportedDecision]:
    def made(kind: str, text: str, detail: Iterable[str] = ()) -> ReportedDecision:
        return ReportedDecision(
            kind=kind, task=task.id, attempt=attempt.number, text=text, detail=tuple(detail)
        )

    if attempt.trip:
        text = "A limit was reached; the worker was asked for its closing answer, which was judged like any other."
        yield made("breaker", text, [describe_trip(attempt)])
    yield from (made("claim", text, detail) for text, detail in _claims(attempt))
    judgement = attempt.judgement
    if judgement and judgement.verdict.verdict == "PASS" and not judgement.passed:
        text = (
            f"QC said PASS with {float(judgement.model_score):.4g}; the engine did not accept it."
        )
        yield made("overruled", text, judgement.reasons)
    work = attempt.work
    if work and work.left_out:
        text = "Changes outside the task's files were left out of the deliverable."
        yield made("left_out", text, work.left_out)
    if work and work.protected:
        text = "Protected files were changed; the checks ran with them as they were."
        yield made("protected", text, work.protected)


def _claims(attempt: AttemptData) -> Iterator[tuple[str, tuple[str, ...]]]:
    """Yield what the worker claimed and did not hold: citations that its calls do not bear out, success that a check denies."""
    judgement, work = attempt.judgement, attempt.work
    unsupported = judgement.unsupported_claims if judgement else work.unsupported if work else ()
    if unsupported:
        yield "The worker cited what its tool calls did not say.", tuple(unsupported)
    failed = [o for o in attempt.outcomes if o.required and o.state == "failed"]
    claim = claim_of(work.answer) if work and failed else ""
    if claim:
        said = tuple(f"check {o.check}: {(o.again or o.after).describe_end}" for o in failed)
        yield "The worker claimed success; what the engine ran says otherwise.", (claim, *said)


def _only(kind: EventKind, events: Iterable[Event]) -> Iterator[Event]:
    return (event for event in events if event.kind is kind)


def _retry(event: Event) -> ReportedDecision:
    reason = _word(event, "reason")
    integration = reason == "integration"
    text = (
        "It was accepted but could not be merged; tried again from the merged tree, no attempt used."
        if integration
        else f"It was not accepted ({reason}) and tried again with what was wrong."
    )
    return ReportedDecision(
        kind="integration" if integration else "retry",
        task=event.task,
        attempt=event.attempt,
        text=text,
        detail=_words(event, "issues"),
    )


def _denied(place: tuple[str, int], events: Iterable[Event]) -> Iterator[ReportedDecision]:
    titles: dict[str, list[str]] = {}
    for event in _only(EventKind.TOOL_DENIED, events):
        title = _word(event, "title") or _word(event, "tool")
        titles.setdefault(_word(event, "role") or "worker", []).append(title)
    return (_refusals(place, role, titles[role]) for role in sorted(titles))


def _refusals(place: tuple[str, int], role: str, titles: list[str]) -> ReportedDecision:
    calls = "1 tool call" if len(titles) == 1 else f"{len(titles)} tool calls"
    return ReportedDecision(
        kind="denied",
        task=place[0],
        attempt=place[1],
        text=f"{calls} of its {role} were refused; the agent was told why.",
        detail=tuple(titles[:MOST_TITLES]),
    )


def _of_run(events: Iterable[Event]) -> Iterator[ReportedDecision]:
    resumed, changes = 0, list[str]()
    for event in events:
        match event.kind:
            case EventKind.RUN_RESUMED:
                resumed += 1
                changes.append(_word(event, "message"))
            case EventKind.LANE_CUT:
                text = (
                    "A resumed conversation differed from its record; it went on live from there."
                )
                yield _run_wide("lane_cut", text, [_word(event, "lane")])
            case EventKind.PREAMBLE_MADE if _word(event, "origin") == "template":
                text = "A preamble could not be generated; the template alone was used."
                yield _run_wide("preamble", text, [_word(event, "role"), _word(event, "why")])
            case EventKind.APPLIED:
                yield _applied(event)
            case _:
                continue
    if resumed:
        times = "once" if resumed == 1 else f"{resumed} times"
        yield _run_wide("resumed", f"The run was resumed {times}.", changes)


def _applied(event: Event) -> ReportedDecision:
    conflicts = _words(event, "conflicts")
    if conflicts:
        text = "Nothing was applied: these files were changed by somebody else meanwhile."
        return _run_wide("applied", text, conflicts)
    paths = _words(event, "paths")
    return _run_wide("applied", "The result was applied to the project's directory.", paths)


def _run_wide(kind: str, text: str, detail: Iterable[str] = ()) -> ReportedDecision:
    return ReportedDecision(
        kind=kind, task="", attempt=0, text=text, detail=tuple(part for part in detail if part)
    )


def _findings(check: CheckLine) -> Iterator[str]:
    where = f"Check {check.check!r} of {check.task}"
    yield from (f"{where}: {finding}" for finding in check.findings)
    if check.self_authored:
        yield f"{where}: its files were written by the attempt that it judges."


def _word(event: Event, name: str) -> str:
    value = event.data.get(name)
    return value if isinstance(value, str) else ""


def _words(event: Event, name: str) -> tuple[str, ...]:
    value = event.data.get(name)
    if not isinstance(value, list | tuple):
        return ()
    return tuple(str(item) for item in cast("list[object]", value))
