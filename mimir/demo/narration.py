"""A run told as it goes: each event that matters to somebody who sees mimir for the first time, in a line or two. Pure.

The rule of the file: what a line says stands in the store. Words of models are given as quotes.
"""

import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass

from mimir.domain.clock import moment
from mimir.domain.event import Event, EventKind
from mimir.domain.evidence import CheckOutcome, CheckRun
from mimir.reporting.summary.run_data import AttemptData, RunData, TaskData

QUOTED = 72
"""Most characters of a quote."""
_TELLING = re.compile(r"^E  .*$", re.MULTILINE)
"""The line by which pytest says what is wrong."""


@dataclass(frozen=True, slots=True, kw_only=True)
class NarrationLine:
    """One line for people."""

    who: str
    said: str

    def __str__(self) -> str:
        return f"{self.who:<12}{self.said}"


def narrate_event(event: Event, data: RunData | None) -> list[NarrationLine]:
    """Return the lines of an event; none if it is of no interest.

    Args:
        event: What happened.
        data: The run as it stands. None: no event that is told now needs it.
    """
    who = _who(event)
    return [
        NarrationLine(who=who if n == 0 else "", said=said)
        for n, said in enumerate(_said(event, data))
    ]


def seconds(first: Event, event: Event) -> float:
    """Return the seconds between two events."""
    return (moment(event.at) - moment(first.at)).total_seconds()


def _who(event: Event) -> str:
    match event.kind:
        case EventKind.MODEL_CALLED:
            return _text(event.data, "role").replace("ecko", "Ecko")
        case EventKind.PLAN_PROPOSED | EventKind.PLAN_REPAIRED:
            return "PM"
        case EventKind.RUN_STARTED:
            return "agentinator"
        case EventKind.GATE_PASSED | EventKind.GATE_FAILED:
            return "final gate"
        case _:
            return event.task or "run"


def _said(event: Event, data: RunData | None) -> Iterator[str]:
    match event.kind:
        case EventKind.MODEL_CALLED if event.data.get("role") == "ecko":
            yield "made a specification of the request"
        case EventKind.PLAN_PROPOSED | EventKind.PLAN_REPAIRED:
            yield f"planned {event.data.get('tasks')} tasks; the engine's check of the plan finds {event.data.get('errors')} errors"
        case EventKind.RUN_STARTED if data:
            made = sum(one.kind is EventKind.PREAMBLE_MADE for one in data.events)
            yield f"wrote {made} preambles, one for each role: generated-agents/"
        case EventKind.GATE_PASSED:
            yield f"{event.data.get('checks')} checks on the final tree, none of them red"
        case EventKind.GATE_FAILED:
            yield "a check is red on the final tree"
        case EventKind.WARNING:
            yield f"warning: {_text(event.data, 'message')}"
        case _ if data and event.task:
            yield from _of_a_task(event, data)
        case _:
            return


def _of_a_task(event: Event, data: RunData) -> Iterator[str]:
    task = next((one for one in data.tasks if one.id == event.task), None)
    attempt = next((a for a in task.attempts if a.number == event.attempt), None) if task else None
    say = _SAYINGS.get(event.kind)
    if task is not None and attempt is not None and say is not None:
        yield from say(event, _EventSubject(task=task, attempt=attempt, data=data))


@dataclass(frozen=True, slots=True, kw_only=True)
class _EventSubject:
    """What an event of an attempt is about."""

    task: TaskData
    attempt: AttemptData
    data: RunData


def _begins(event: Event, seen: _EventSubject) -> Iterator[str]:
    again = f"attempt {event.attempt} begins, told all that was wrong with the one before"
    yield again if event.attempt > 1 else f"begins: {seen.task.title}"


def _taken(_: Event, seen: _EventSubject) -> Iterator[str]:
    yield f"attempt {seen.attempt.number} goes on; what was answered is read from the journal"


def _tripped(event: Event, _: _EventSubject) -> Iterator[str]:
    yield f"BREAKER: {_text(event.data, 'detail')}; asked once for a closing answer"


def _answered(_: Event, seen: _EventSubject) -> Iterator[str]:
    yield f"worker says: {quote(seen.attempt.work.answer if seen.attempt.work else '')}"


def _checked(_: Event, seen: _EventSubject) -> Iterator[str]:
    """Say which checks failed, and which claims of the answer the record does not hold."""
    for outcome in find_failed_checks(seen.attempt):
        yield f"engine ran: {' '.join(outcome.after.argv)} -> exit {outcome.after.exit_code}"
        yield f"            {trouble(outcome.after)}"
    if seen.attempt.work:
        for claim in seen.attempt.work.unsupported:
            yield f"claimed without proof: {clip_line(claim)}"


def _rejected(_: Event, seen: _EventSubject) -> Iterator[str]:
    yield f"REJECTED, score {_score(seen.attempt.score)}; to be tried again"


def _completed(_: Event, seen: _EventSubject) -> Iterator[str]:
    task, attempt = seen.task, seen.attempt
    proof = next((last_line(o.after) for o in attempt.outcomes if o.state == "passed"), "")
    yield f"completed, score {_score(task.score)}{f' ({proof})' if proof else ''}"
    both = find_shared_files(task, seen.data)
    if both and judged_again(attempt):
        others = ", ".join(dict.fromkeys(other for other, _ in both))
        files = ", ".join(dict.fromkeys(path for _, path in both))
        yield f"MERGED: {others} changed {files} too; checked and judged again on the merged tree"


def _failed(event: Event, _: _EventSubject) -> Iterator[str]:
    yield f"FAILED: {_text(event.data, 'cause')}"


_SAYINGS: Mapping[EventKind, Callable[[Event, _EventSubject], Iterator[str]]] = {
    EventKind.ATTEMPT_STARTED: _begins,
    EventKind.LEASE_TAKEN: _taken,
    EventKind.BREAKER_TRIPPED: _tripped,
    EventKind.WORK_ANSWERED: _answered,
    EventKind.JUDGING_STARTED: _checked,
    EventKind.TASK_RETRIED: _rejected,
    EventKind.TASK_COMPLETED: _completed,
    EventKind.TASK_FAILED: _failed,
}


def find_failed_checks(attempt: AttemptData) -> list[CheckOutcome]:
    """Return the checks that failed on an attempt's deliverable."""
    return [outcome for outcome in attempt.outcomes if outcome.state == "failed"]


def find_shared_files(task: TaskData, data: RunData) -> list[tuple[str, str]]:
    """Return (other task, file) of each file that this task and another completed one changed."""
    return [
        (other.id, path)
        for other in data.tasks
        if other.id != task.id
        for path in other.files_changed
        if path in task.files_changed
    ]


def judged_again(attempt: AttemptData) -> bool:
    """True if QC ruled on the merged tree too: its second verdict is sealed in the attempt's chain."""
    return sum(record.kind == "verdict" for record in attempt.evidence) > 1


def trouble(run: CheckRun) -> str:
    """Return the line of a check's output that tells most."""
    told = _TELLING.search(run.output_tail)
    return clip_line(told[0].removeprefix("E  ")) if told else last_line(run)


def last_line(run: CheckRun) -> str:
    """Return the last line of a check's output."""
    return clip_line(run.output_tail.rstrip().rpartition("\n")[2])


def quote(text: str) -> str:
    """Return what a model said, on one line, between quotation marks."""
    return f'"{clip_line(text)}"'


def clip_line(text: str) -> str:
    """Return a text on one line, cut with a mark if it is long."""
    line = " ".join(text.split())
    return line if len(line) <= QUOTED else f"{line[: QUOTED - 3]}..."


def _score(value: float | None) -> str:
    return "none" if value is None else f"{value:.0f}"


def _text(values: Mapping[str, object], name: str) -> str:
    value = values.get(name)
    return value if isinstance(value, str) else ""


def needs_data(events: Sequence[Event]) -> bool:
    """True if telling these events takes more than they hold."""
    return any(event.kind not in _BY_THEMSELVES for event in events)


_BY_THEMSELVES = (
    EventKind.TOOL_CALLED,
    EventKind.MODEL_CALLED,
    EventKind.CHECK_RUN,
    EventKind.TASK_READY,
    EventKind.VERDICT_GIVEN,
    EventKind.PREAMBLE_MADE,
    EventKind.PLAN_PROPOSED,
)
