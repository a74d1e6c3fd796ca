"""The thirteen invariants of a finished run, looked for in its store and its git history alone.

`broken` names each violated invariant with its number. It trusts no computed value of the engine where it can look
itself: events are folded here, limits are counted from the recorded calls, trees are read from git.
"""

import hashlib
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping
from pathlib import Path
from typing import cast

from mimir.domain.event import Event, EventKind
from mimir.domain.ids import lane_id
from mimir.domain.task_states import MOVES, RUN_ENDED, TERMINAL, TaskStatus
from tests.support import invariants_calls, invariants_proof
from tests.support.run_facts import Facts, Outside

WRITTEN_BESIDE = (".mimir/", "chains/", "generated-agents/", ".git/")
"""Paths that mimir writes in a project apart from applied files."""
MOST_INTEGRATION_RETRIES = 2
LARGEST_SEARCHED = 50_000_000


NOTHING = Outside()


def broken(facts: Facts, outside: Outside = NOTHING) -> list[str]:
    """Name every violated invariant, with its cause; empty: all hold."""
    return [f"{name}: {what}" for name, rule in RULES.items() for what in rule(facts, outside)]


def listing(project: Path) -> dict[str, str]:
    """Return path → hash of a project's files, without git's own."""
    found: dict[str, str] = {}
    for path in sorted(project.rglob("*")):
        name = path.relative_to(project).as_posix()
        if path.is_file() and not name.startswith(".git/"):
            found[name] = hashlib.sha256(path.read_bytes()).hexdigest()
    return found


def _i1(facts: Facts, _: Outside) -> Iterator[str]:
    """Each task reaches one terminal state, once."""
    ends = Counter(e.task for e in facts.events if e.data.get("to") in TERMINAL)
    for task in facts.plan.tasks:
        status = facts.statuses.get(task.id)
        if status not in TERMINAL:
            yield f"task {task.id} stands at {status}"
        if ends[task.id] != 1:
            yield f"task {task.id} ended {ends[task.id]} times"
    if facts.row["status"] not in RUN_ENDED:
        yield f"the run stands at {facts.row['status']}"
    if held := [t for t, row in facts.tasks.items() if row.get("lockedBy")]:
        yield f"{held} are still held"


def _i3(facts: Facts, _: Outside) -> Iterator[str]:
    """Nothing starts before its dependencies completed."""
    done: set[str] = set()
    for event in facts.events:
        if event.kind is EventKind.ATTEMPT_STARTED:
            missing = set(facts.plan.task(event.task).dependencies) - done
            if missing:
                yield f"task {event.task} started before {sorted(missing)} completed"
        if event.data.get("to") == TaskStatus.COMPLETED:
            done.add(event.task)


def _i4(facts: Facts, _: Outside) -> Iterator[str]:
    """Judged failures and integration retries keep within their bounds, over restarts."""
    for task in facts.plan.tasks:
        causes = [str(e.data.get("reason") or e.data.get("cause")) for e in _ended(facts, task.id)]
        attempts = len(facts.attempts(task.id))
        merges = sum(cause == "integration" for cause in causes)
        judged = sum(bool(row.get("judged")) for row in facts.attempts(task.id))
        if judged > task.max_retries + 1:
            yield f"task {task.id} failed {judged} times with {task.max_retries} retries"
        if merges > MOST_INTEGRATION_RETRIES + 1:
            yield f"task {task.id} was integrated {merges} times"
        # An answer of the user that corrects an assumption uses up no attempt.
        corrected = causes.count("rejected")
        if attempts > task.max_retries + 1 + min(merges, MOST_INTEGRATION_RETRIES) + corrected:
            yield f"task {task.id} had {attempts} attempts with {task.max_retries} retries"
        numbers = [row["attemptNumber"] for row in facts.attempts(task.id)]
        if numbers != list(range(1, attempts + 1)):
            yield f"the attempts of {task.id} are numbered {numbers}"


def _ended(facts: Facts, task: str) -> list[Event]:
    return facts.events_of_kind(EventKind.TASK_RETRIED, EventKind.TASK_FAILED, task=task)


def _i8(facts: Facts, _: Outside) -> Iterator[str]:
    """Statuses move only along the table, and the events fold to the state."""
    at = dict.fromkeys((t.id for t in facts.plan.tasks), TaskStatus.PENDING)
    for event in facts.events:
        to = event.data.get("to")
        if not event.task or not isinstance(to, str):
            continue
        if event.data.get("from") != at[event.task] or TaskStatus(to) not in MOVES[at[event.task]]:
            died = to == TaskStatus.FAILED and event.data.get("cause") == "worker_died"
            if not died:
                yield f"{event.task} moved from {at[event.task].value} to {to} (event {event.seq})"
        at[event.task] = TaskStatus(to)
    for task, status in at.items():
        if facts.statuses.get(task) != status:
            yield f"the events leave {task} at {status.value}, its row says {facts.statuses.get(task)}"
    numbers = [e.seq for e in facts.events]
    if numbers != list(range(1, len(numbers) + 1)):
        yield "the events are not numbered one by one"


def _i9(facts: Facts, _: Outside) -> Iterator[str]:
    """No write with an old fence."""
    fence: dict[str, int] = {}
    for event in facts.events:
        if event.kind in (EventKind.ATTEMPT_STARTED, EventKind.LEASE_TAKEN):
            granted = event.data["fence"]
            if not isinstance(granted, int) or granted <= fence.get(event.task, 0):
                yield f"the fence of {event.task} did not grow (event {event.seq})"
            fence[event.task] = int(str(granted))
        elif event.kind in (EventKind.MODEL_CALLED, EventKind.TOOL_CALLED, EventKind.TOOL_DENIED):
            row, newest = _call_of(facts, event), fence.get(event.task)
            old = row is not None and event.task and row["fence"] != newest
            if row and old and not _made_again(facts, event):
                yield f"call {row['id']} was written with fence {row['fence']}, not {newest}"
    for task, newest in fence.items():
        if int(str(facts.tasks[task]["fence"])) < newest:
            yield f"the row of {task} holds an old fence"


def _call_of(facts: Facts, event: Event) -> Mapping[str, object] | None:
    lane = lane_id(facts.run, event.task, event.attempt, str(event.data["role"]))
    wanted = f"{lane}#{int(str(event.data['seq'])):05d}"
    return next((row for row in facts.nodes["Call"] if row["id"] == wanted), None)


def _made_again(facts: Facts, event: Event) -> bool:
    """True of a call that was cut away and made anew later: its row is the later one's."""
    return any(
        e.seq > event.seq and e.data.get("role") == event.data["role"]
        for e in facts.events_of_kind(EventKind.LANE_CUT, task=event.task)
    )


def _i11(facts: Facts, outside: Outside) -> Iterator[str]:
    """No secret is in store, reports, recordings or output."""
    places = [
        path
        for name in (".mimir", "chains", "generated-agents")
        for path in (facts.project / name).rglob("*")
        if path.is_file() and path.stat().st_size < LARGEST_SEARCHED
    ]
    for secret in outside.secrets:
        raw = secret.encode()
        yield from (f"a secret stands in {p.name}" for p in places if raw in p.read_bytes())
        if any(secret in text for text in outside.output):
            yield "a secret was printed"
        if any(secret in str(row.values()) for rows in facts.nodes.values() for row in rows):
            yield "a secret stands in the store"


def _i12(facts: Facts, outside: Outside) -> Iterator[str]:
    """Nothing of the project changed but the applied files, and mimir's own folders."""
    if outside.before is None:
        return
    now = listing(facts.project)
    applied = {
        p
        for e in facts.events_of_kind(EventKind.APPLIED)
        for p in cast("Iterable[str]", e.data.get("paths", ()))
    }
    for path in sorted(now.keys() | outside.before.keys()):
        ours = path in applied or path.startswith(WRITTEN_BESIDE)
        if not ours and now.get(path) != outside.before.get(path):
            yield f"{path} was changed"


Rule = Callable[[Facts, Outside], Iterator[str]]
RULES: Mapping[str, Rule] = {
    "I1": _i1,
    "I2": invariants_proof.i2,
    "I3": _i3,
    "I4": _i4,
    "I5": invariants_calls.i5,
    "I6": invariants_calls.i6,
    "I7": invariants_calls.i7,
    "I8": _i8,
    "I9": _i9,
    "I10": invariants_proof.i10,
    "I11": _i11,
    "I12": _i12,
    "I13": invariants_proof.i13,
}
