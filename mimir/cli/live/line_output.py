"""Events as lines for pipes and logs, and as JSON for scripts."""

from collections.abc import Callable, Mapping

from mimir.cli.console import clean_line
from mimir.cli.live.cells import clock, number, score_of
from mimir.domain.event import Event, EventKind
from mimir.domain.json_value import as_array, as_object, as_text, as_texts
from mimir.domain.question import describe_values
from mimir.domain.quoted_text import count_noun
from mimir.domain.task_states import ANSWERED, RunStatus

SCHEMA = 1
DETAIL_CHARS = 160
_CALL = "call"


def as_json(event: Event, *, is_read_only: bool = False) -> dict[str, object]:
    """Return an event as JSON: its own members first, then its data.

    Data never replaces a member of the event. Read-only work is answered, never completed.
    """
    own: dict[str, object] = {
        "schema": SCHEMA,
        "seq": event.seq,
        "event": _name(event, is_read_only=is_read_only),
        "run": event.run,
        "task": event.task,
        "attempt": event.attempt,
        "at": event.at,
    }
    # An event and a call in a transcript both have a `seq`; that of the call becomes `call`.
    stated = _state_answered(event.data) if is_read_only else event.data
    data = {(_CALL if key == "seq" else key): value for key, value in stated.items()}
    return {**own, **{key: value for key, value in data.items() if key not in own}}


def as_line(event: Event, since_seconds: float, *, is_read_only: bool = False) -> str:
    """Return an event as one line: time since the first event, task and attempt, detail."""
    place = f"{event.task}/{event.attempt}" if event.task and event.attempt else event.task or "run"
    detail = clean_line(
        _DETAILS[event.kind](_state_answered(event.data) if is_read_only else event.data),
        DETAIL_CHARS,
    )
    head = f"{clock(since_seconds):>7}  {clean_line(place, 60):<12}  {_name(event, is_read_only=is_read_only)}"
    return f"{head}: {detail}" if detail else head


def _name(event: Event, *, is_read_only: bool) -> str:
    is_answer = is_read_only and event.kind is EventKind.TASK_COMPLETED
    return "TaskAnswered" if is_answer else event.kind.value


def _state_answered(data: "Data") -> "Data":
    """Return the data of an event of read-only work, without a score and a completion."""
    return {
        key: ANSWERED if value == RunStatus.COMPLETED.value else value
        for key, value in data.items()
        if key not in ("score", "model_score")
    }


Data = Mapping[str, object]


def _tool(data: Data) -> str:
    tool, title = as_text(data.get("tool")), as_text(data.get("title"))
    # The gateway writes the name of the tool at the start of a title.
    named = title if title.startswith(tool) else f"{tool} {title}"
    return f"{as_text(data.get('role'))} {named.strip()} (call {_int(data, 'calls')})"


def _model(data: Data) -> str:
    return f"{as_text(data.get('role'))} {as_text(data.get('title'))} ({_int(data, 'tokens')} tokens, call {_int(data, 'calls')} of the run)"


def _check(data: Data) -> str:
    code = data.get("exitCode")
    end = "did not end" if code is None else f"exit {code}"
    cut = "cut short" if data.get("cutShort") is True else ""
    again = "run again" if data.get("again") is True else ""
    flaky = "flaky" if data.get("flaky") is True else ""
    parts = [part for part in (end, cut, as_text(data.get("state")), again, flaky) if part]
    return f"{as_text(data.get('check'))} {as_text(data.get('phase'))}: {', '.join(parts)}"


def _verdict(data: Data) -> str:
    """Return the engine's verdict, and QC's own answer only if it differs."""
    if "score" not in data:  # nothing decided the result
        return "".join(_first(data, "reasons"))
    passed = data.get("passed") is True
    answer = as_text(data.get("verdict"))
    differs = bool(answer) and passed is not (answer == "PASS")
    ruling = f"{'passed' if passed else 'rejected'}{f' (QC answered {answer})' if differs else ''}"
    score = score_of(number(data.get("score")))
    return ", ".join(
        part
        for part in (
            ruling,
            score and f"score {score}",
            *as_texts(data.get("checks")),
            *_first(data, "reasons"),
        )
        if part
    )


def _cause(data: Data) -> str:
    cause = as_text(data.get("cause")) or as_text(data.get("reason"))
    return ": ".join(part for part in (cause, *_first(data, "issues")) if part)


def _first(data: Data, key: str) -> list[str]:
    return as_texts(data.get(key))[:1]


def _work(data: Data) -> str:
    files = len(as_array(data.get("changed")))
    return f"{_int(data, 'tool_calls')} of {_int(data, 'limit')} tool calls, {files} files changed"


def _completion(data: Data) -> str:
    source = as_text(data.get("takenFrom"))
    if source:
        return f"reused from {source}"
    score, files = score_of(number(data.get("score"))), len(as_array(data.get("changed")))
    return f"score {score or '?'}, {files} files changed" if "score" in data else ""


def _gate(data: Data) -> str:
    return f"{_int(data, 'checks')} checks, {len(as_array(data.get('red')))} red"


def _outcome(data: Data) -> str:
    return ": ".join(part for key in ("outcome", "message") if (part := as_text(data.get(key))))


def _run(data: Data) -> str:
    count = len(as_array(data.get("tasks")))
    return f"{as_text(data.get('name'))} ({count_noun(count, 'task')})"


def _plan(data: Data) -> str:
    return f"{_int(data, 'tasks')} tasks, {_int(data, 'errors')} errors"


def _application(data: Data) -> str:
    conflicts = len(as_array(data.get("conflicts")))
    if conflicts:
        return f"nothing: you changed {conflicts} files during the run"
    return f"{len(as_array(data.get('paths')))} files"


def _question(data: Data) -> str:
    default = "" if data.get("blocking") is True else " (the default holds until the answer)"
    return f"{as_text(data.get('question'))} {as_text(data.get('title'))}{default}"


def _question_end(data: Data) -> str:
    by = f" by {as_text(data.get('by'))}" if data.get("by") else ""
    answer = as_object(data.get("answer"))
    suffix = f": {describe_values(answer)}" if answer else ""
    return f"{as_text(data.get('question'))} {as_text(data.get('state'))}{by}{suffix}"


def _first_of(*keys: str) -> Callable[[Data], str]:
    """Return a function that returns the first of these members with a value."""
    return lambda data: next(
        (str(data[key]) for key in keys if data.get(key) not in (None, "")), ""
    )


def _int(data: Data, key: str) -> str:
    value = number(data.get(key))
    return "?" if value is None else str(int(value))


_DETAILS: Mapping[EventKind, Callable[[Data], str]] = {
    EventKind.RUN_CREATED: _run,
    EventKind.RUN_STARTED: _first_of(),
    EventKind.RUN_PAUSED: _first_of("message", "reason"),
    EventKind.RUN_RESUMED: _first_of("message"),
    EventKind.RUN_FINISHED: _outcome,
    EventKind.PLAN_PROPOSED: _plan,
    EventKind.PLAN_REPAIRED: _plan,
    EventKind.PREAMBLE_MADE: _first_of("role", "path"),
    EventKind.TASK_READY: _first_of(),
    EventKind.TASK_BLOCKED: _first_of("because"),
    EventKind.TASK_CANCELLED: _first_of("because"),
    EventKind.ATTEMPT_STARTED: _first_of(),
    EventKind.LEASE_TAKEN: _first_of(),
    EventKind.MODEL_CALLED: _model,
    EventKind.TOOL_CALLED: _tool,
    EventKind.TOOL_DENIED: _tool,
    EventKind.QUESTION_ASKED: _question,
    EventKind.QUESTION_CLOSED: _question_end,
    EventKind.ANSWER_REFUSED: _first_of("message"),
    EventKind.BREAKER_TRIPPED: _first_of("detail", "kind"),
    EventKind.LANE_CUT: _first_of("lane"),
    EventKind.DRIFT: _first_of("lane", "part"),
    EventKind.WORK_ANSWERED: _work,
    EventKind.CHECK_RUN: _check,
    EventKind.JUDGING_STARTED: _first_of(),
    EventKind.VERDICT_GIVEN: _verdict,
    EventKind.TASK_COMPLETED: _completion,
    EventKind.TASK_RETRIED: _cause,
    EventKind.TASK_FAILED: _cause,
    EventKind.GATE_PASSED: _gate,
    EventKind.GATE_FAILED: _gate,
    EventKind.REPORT_WRITTEN: _first_of("path"),
    EventKind.APPLIED: _application,
    EventKind.WARNING: _first_of("message"),
}
"""The detail of each kind of event; a test requires every kind."""
