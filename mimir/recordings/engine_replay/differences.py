"""What a replay came to, and where it was not as recorded. Pure."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import cast

from mimir.domain.event import Event
from mimir.recordings.format.recording import RecordedOutcome, RecordedRun
from mimir.recordings.format.recording_file import BrokenLine
from mimir.recordings.format.request_match import SHOWN, differing_characters
from mimir.store.schema import pack

IGNORED: Mapping[str, tuple[str, ...]] = {
    "ModelCalled": ("calls",),
}
"""Data of events that say what was under way at the same time: a replay does one thing after another."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ReplayDifference:
    """One place where a replay is not as recorded."""

    where: str
    """`lane task-1/1/worker, call 3`, `event 57 (VerdictGiven of task-1)`, `report, line 12`."""
    what: str


@dataclass(frozen=True, slots=True, kw_only=True)
class ReplayResult:
    """One run that was replayed."""

    run: str
    events: int
    calls: int
    """Outcomes of models and tools that were served."""
    checks: int
    report: str
    plan: str
    seal: str
    status: str
    verdicts: int
    evidence: int
    verdict_rows: str
    """All of them, as JSON text."""
    evidence_rows: str
    differences: tuple[ReplayDifference, ...]
    """In the order in which they came up; empty: the same bytes."""


def of_events(recorded: Event, now: Event) -> str:
    """Say how an event is not the recorded one; empty: it is."""
    if _key(recorded) != _key(now):
        return f"recorded {event_label(recorded)}, replayed {event_label(now)}"
    left_out = IGNORED.get(recorded.kind.value, ())
    for name in sorted(recorded.data.keys() | now.data.keys()):
        one, other = recorded.data.get(name), now.data.get(name)
        if name not in left_out and pack(one) != pack(other):
            return f"{name}: {_sides(pack(one), pack(other), as_it_is=True)}"
    return ""


def is_same_step(recorded: Event, now: Event) -> bool:
    """Tell whether the engine took the recorded step, whatever came of it."""
    return _key(recorded) == _key(now)


def of_ends(recorded: RecordedOutcome, now: RecordedOutcome) -> list[ReplayDifference]:
    """Compare what two runs came to, byte by byte."""
    found = [
        *_of_texts("plan", recorded.plan, now.plan),
        *_of_rows("verdict", recorded.verdicts, now.verdicts),
        *_of_rows("evidence", recorded.evidence, now.evidence),
        *_of_texts("report", recorded.report, now.report),
    ]
    if recorded.seal != now.seal:
        what = f"recorded {recorded.seal or 'none'}, replayed {now.seal or 'none'}"
        found.append(ReplayDifference(where="seal", what=what))
    if recorded.status != now.status:
        what = f"recorded {recorded.status}, replayed {now.status}"
        found.append(ReplayDifference(where="status", what=what))
    return found


def with_broken(replayed: ReplayResult, broken: Sequence[BrokenLine]) -> ReplayResult:
    """Put the lines that were changed in a recording before what came of it."""
    found = [
        ReplayDifference(
            where=f"line {one.line} ({one.what})",
            what="it was changed: its hash is not that of its content",
        )
        for one in broken
        if one.content.get("run", replayed.run) == replayed.run
    ]
    return replace(replayed, differences=(*found, *replayed.differences))


def of_lanes(
    tape: RecordedRun, hashes: Mapping[tuple[str, int], tuple[str, str]]
) -> list[ReplayDifference]:
    """Find the calls whose recorded outcome was changed: what was asked is the same, the lane's hash is not.

    Args:
        tape: What was recorded.
        hashes: (lane, number) → hash of the question, hash of the lane with this call at its end; as replayed.
    """
    found: list[ReplayDifference] = []
    for lane, calls in sorted(tape.lanes.items()):
        for seq in sorted(calls):
            asked, now = hashes.get((lane, seq), ("", ""))
            if not now or now == calls[seq].lane_hash:
                continue
            if asked == calls[seq].request_hash:
                where = f"lane {tape.own(lane)}, call {seq}"
                what = "its recorded outcome was changed: the lane's hash differs from here on"
                found.append(ReplayDifference(where=where, what=what))
            break
    return found


def event_label(event: Event) -> str:
    """Name an event for a person."""
    lane = f", {event.data['role']} call {event.data.get('seq')}" if "role" in event.data else ""
    task = f" of {event.task}, attempt {event.attempt}" if event.task else ""
    return f"{event.kind.value}{task}{lane}"


def _key(event: Event) -> tuple[object, ...]:
    data = event.data
    return event.kind, event.task, event.attempt, data.get("role"), data.get("seq")


def _of_texts(name: str, one: str, other: str) -> list[ReplayDifference]:
    if one == other:
        return []
    old, new = one.splitlines(), other.splitlines()
    at = next((n for n, (a, b) in enumerate(zip(old, new, strict=False)) if a != b), None)
    if at is None:
        at = min(len(old), len(new))
    before = old[at] if at < len(old) else ""
    now = new[at] if at < len(new) else ""
    return [ReplayDifference(where=f"{name}, line {at + 1}", what=_sides(before, now))]


def _of_rows(
    name: str, one: Sequence[Mapping[str, object]], other: Sequence[Mapping[str, object]]
) -> list[ReplayDifference]:
    known = {str(row["id"]): row for row in other}
    for row in one:
        id = str(row["id"])
        now = known.pop(id, None)
        if now is None:
            return [ReplayDifference(where=f"{name} {id}", what="recorded, not replayed")]
        for key in sorted(row.keys() | now.keys()):
            if pack(row.get(key)) != pack(now.get(key)):
                what = f"{key}: {_sides(str(row.get(key)), str(now.get(key)))}"
                return [ReplayDifference(where=f"{name} {id}", what=what)]
    for id in cast("dict[str, object]", known):
        return [ReplayDifference(where=f"{name} {id}", what="replayed, not recorded")]
    return []


def _sides(one: str, other: str, *, as_it_is: bool = False) -> str:
    """Say how two texts differ: whole, or of longer ones which characters; `as_it_is`: they are JSON, which has its own quotes."""
    shown = str if as_it_is else repr
    if max(len(one), len(other)) <= SHOWN:
        return f"recorded {shown(one)}, replayed {shown(other)}"
    found = differing_characters("", one, other)
    where = f"characters {found.first}–{found.last}"
    return f"{where}: recorded {shown(found.recorded)}, replayed {shown(found.asked)}"
