"""Result of a replay, and its differences from the recording."""

from collections.abc import Mapping, Sequence, Set
from dataclasses import replace

from mimir.domain.event import Event
from mimir.domain.value_class import value_class
from mimir.recordings.format.recording import RecordedOutcome, RecordedRun
from mimir.recordings.format.recording_file import BrokenLine
from mimir.recordings.format.request_match import SHOWN, differing_characters
from mimir.store.schema import pack

IGNORED: Mapping[str, tuple[str, ...]] = {
    "ModelCalled": ("calls",),
}
"""Members of event data that depend on concurrency: a replay has none."""


@value_class
class ReplayDifference:
    """One difference between a replay and its recording."""

    where: str
    """`lane task-1/1/worker, call 3`, `event 57 (VerdictGiven of task-1)`, `report, line 12`."""
    detail: str


@value_class
class ReplayResult:
    """Result of one replayed run."""

    run: str
    events: int
    calls: int
    """Recorded outcomes of models and tools that were used."""
    checks: int
    report: str
    plan: str
    seal: str
    status: str
    verdicts: int
    evidence: int
    verdict_rows: str
    """JSON text of all verdict nodes."""
    evidence_rows: str
    """JSON text of all evidence nodes."""
    older_engine: str = ""
    """Version of mimir whose texts were not compared. Empty: all is compared."""
    differences: tuple[ReplayDifference, ...]
    """In the order in which they were found. Empty: the same bytes."""


def describe_event_difference(recorded: Event, now: Event, *, is_older: bool = False) -> str:
    """Describe how an event differs from the recorded one; empty: it does not.

    `is_older`: another version recorded it, so members that it does not have are not compared.
    """
    if _key(recorded) != _key(now):
        return f"recorded {event_label(recorded)}, replayed {event_label(now)}"
    left_out = IGNORED.get(recorded.kind.value, ())
    for name in sorted(_members(recorded.data, now.data, is_older=is_older)):
        one, other = recorded.data.get(name), now.data.get(name)
        # As JSON: to Python, True equals 1.
        if name not in left_out and pack(one) != pack(other):
            return f"{name}: {_sides(pack(one), pack(other), as_it_is=True)}"
    return ""


def is_same_step(recorded: Event, now: Event) -> bool:
    """Return whether the engine took the recorded step, with any result."""
    return _key(recorded) == _key(now)


def diff_outcomes(
    recorded: RecordedOutcome, now: RecordedOutcome, *, is_older: bool
) -> list[ReplayDifference]:
    """Compare two outcomes byte by byte.

    `is_older`: another version recorded them. Then the text of the report, and members, nodes and lines of the plan that the
    recording does not have, are not compared.
    """
    found = [
        *_diff_texts("plan", recorded.plan, now.plan, is_older=is_older),
        *_diff_nodes("verdict", recorded.verdicts, now.verdicts, is_older=is_older),
        *_diff_nodes("evidence", recorded.evidence, now.evidence, is_older=is_older),
    ]
    # The wording of a report may change with the version; the facts are compared in every case.
    if not is_older:
        found += _diff_texts("report", recorded.report, now.report)
    # A further evidence record changes the seal, so it is compared with equal records only.
    is_extended = is_older and len(now.evidence) > len(recorded.evidence)
    for where, one, other in (
        ("seal", recorded.seal, recorded.seal if is_extended else now.seal),
        ("status", recorded.status, now.status),
    ):
        if one != other:
            detail = f"recorded {one or 'none'}, replayed {other or 'none'}"
            found.append(ReplayDifference(where=where, detail=detail))
    return found


def with_broken(replayed: ReplayResult, broken: Sequence[BrokenLine]) -> ReplayResult:
    """Add the changed lines of a recording before the other differences."""
    found = [
        ReplayDifference(
            where=f"line {one.line} ({one.label})",
            detail="it was changed: its hash is not that of its content",
        )
        for one in broken
        # Lines without a run, such as answers of git, belong to every run.
        if one.content.get("run", replayed.run) == replayed.run
    ]
    return replace(replayed, differences=(*found, *replayed.differences))


def diff_transcripts(
    recorded: RecordedRun, hashes: Mapping[tuple[str, int], tuple[str, str]]
) -> list[ReplayDifference]:
    """Find calls with a changed outcome: the same request, another transcript hash.

    `hashes`: (transcript, number) → replayed hashes of the request and of the transcript.
    """
    found: list[ReplayDifference] = []
    for lane, calls in sorted(recorded.lanes.items()):
        for seq in sorted(calls):
            asked, now = hashes.get((lane, seq), ("", ""))
            if not now or now == calls[seq].lane_hash:
                continue
            # Another request explains another hash; it is reported where it was made.
            if asked == calls[seq].request_hash:
                where = f"lane {recorded.own(lane)}, call {seq}"
                detail = "its recorded outcome was changed: the lane's hash differs from here on"
                found.append(ReplayDifference(where=where, detail=detail))
            break
    return found


def event_label(event: Event) -> str:
    """Name an event for the user."""
    lane = f", {event.data['role']} call {event.data.get('seq')}" if "role" in event.data else ""
    task = f" of {event.task}, attempt {event.attempt}" if event.task else ""
    return f"{event.kind.value}{task}{lane}"


def _key(event: Event) -> tuple[object, ...]:
    data = event.data
    return event.kind, event.task, event.attempt, data.get("role"), data.get("seq")


def _diff_texts(
    name: str, one: str, other: str, *, is_older: bool = False
) -> list[ReplayDifference]:
    if one == other:
        return []
    old, new = one.splitlines(), other.splitlines()
    if is_older and _is_subsequence(old, new):
        return []
    at = next((n for n, (a, b) in enumerate(zip(old, new, strict=False)) if a != b), None)
    # One text is the beginning of the other: its first extra line differs.
    if at is None:
        at = min(len(old), len(new))
    before = old[at] if at < len(old) else ""
    now = new[at] if at < len(new) else ""
    return [ReplayDifference(where=f"{name}, line {at + 1}", detail=_sides(before, now))]


def _is_subsequence(lines: Sequence[str], of: Sequence[str]) -> bool:
    rest = iter(of)
    return all(line in rest for line in lines)


def _members(
    recorded: Mapping[str, object], now: Mapping[str, object], *, is_older: bool
) -> Set[str]:
    return recorded.keys() if is_older else recorded.keys() | now.keys()


def _diff_nodes(
    name: str,
    one: Sequence[Mapping[str, object]],
    other: Sequence[Mapping[str, object]],
    *,
    is_older: bool,
) -> list[ReplayDifference]:
    known = {str(row["id"]): row for row in other}
    for row in one:
        id = str(row["id"])
        now = known.pop(id, None)
        if now is None:
            return [ReplayDifference(where=f"{name} {id}", detail="recorded, not replayed")]
        for key in sorted(_members(row, now, is_older=is_older)):
            if pack(row.get(key)) != pack(now.get(key)):
                detail = f"{key}: {_sides(str(row.get(key)), str(now.get(key)))}"
                return [ReplayDifference(where=f"{name} {id}", detail=detail)]
    left = None if is_older else next(iter(known), None)
    return (
        []
        if left is None
        else [ReplayDifference(where=f"{name} {left}", detail="replayed, not recorded")]
    )


def _sides(one: str, other: str, *, as_it_is: bool = False) -> str:
    """Describe how two texts differ; `as_it_is`: JSON, which has quotes of its own."""
    shown = str if as_it_is else repr
    if max(len(one), len(other)) <= SHOWN:
        return f"recorded {shown(one)}, replayed {shown(other)}"
    found = differing_characters("", one, other)
    where = f"characters {found.first}–{found.last}"
    return f"{where}: recorded {shown(found.recorded)}, replayed {shown(found.asked)}"
