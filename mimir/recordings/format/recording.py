"""A recording as values: runs with their events, calls, check runs and what they came to. Built from lines, wherever those come from."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import cast

from mimir.agents.context.receipt import ContextReceipt
from mimir.domain.call_outcome import CallOutcome
from mimir.domain.clock import moment
from mimir.domain.event import Event, EventKind
from mimir.domain.evidence import CheckRun
from mimir.domain.plan import Plan
from mimir.domain.usage import MOST, TokenUsage
from mimir.llm import codec as words
from mimir.store import codec
from mimir.store.schema import pack
from mimir.tools.wrappers.journaled_tools import read_result

Json = Mapping[str, object]
_NAMED = frozenset(("to", "commit", "onto", "role", "owner", "outcome", "lane"))
"""What of an event's data something is looked up by."""
_LARGEST = 2**53
"""A number that every reader of JSON can tell from the next."""
_Preambles = tuple[tuple[str, str, str, str], ...]
"""(kind, role, text, hash)."""


@dataclass(frozen=True, slots=True, kw_only=True)
class RecordedCall:
    """One call of a lane with its outcome."""

    lane: str
    seq: int
    kind: str
    """`model` or `tool`."""
    tool: str
    title: str
    request: Json
    """What it added to the calls before."""
    request_hash: str
    outcome: CallOutcome
    lane_hash: str


@dataclass(frozen=True, slots=True, kw_only=True)
class RecordedCheckRun:
    """One run of a check."""

    by: str
    """`task/attempt`; empty: the run at its end."""
    owner: str
    """Process that ran it; each makes a run before the work once, and uses it again."""
    at: str
    timeout_seconds: float
    ran: CheckRun


@dataclass(slots=True, kw_only=True)
class RecordedAttempt:
    """What an attempt was begun with, and what it took."""

    base: str = ""
    """Head of the line that it began on; empty: it was not begun."""
    seconds: float | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class RecordedOutcome:
    """What a run came to."""

    status: str
    seal: str
    report: str
    plan: str
    evidence: Sequence[Json]
    verdicts: Sequence[Json]
    measured: Sequence[tuple[str, Json]] = ()
    """(label, row) of what was measured, not decided."""


@dataclass(kw_only=True)
class RecordedRun:
    """One run; filled by `build`."""

    id: str
    pinned: Json = field(default_factory=dict[str, object])
    plan: Plan | None = None
    """None: a planning run."""
    texts: dict[str, object] = field(default_factory=dict[str, object])
    """`preambles`, `brief`, as JSON values."""
    events: list[Event] = field(default_factory=list[Event])
    lanes: dict[str, dict[int, RecordedCall]] = field(
        default_factory=dict[str, dict[int, RecordedCall]]
    )
    checks: list[RecordedCheckRun] = field(default_factory=list[RecordedCheckRun])
    attempts: dict[tuple[str, int], RecordedAttempt] = field(
        default_factory=dict[tuple[str, int], RecordedAttempt]
    )
    end: RecordedOutcome | None = None

    def own(self, lane: str) -> str:
        """Return a lane's name within its run: `task/attempt/role`."""
        return lane.removeprefix(f"{self.id}/")

    @property
    def settings(self) -> Json:
        """What it pinned of the settings; empty: nothing is told."""
        return _members(self.pinned.get("settingsJson"))

    def model_calls(self, lane: str) -> list[RecordedCall]:
        """Return the model calls of a lane (named within its run), in order."""
        known = self.lanes.get(f"{self.id}/{lane}", {})
        return [known[seq] for seq in sorted(known) if known[seq].kind == "model"]

    @cached_property
    def preambles(self) -> Mapping[tuple[str, str], tuple[str, str]]:
        """(kind, role) → (text, hash)."""
        rows = codec.decode(_Preambles, self.texts.get("preambles") or [])
        return {(kind, role): (text, hash) for kind, role, text, hash in rows}


def _members(value: object) -> Json:
    return cast("Json", value) if isinstance(value, dict) else {}


@dataclass(kw_only=True)
class Recording:
    """All that a recording holds."""

    runs: dict[str, RecordedRun] = field(default_factory=dict[str, RecordedRun])
    """In the order of their first lines."""
    git: dict[str, object] = field(default_factory=dict[str, object])
    """What was asked of the history → what it said."""


def build(lines: Iterable[Json]) -> Recording:
    """Build a tape; a line that stands twice counts once, so that recordings can be put behind one another.

    Raises:
        StoreError, ValueError, KeyError, TypeError: A line is not of its form.
    """
    tape = Recording()
    for line in lines:
        add(tape, line)
    return in_order(tape)


def in_order(tape: Recording) -> Recording:
    """Put events that were written twice, or by several processes, in their order."""
    for run in tape.runs.values():
        known = {event.seq: event for event in run.events}
        run.events = [known[seq] for seq in sorted(known)]
    return tape


def add(tape: Recording, line: Json) -> None:
    """Take in one line: what is read of it later, by whoever replays it, is looked at here."""
    if line["kind"] == "git":
        tape.git[pack(line["ask"])] = line["answer"]
        return
    id = _text(line, "run")
    run = tape.runs.setdefault(id, RecordedRun(id=id))
    match line["kind"]:
        case "run":
            run.pinned = _mapping(line["pinned"])
            run.plan = codec.decode(Plan, line["plan"]) if line["plan"] else None
        case "text":
            run.texts[_text(line, "name")] = _said(line)
        case "event":
            run.events.append(_event(line))
        case "call":
            call = _call(line)
            run.lanes.setdefault(call.lane, {})[call.seq] = call
        case "check":
            _add_check(run, line)
        case "attempt":
            run.attempts[_text(line, "task"), _whole(line, "attempt")] = _facts(line)
        case "end":
            run.end = _end(line)
        case other:
            raise ValueError(f"there is no line of the kind {other!r}")


def _said(line: Json) -> object:
    """Return a text that a run began with."""
    text = line["text"]
    match line["name"]:
        case "preambles":
            codec.decode(_Preambles, text)
        case "brief":
            for row in codec.decode(tuple[object, ...], text):
                words.read_message(row)
        case "background":
            ContextReceipt.from_json(_mapping(text))
        case _:
            pass  # of a later mimir: nobody asks for it
    return text


def _event(line: Json) -> Event:
    data = _mapping(line["data"])
    for name in _NAMED & data.keys():
        if data[name] is not None:
            _text(data, name)
    models = _mapping(data.get("models", {}))
    for role in models:
        _text(models, role)
    return Event(
        seq=_whole(line, "seq"),
        kind=EventKind(_text(line, "event")),
        run=_text(line, "run"),
        at=_time(line),
        task=_text(line, "task"),
        attempt=_whole(line, "attempt"),
        data=data,
    )


def _call(line: Json) -> RecordedCall:
    usage = None
    if line["usage"] is not None:
        given = codec.decode(tuple[int, int], line["usage"])
        if not all(0 <= tokens < MOST for tokens in given):
            raise ValueError("usage: not two counts of tokens")
        usage = TokenUsage(input_tokens=given[0], output_tokens=given[1])
    request, answer = _mapping(line["request"]), _mapping(line["answer"])
    match line["call"]:
        case "model":
            for row in codec.decode(tuple[object, ...], request.get("messages") or []):
                words.read_message(row)
            words.read_answer(answer)
        case "tool":
            read_result(answer)
        case other:
            raise ValueError(f"there is no call of the kind {other!r}")
    return RecordedCall(
        lane=_text(line, "lane"),
        seq=_whole(line, "seq"),
        kind=_text(line, "call"),
        tool=_text(line, "tool"),
        title=_text(line, "title"),
        request=request,
        request_hash=_text(line, "request_hash"),
        outcome=CallOutcome(value=answer, tree=_text(line, "tree"), usage=usage),
        lane_hash=_text(line, "lane_hash"),
    )


def _add_check(run: RecordedRun, line: Json) -> None:
    one = RecordedCheckRun(
        by=_text(line, "by"),
        owner=_text(line, "owner"),
        at=_time(line),
        timeout_seconds=float(codec.decode(float, line["timeout"])),
        ran=codec.decode(CheckRun, line["ran"]),
    )
    if one not in run.checks:
        run.checks.append(one)


def _facts(line: Json) -> RecordedAttempt:
    seconds = line["seconds"]
    return RecordedAttempt(
        base=_text(line, "base"),
        seconds=None if seconds is None else float(codec.decode(float, seconds)),
    )


def _end(line: Json) -> RecordedOutcome:
    return RecordedOutcome(
        status=_text(line, "status"),
        seal=_text(line, "seal"),
        report=_text(line, "report"),
        plan=_text(line, "plan"),
        evidence=codec.decode(tuple[Mapping[str, object], ...], line["evidence"]),
        verdicts=codec.decode(tuple[Mapping[str, object], ...], line["verdicts"]),
        measured=codec.decode(tuple[tuple[str, Mapping[str, object]], ...], line["measured"]),
    )


def _text(line: Json, name: str) -> str:
    value = line[name]
    if not isinstance(value, str):
        raise TypeError(f"{name}: not a text")
    return value


def _time(line: Json) -> str:
    value = _text(line, "at")
    moment(value)
    return value


def _mapping(value: object) -> Json:
    if not isinstance(value, Mapping):
        raise TypeError("not an object")
    return cast("Json", value)


def _whole(line: Json, name: str) -> int:
    value = line[name]
    if isinstance(value, bool) or not isinstance(value, int) or abs(value) > _LARGEST:
        raise TypeError(f"{name}: not a whole number, or too large a one")
    return value
