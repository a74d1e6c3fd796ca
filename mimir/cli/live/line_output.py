"""A run told in lines, one an event: for pipes and logs, and as JSON for scripts. Pure."""

from collections.abc import Callable, Mapping

from mimir.cli.console import clean_line
from mimir.cli.live.board import entries, number, text, texts
from mimir.domain.event import Event, EventKind

SCHEMA = 1
DETAIL_CHARS = 160
_CALL = "call"


def as_json(event: Event) -> dict[str, object]:
    """Return an event as scripts read it: its own keys first, then what its data adds.

    Data may not pass itself off as the event's own: `seq` of a call in its lane is told as `call`, any other such key is dropped.
    """
    own: dict[str, object] = {
        "schema": SCHEMA,
        "seq": event.seq,
        "event": event.kind.value,
        "run": event.run,
        "task": event.task,
        "attempt": event.attempt,
        "at": event.at,
    }
    data = {(_CALL if key == "seq" else key): value for key, value in event.data.items()}
    return {**own, **{key: value for key, value in data.items() if key not in own}}


def as_line(event: Event, since_seconds: float) -> str:
    """Return an event as one line: time, task and attempt, what happened.

    Args:
        event: What happened.
        since_seconds: Since the first event that was told.
    """
    who = f"{event.task}/{event.attempt}" if event.task and event.attempt else event.task or "run"
    said = clean_line(_SAYINGS[event.kind](event.data), DETAIL_CHARS)
    head = f"{clock(since_seconds):>7}  {clean_line(who, 60):<12}  {event.kind.value}"
    return f"{head}: {said}" if said else head


def clock(seconds: float) -> str:
    """Return a duration as `m:ss` or `h:mm:ss`."""
    whole = max(0, int(seconds))
    hours, rest = divmod(whole, 3600)
    minutes, seconds_left = divmod(rest, 60)
    if hours:
        return f"{hours}:{minutes:02d}:{seconds_left:02d}"
    return f"{minutes}:{seconds_left:02d}"


def score_of(value: float | None) -> str:
    """Return a score in at most four characters; empty: there is none."""
    return "" if value is None else f"{value:.0f}"


Data = Mapping[str, object]


def _tool(data: Data) -> str:
    tool, title = text(data.get("tool")), text(data.get("title"))
    named = title if title.startswith(tool) else f"{tool} {title}"
    return f"{text(data.get('role'))} {named.strip()} (call {_int(data, 'calls')})"


def _model(data: Data) -> str:
    return f"{text(data.get('role'))} {text(data.get('title'))} ({_int(data, 'tokens')} tokens, call {_int(data, 'calls')} of the run)"


def _check(data: Data) -> str:
    code = data.get("exitCode")
    end = "did not end" if code is None else f"exit {code}"
    cut = "cut short" if data.get("cutShort") is True else ""
    again = "run again" if data.get("again") is True else ""
    flaky = "flaky" if data.get("flaky") is True else ""
    parts = [part for part in (end, cut, text(data.get("state")), again, flaky) if part]
    return f"{text(data.get('check'))} {text(data.get('phase'))}: {', '.join(parts)}"


def _verdict(data: Data) -> str:
    """Return the engine's ruling; the model's own word beside it only where they differ."""
    passed = data.get("passed") is True
    said = text(data.get("verdict"))
    differs = bool(said) and passed is not (said == "PASS")
    ruling = f"{'passed' if passed else 'rejected'}{f' (the model said {said})' if differs else ''}"
    score = score_of(number(data.get("score")))
    return ", ".join(
        part for part in (ruling, score and f"score {score}", *_first(data, "reasons")) if part
    )


def _cause(data: Data) -> str:
    cause = text(data.get("cause")) or text(data.get("reason"))
    return ": ".join(part for part in (cause, *_first(data, "issues")) if part)


def _first(data: Data, key: str) -> list[str]:
    return texts(data.get(key))[:1]


def _answered(data: Data) -> str:
    files = len(entries(data.get("changed")))
    return f"{_int(data, 'tool_calls')} of {_int(data, 'limit')} tool calls, {files} files changed"


def _completed(data: Data) -> str:
    taken = text(data.get("takenFrom"))
    if taken:
        return f"taken over from {taken}"
    score, files = score_of(number(data.get("score"))), len(entries(data.get("changed")))
    return f"score {score or '?'}, {files} files changed"


def _gate(data: Data) -> str:
    return f"{_int(data, 'checks')} checks, {len(entries(data.get('red')))} red"


def _finished(data: Data) -> str:
    return ": ".join(part for key in ("outcome", "message") if (part := text(data.get(key))))


def _created(data: Data) -> str:
    return f"{text(data.get('name'))} ({len(entries(data.get('tasks')))} tasks)"


def _plan(data: Data) -> str:
    return f"{_int(data, 'tasks')} tasks, {_int(data, 'errors')} errors"


def _applied(data: Data) -> str:
    conflicts = len(entries(data.get("conflicts")))
    if conflicts:
        return f"nothing, {conflicts} files were changed meanwhile"
    return f"{len(entries(data.get('paths')))} files"


def _named(*keys: str) -> Callable[[Data], str]:
    """Return what says the first of these that is there."""

    def say(data: Data) -> str:
        return next((str(data[key]) for key in keys if data.get(key) not in (None, "")), "")

    return say


def _int(data: Data, key: str) -> str:
    value = number(data.get(key))
    return "?" if value is None else str(int(value))


_SAYINGS: Mapping[EventKind, Callable[[Data], str]] = {
    EventKind.RUN_CREATED: _created,
    EventKind.RUN_STARTED: _named(),
    EventKind.RUN_PAUSED: _named("message", "reason"),
    EventKind.RUN_RESUMED: _named("message"),
    EventKind.RUN_FINISHED: _finished,
    EventKind.PLAN_PROPOSED: _plan,
    EventKind.PLAN_REPAIRED: _plan,
    EventKind.PREAMBLE_MADE: _named("role", "path"),
    EventKind.TASK_READY: _named(),
    EventKind.TASK_BLOCKED: _named("because"),
    EventKind.TASK_CANCELLED: _named("because"),
    EventKind.ATTEMPT_STARTED: _named(),
    EventKind.LEASE_TAKEN: _named(),
    EventKind.MODEL_CALLED: _model,
    EventKind.TOOL_CALLED: _tool,
    EventKind.TOOL_DENIED: _tool,
    EventKind.BREAKER_TRIPPED: _named("detail", "kind"),
    EventKind.LANE_CUT: _named("lane"),
    EventKind.DRIFT: _named("lane", "part"),
    EventKind.WORK_ANSWERED: _answered,
    EventKind.CHECK_RUN: _check,
    EventKind.JUDGING_STARTED: _named(),
    EventKind.VERDICT_GIVEN: _verdict,
    EventKind.TASK_COMPLETED: _completed,
    EventKind.TASK_RETRIED: _cause,
    EventKind.TASK_FAILED: _cause,
    EventKind.GATE_PASSED: _gate,
    EventKind.GATE_FAILED: _gate,
    EventKind.REPORT_WRITTEN: _named("path"),
    EventKind.APPLIED: _applied,
    EventKind.WARNING: _named("message"),
}
"""How each event is told; every kind has its saying (tested)."""
