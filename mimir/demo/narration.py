"""Narration of a run: the events that matter to a newcomer, in a line or two each.

Every statement is computed from the store. Texts of models are quoted.
"""

import re
import textwrap
from collections.abc import Callable, Iterator, Mapping, Sequence

from mimir.domain.event import Event, EventKind
from mimir.domain.evidence import CheckOutcome, CheckRun
from mimir.domain.json_value import as_text
from mimir.domain.value_class import value_class
from mimir.reporting.summary.run_data import AttemptData, RunData, TaskData

QUOTED = 120
"""Most characters of a quote."""
_PYTEST_ERROR = re.compile(r"^E  (.*)$", re.MULTILINE)


@value_class
class NarrationLine:
    """One line of the narration."""

    subject: str
    """Task or role. Empty: that of the line before."""
    text: str


def narrate_event(event: Event, data: RunData | None) -> list[NarrationLine]:
    """Return the lines of an event; `data` is None if `needs_data` does not ask for it."""
    subject = _subject(event)
    return [
        NarrationLine(subject="" if place else subject, text=text)
        for place, text in enumerate(_texts(event, data))
    ]


def _subject(event: Event) -> str:
    match event.kind:
        case EventKind.MODEL_CALLED:
            return as_text(event.data.get("role")).replace("ecko", "Ecko")
        case EventKind.PLAN_PROPOSED | EventKind.PLAN_REPAIRED:
            return "PM"
        case EventKind.RUN_STARTED:
            return "agentinator"
        case EventKind.GATE_PASSED | EventKind.GATE_FAILED:
            return "final gate"
        case _:
            return event.task or "run"


def _texts(event: Event, data: RunData | None) -> Iterator[str]:
    match event.kind:
        case EventKind.MODEL_CALLED if event.data.get("role") == "ecko":
            yield "wrote a specification of the request"
        case EventKind.PLAN_PROPOSED | EventKind.PLAN_REPAIRED:
            errors = event.data.get("errors") or "no"
            yield f"wrote a plan with {event.data.get('tasks')} tasks; its check found {errors} errors"
        case EventKind.RUN_STARTED if data:
            # One line for all preambles, not one for each.
            preambles = sum(one.kind is EventKind.PREAMBLE_MADE for one in data.events)
            yield f"wrote {preambles} preambles, one for each role: generated-agents/"
        case EventKind.GATE_PASSED:
            yield f"{event.data.get('checks')} checks ran on the final tree: all green"
        case EventKind.GATE_FAILED:
            yield "a check is red on the final tree"
        case EventKind.WARNING:
            yield f"warning: {as_text(event.data.get('message'))}"
        case _ if data and event.task:
            yield from _attempt_texts(event, data)
        case _:
            return


def _attempt_texts(event: Event, data: RunData) -> Iterator[str]:
    task = next((one for one in data.tasks if one.id == event.task), None)
    attempt = next((a for a in task.attempts if a.number == event.attempt), None) if task else None
    describe = _DESCRIBERS.get(event.kind)
    if task is not None and attempt is not None and describe is not None:
        yield from describe(event, _EventSubject(task=task, attempt=attempt, data=data))


@value_class
class _EventSubject:
    """Subject of an attempt's event."""

    task: TaskData
    attempt: AttemptData
    data: RunData


def _describe_start(event: Event, subject: _EventSubject) -> Iterator[str]:
    if event.attempt > 1:
        yield f"attempt {event.attempt} starts with every finding of attempt {event.attempt - 1}"
    else:
        yield f"starts: {subject.task.title}"


def _describe_resume(_: Event, subject: _EventSubject) -> Iterator[str]:
    yield f"attempt {subject.attempt.number} resumes; answered calls come from its transcript"


def _describe_trip(event: Event, _: _EventSubject) -> Iterator[str]:
    detail = as_text(event.data.get("detail"))
    yield f"CIRCUIT BREAKER: {detail}; the worker must give its closing answer"


def _describe_answer(_: Event, subject: _EventSubject) -> Iterator[str]:
    work = subject.attempt.work
    yield f"worker answers: {quote(work.answer if work else '')}"


def _describe_checks(_: Event, subject: _EventSubject) -> Iterator[str]:
    for outcome in find_failed_checks(subject.attempt):
        yield f"engine ran: {' '.join(outcome.after.argv)} -> exit {outcome.after.exit_code}"
        yield f"its output: {find_error_line(outcome.after)}"
    if subject.attempt.work:
        for citation in subject.attempt.work.unsupported:
            yield f"false citation: {clip_line(citation)}"


def _describe_rejection(_: Event, subject: _EventSubject) -> Iterator[str]:
    yield f"REJECTED with score {_score(subject.attempt.score)}; a retry follows"


def _describe_completion(_: Event, subject: _EventSubject) -> Iterator[str]:
    task, attempt = subject.task, subject.attempt
    proof = next((_last_line(o.after) for o in attempt.outcomes if o.state == "passed"), "")
    # Only a count of tests explains itself; other programs print anything.
    shown = f" ({proof})" if " passed" in proof else ""
    yield f"completed with score {_score(task.score)}{shown}"
    shared = find_shared_files(task, subject.data)
    if shared and was_judged_again(attempt):
        others = ", ".join(dict.fromkeys(other for other, _ in shared))
        files = ", ".join(dict.fromkeys(path for _, path in shared))
        yield f"MERGED: {others} changed {files} too; the merged tree was checked and judged again"


def _describe_failure(event: Event, _: _EventSubject) -> Iterator[str]:
    yield f"FAILED: {as_text(event.data.get('cause'))}"


_DESCRIBERS: Mapping[EventKind, Callable[[Event, _EventSubject], Iterator[str]]] = {
    EventKind.ATTEMPT_STARTED: _describe_start,
    EventKind.LEASE_TAKEN: _describe_resume,
    EventKind.BREAKER_TRIPPED: _describe_trip,
    EventKind.WORK_ANSWERED: _describe_answer,
    EventKind.JUDGING_STARTED: _describe_checks,
    EventKind.TASK_RETRIED: _describe_rejection,
    EventKind.TASK_COMPLETED: _describe_completion,
    EventKind.TASK_FAILED: _describe_failure,
}


def find_failed_checks(attempt: AttemptData) -> list[CheckOutcome]:
    """Return the checks that failed on an attempt's deliverable."""
    return [outcome for outcome in attempt.outcomes if outcome.state == "failed"]


def find_shared_files(task: TaskData, data: RunData) -> list[tuple[str, str]]:
    """Return (other task, file) for each file that another completed task changed too."""
    return [
        (other.id, path)
        for other in data.tasks
        if other.id != task.id
        for path in other.files_changed
        if path in task.files_changed
    ]


def was_judged_again(attempt: AttemptData) -> bool:
    """Return whether the attempt's evidence chain has a second verdict, on the merged tree."""
    return sum(record.kind == "verdict" for record in attempt.evidence) > 1


def find_error_line(run: CheckRun) -> str:
    """Return the error line of a check's output, or its last line."""
    # pytest marks the error with `E`; its last line only counts tests.
    error = _PYTEST_ERROR.search(run.output_tail)
    return clip_line(error[1]) if error else _last_line(run)


def _last_line(run: CheckRun) -> str:
    return clip_line(run.output_tail.rstrip().rpartition("\n")[2])


def quote(text: str) -> str:
    """Return a model's text on one line, in quotation marks."""
    return f'"{clip_line(text)}"'


def clip_line(text: str) -> str:
    """Return a text on one line; a long one ends after a word, with a mark."""
    line = " ".join(text.split())
    return textwrap.shorten(line, QUOTED, placeholder=" ...") if " " in line else line


def _score(value: float | None) -> str:
    return "none" if value is None else f"{value:.0f}"


def needs_data(events: Sequence[Event]) -> bool:
    """Return whether the narration of these events needs the run's data."""
    return any(event.kind not in _WITHOUT_DATA for event in events)


# Frequent events: loading the whole run for each would delay the narration.
_WITHOUT_DATA = (
    EventKind.TOOL_CALLED,
    EventKind.MODEL_CALLED,
    EventKind.CHECK_RUN,
    EventKind.TASK_READY,
    EventKind.VERDICT_GIVEN,
    EventKind.PREAMBLE_MADE,
    EventKind.PLAN_PROPOSED,
)
