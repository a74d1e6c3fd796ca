"""Recording as values: runs with events, calls, check runs and outcomes, from lines."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from functools import cached_property

from mimir.agents.context.receipt import ContextReceipt
from mimir.domain.call_outcome import CallOutcome, read_result
from mimir.domain.clock import moment
from mimir.domain.event import Event
from mimir.domain.evidence import CheckRun
from mimir.domain.invocation import PlanAgent
from mimir.domain.json_value import JsonObject, as_object, as_text
from mimir.domain.plan import Plan
from mimir.domain.usage import MOST, TokenUsage
from mimir.domain.value_class import value_class
from mimir.llm import codec as words
from mimir.store import codec
from mimir.store.schema import pack

_NAMED = frozenset(("to", "commit", "onto", "role", "owner", "outcome", "lane"))
"""Members of event data that a replay looks up; each must be a text."""
_LARGEST = 2**53
"""Up to here, every reader of JSON can tell a number from the next one."""
_Preambles = tuple[tuple[str, str, str, str], ...]
"""(kind, role, text, hash)."""


@value_class
class RecordedCall:
    """One call of a transcript with its outcome."""

    lane: str
    seq: int
    kind: str
    """`model` or `tool`."""
    tool: str
    title: str
    request: JsonObject
    """Difference of the request from the calls before."""
    request_hash: str
    outcome: CallOutcome
    lane_hash: str


@value_class
class RecordedCheckRun:
    """One check run."""

    by: str
    """`task/attempt`. Empty: the final gate."""
    owner: str
    """Process that ran it; each process makes a run before the work once and reuses it."""
    at: str
    timeout_seconds: float
    ran: CheckRun


@dataclass(slots=True, kw_only=True)
class RecordedAttempt:
    """Base and time of an attempt."""

    base: str = ""
    """Head of the run branch at its start. Empty: it did not start."""
    seconds: float | None = None


@value_class
class RecordedOutcome:
    """Outcome of a run with everything that a replay compares."""

    status: str
    seal: str
    report: str
    plan: str
    evidence: tuple[JsonObject, ...]
    verdicts: tuple[JsonObject, ...]
    measured: tuple[tuple[str, JsonObject], ...] = ()
    """(label, properties) that clocks and processes decided."""


@dataclass(kw_only=True)
class RecordedRun:
    """One run; `add` fills it line by line."""

    id: str
    pinned: JsonObject = field(default_factory=dict[str, object])
    plan: Plan | None = None
    """None: it is a planning run."""
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
    engine: str = ""
    """Version of mimir that wrote the last lines. Empty: not recorded."""

    def is_older_than(self, engine: str) -> bool:
        """Return whether another version of mimir recorded the run; `engine`: the running one."""
        return self.engine not in ("", engine)

    def own(self, lane: str) -> str:
        """Return a transcript's name within its run: `task/attempt/role`."""
        return lane.removeprefix(f"{self.id}/")

    @property
    def settings(self) -> JsonObject:
        """Pinned settings; empty: none are recorded."""
        return as_object(self.pinned.get("settingsJson"))

    def model_calls(self, lane: str) -> list[RecordedCall]:
        """Return the model calls of a transcript, named within its run, in order."""
        known = self.lanes.get(f"{self.id}/{lane}", {})
        return [known[seq] for seq in sorted(known) if known[seq].kind == "model"]

    @cached_property
    def preambles(self) -> Mapping[tuple[str, str], tuple[str, str]]:
        """(kind, role) → (text, hash)."""
        rows = codec.decode(_Preambles, self.texts.get("preambles") or [])
        return {(kind, role): (text, hash) for kind, role, text, hash in rows}


@dataclass(kw_only=True)
class Recording:
    """Content of a recording."""

    runs: dict[str, RecordedRun] = field(default_factory=dict[str, RecordedRun])
    """By id, in the order of their first lines."""
    git: dict[str, object] = field(default_factory=dict[str, object])
    """Packed question to git → answer."""
    engine: str = ""
    """Version of mimir that wrote the lines read last. Empty: not recorded."""


def build(lines: Iterable[JsonObject]) -> Recording:
    """Build a recording; a repeated line counts once, so recordings can be concatenated.

    Raises:
        StoreError, ValueError, KeyError, TypeError: A line has another form.
    """
    recording = Recording()
    for line in lines:
        add(recording, line)
    return in_order(recording)


def in_order(recording: Recording) -> Recording:
    """Sort the events that were written twice, or by several processes."""
    for run in recording.runs.values():
        # By number: of two lines for one event, the last one counts.
        known = {event.seq: event for event in run.events}
        run.events = [known[seq] for seq in sorted(known)]
    return recording


def add(recording: Recording, line: JsonObject) -> None:
    """Add one line; everything that a replay reads later is checked here."""
    # Recordings can be concatenated: each outcome belongs to the version line before it.
    if "recording" in line:
        recording.engine = as_text(line.get("engine"))
    elif line["kind"] == "git":
        recording.git[pack(line["ask"])] = line["answer"]
    else:
        id = _decode_text(line, "run")
        # A recording may hold several runs, and one run in several parts.
        run = recording.runs.setdefault(id, RecordedRun(id=id))
        run.engine = recording.engine
        _add_to_run(run, line)


def _add_to_run(run: RecordedRun, line: JsonObject) -> None:
    match line["kind"]:
        case "run":
            run.pinned = _decode_mapping(line["pinned"])
            run.plan = codec.decode(Plan, line["plan"]) if line["plan"] else None
        case "text":
            run.texts[_decode_text(line, "name")] = _run_text(line)
        case "event":
            run.events.append(_event(line))
        case "call":
            call = _call(line)
            run.lanes.setdefault(call.lane, {})[call.seq] = call
        case "check":
            check = _check_run(line)
            # Check runs have no number: equal ones are one that was written twice.
            if check not in run.checks:
                run.checks.append(check)
        case "attempt":
            place = _decode_text(line, "task"), _decode_integer(line, "attempt")
            run.attempts[place] = codec.decode(RecordedAttempt, _pick(line, "base", "seconds"))
        case "end":
            names = ("status", "seal", "report", "plan", "evidence", "verdicts", "measured")
            run.end = codec.decode(RecordedOutcome, _pick(line, *names))
        case other:
            raise ValueError(f"there is no line of the kind {other!r}")


def _pick(line: JsonObject, *names: str, **renamed: str) -> dict[str, object]:
    """Return members of a line; `renamed`: name of a field → name of its member."""
    return {name: line[name] for name in names} | {n: line[m] for n, m in renamed.items()}


def _run_text(line: JsonObject) -> object:
    text = line["text"]
    match line["name"]:
        case "preambles":
            codec.decode(_Preambles, text)
        case "brief":
            for row in codec.decode(tuple[object, ...], text):
                words.read_message(row)
        case "agents":
            codec.decode(tuple[PlanAgent, ...], text)
        case "background":
            ContextReceipt.from_json(_decode_mapping(text))
        case _:
            pass  # written by a later mimir: this one does not use it
    return text


def _event(line: JsonObject) -> Event:
    members = _pick(line, "seq", "run", "at", "task", "attempt", "data", kind="event")
    event = codec.decode(Event, members)
    for name in _NAMED & event.data.keys():
        if event.data[name] is not None:
            _decode_text(event.data, name)
    models = _decode_mapping(event.data.get("models", {}))
    for role in models:
        _decode_text(models, role)
    moment(event.at)
    _decode_integer(line, "seq")
    _decode_integer(line, "attempt")
    return event


def _call(line: JsonObject) -> RecordedCall:
    usage = None if line["usage"] is None else codec.decode(tuple[int, int], line["usage"])
    # A recording may be edited: these counts go into sums that the store must hold.
    if usage and not all(0 <= tokens < MOST for tokens in usage):
        raise ValueError("usage: not two counts of tokens")
    request, answer = _decode_mapping(line["request"]), _decode_mapping(line["answer"])
    match line["call"]:
        case "model":
            for row in codec.decode(tuple[object, ...], request.get("messages") or []):
                words.read_message(row)
            words.read_answer(answer)
        case "tool":
            read_result(answer)
        case other:
            raise ValueError(f"there is no call of the kind {other!r}")
    tokens = TokenUsage(input_tokens=usage[0], output_tokens=usage[1]) if usage else None
    return RecordedCall(
        lane=_decode_text(line, "lane"),
        seq=_decode_integer(line, "seq"),
        kind=_decode_text(line, "call"),
        tool=_decode_text(line, "tool"),
        title=_decode_text(line, "title"),
        request=request,
        request_hash=_decode_text(line, "request_hash"),
        outcome=CallOutcome(value=answer, tree=_decode_text(line, "tree"), usage=tokens),
        lane_hash=_decode_text(line, "lane_hash"),
    )


def _check_run(line: JsonObject) -> RecordedCheckRun:
    members = _pick(line, "by", "owner", "at", "ran", timeout_seconds="timeout")
    check = codec.decode(RecordedCheckRun, members)
    moment(check.at)
    return check


def _decode_text(line: JsonObject, name: str) -> str:
    return codec.decode(str, line[name])


def _decode_mapping(value: object) -> JsonObject:
    return codec.decode(Mapping[str, object], value)


def _decode_integer(line: JsonObject, name: str) -> int:
    value = codec.decode(int, line[name])
    if abs(value) > _LARGEST:
        raise ValueError(f"{name}: too large a number")
    return value
