"""The thirteen invariants of a finished run, looked for in its store and its git history alone.

`broken` names what does not hold, each with the number of its invariant. It trusts nothing that the engine computed where it can look
itself: events are folded here, limits are counted from the recorded calls, trees are read from git.
"""

import hashlib
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from mimir.domain.attempt import MOVES, RUN_ENDED, TERMINAL, RunStatus, Status
from mimir.domain.event import Event, EventKind
from mimir.domain.ids import lane_id
from mimir.domain.plan import Task
from mimir.qc import seal
from mimir.store import calls, proof
from mimir.store.schema import unpack
from tests.support.facts import Facts

WRITTEN_BESIDE = (".mimir/", "chains/", "generated-agents/", ".git/")
"""Where mimir writes in a project besides what it applies."""
MOST_INTEGRATION_RETRIES = 2
LARGEST_SEARCHED = 50_000_000


@dataclass(frozen=True, kw_only=True)
class Outside:
    """What only someone outside the engine knows; each part may be left out."""

    secrets: Sequence[str] = ()
    """Texts that may stand nowhere."""
    output: Sequence[str] = ()
    """What was printed."""
    before: Mapping[str, str] | None = None
    """The project's files before the run, as `listing` gives them."""
    requests: Sequence[str] = ()
    """The lane of each model call that arrived, without the run's id: `task/attempt/role`."""
    in_flight: Sequence[int] = ()
    """How many tasks were in flight at each crash."""


NOTHING = Outside()


def broken(facts: Facts, outside: Outside = NOTHING) -> list[str]:
    """Name every invariant that does not hold, with what breaks it; empty: all hold."""
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


def _i2(facts: Facts, _: Outside) -> Iterator[str]:
    """Each deliverable enters the line once, as its attempt made it, or as a merge that was proved."""
    git, head = facts.git, str(facts.row["head"])
    if git.tree(head) != facts.row["headTree"]:
        yield "the head's tree is not the one that is written beside it"
    line = git.line(head, str(facts.row["baseCommit"]))
    entered = {
        str(row["integratedCommit"]): task
        for task, row in facts.tasks.items()
        if row.get("integratedCommit")
    }
    if sorted(line) != sorted(entered):
        yield f"the line holds {len(line)} commits, {len(entered)} tasks entered it"
    onto = str(facts.row["baseCommit"])
    for commit in line:
        if task := entered.get(commit):
            yield from _entered(facts, task, commit, onto)
        onto = commit
    for task, row in facts.tasks.items():
        if row["status"] == Status.COMPLETED and _accepted(facts, task):
            work = facts.work(task, _accepted(facts, task))
            if bool(work.commit) != bool(row.get("integratedCommit")):
                yield f"task {task} is completed, and its deliverable is not on the line"


def _accepted(facts: Facts, task: str) -> int:
    """Return the number of a task's accepted attempt, if it has one that delivered something; else 0."""
    number = facts.tasks[task].get("acceptedAttempt")
    known = [row["attemptNumber"] for row in facts.attempts(task) if row.get("workJson")]
    return int(str(number)) if number in known else 0


def _entered(facts: Facts, task: str, commit: str, onto: str) -> Iterator[str]:
    """Compare one commit of the line with the attempt that it holds."""
    git, row = facts.git, facts.tasks[task]
    if row.get("takenFrom"):
        return
    work = facts.work(task, _accepted(facts, task))
    if commit == work.commit:
        if git.tree(commit) != work.tree or git.parents(commit) != [onto]:
            yield f"the commit of {task} is not what its attempt made"
        return
    if git.parents(commit) != [onto, work.commit]:
        yield f"the merge of {task} does not join the line with its attempt"
        return
    mine = git.changed(work.base_tree, work.tree)
    theirs = git.changed(work.base_tree, git.tree(onto))
    merged, ours, attempt = git.files(commit), git.files(onto), git.files(work.tree)
    for path in merged.keys() | ours.keys() | attempt.keys():
        if path in mine and path in theirs:
            continue
        source = attempt if path in mine else ours
        if merged.get(path) != source.get(path):
            yield f"the merge of {task} holds another {path} than both sides made"
    yield from _merge_proved(facts, task, git.tree(commit), doubly=bool(mine & theirs))


def _merge_proved(facts: Facts, task: str, tree: str, *, doubly: bool) -> Iterator[str]:
    records = facts.records(facts.chain(task, _accepted(facts, task)))
    ran = {
        r["check"]
        for r in records
        if r.get("phase") == "merged" and r["tree"] == tree and r["task"] == task
    }
    if missing := {c.id for c in facts.plan.task(task).checks} - ran:
        yield f"checks {sorted(missing)} of {task} were not run on the merged tree"
    judged = any(r["record"] == "verdict" and r["tree"] == tree and r["passed"] for r in records)
    if doubly and not judged:
        yield f"{task} and others changed the same files, and nobody judged the merge"


def _i3(facts: Facts, _: Outside) -> Iterator[str]:
    """Nothing starts before its dependencies completed."""
    done: set[str] = set()
    for event in facts.events:
        if event.kind is EventKind.ATTEMPT_STARTED:
            missing = set(facts.plan.task(event.task).dependencies) - done
            if missing:
                yield f"task {event.task} started before {sorted(missing)} completed"
        if event.data.get("to") == Status.COMPLETED:
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
        if attempts > task.max_retries + 1 + min(merges, MOST_INTEGRATION_RETRIES):
            yield f"task {task.id} had {attempts} attempts with {task.max_retries} retries"
        numbers = [row["attemptNumber"] for row in facts.attempts(task.id)]
        if numbers != list(range(1, attempts + 1)):
            yield f"the attempts of {task.id} are numbered {numbers}"


def _ended(facts: Facts, task: str) -> list[Event]:
    return facts.told(EventKind.TASK_RETRIED, EventKind.TASK_FAILED, task=task)


def _i5(facts: Facts, _: Outside) -> Iterator[str]:
    """Tool calls and messages of each worker keep within their limits."""
    for task in facts.plan.tasks:
        limit = _limit(task)
        for row in facts.attempts(task.id):
            number = int(str(row["attemptNumber"]))
            tools = facts.tool_calls(task.id, number)
            if len(tools) > limit:
                yield f"attempt {number} of {task.id} made {len(tools)} tool calls, {limit} are allowed"
            answers = [c for c in facts.calls(task.id, number) if c["kind"] == "model"]
            messages = len(tools) + sum(not _is_closing(facts, task.id, number, c) for c in answers)
            if messages > 3 * limit:
                yield f"attempt {number} of {task.id} has {messages} messages, {3 * limit} are allowed"


def _limit(task: Task) -> int:
    """Return the bound of §8, computed here."""
    if task.estimated_tool_calls is None:
        return 50
    return max(1, -(-task.estimated_tool_calls * 3 // 2))


def _is_closing(facts: Facts, task: str, number: int, call: Mapping[str, object]) -> bool:
    """True of an answer that came after a closing answer had been asked for."""
    for row in facts.calls(task, number):
        if row["kind"] == "model" and row["seq"] <= call["seq"]:
            delta = unpack(str(row["deltaJson"]))
            if any(m.get("closing") for m in delta["messages"]):
                return True
    return False


def _i6(facts: Facts, outside: Outside) -> Iterator[str]:
    """Model calls repeated after crashes: at most one a task in flight."""
    recorded = Counter(_lane(facts, row) for row in facts.nodes["Call"] if row["kind"] == "model")
    told = Counter(
        (e.task, e.attempt, e.data["role"], e.data["seq"])
        for e in facts.told(EventKind.MODEL_CALLED)
    )
    cut = facts.told(EventKind.LANE_CUT)
    if not cut and (twice := [key for key, times in told.items() if times > 1]):
        yield f"model calls were made twice: {twice}"
    if outside.requests:
        arrived = Counter(outside.requests)
        repeated = sum((arrived - recorded).values())
        allowed = sum(outside.in_flight)
        if repeated > allowed:
            yield f"{repeated} model calls were repeated, {allowed} may be"
        if lost := recorded - arrived:
            yield f"calls are recorded that never arrived: {dict(lost)}"


def _lane(facts: Facts, row: Mapping[str, object]) -> str:
    return str(row["lane"]).removeprefix(f"{facts.run}/")


def _i7(facts: Facts, _: Outside) -> Iterator[str]:
    """Each call has its intent before, and its outcome after, in a lane without gaps."""
    lanes: dict[str, list[Mapping[str, object]]] = {}
    for row in facts.nodes["Call"]:
        lanes.setdefault(str(row["lane"]), []).append(row)
    for lane, rows in lanes.items():
        rows.sort(key=lambda row: row["seq"])
        ended = facts.statuses.get(str(rows[0]["task"])) != Status.CANCELLED
        open_ones = [row["seq"] for row in rows if not row.get("done")]
        if open_ones and ended:
            yield f"calls {open_ones} of {lane} have no outcome"
        if [row["seq"] for row in rows] != list(range(len(rows))):
            yield f"the calls of {lane} are not numbered one by one"
        if any(row["kind"] == "model" and not row.get("startedAt") for row in rows):
            yield f"a model call of {lane} had no intent"
        yield from _effects(lane, rows)
        before = calls.hash_before(lane, {}, 0)
        for row in rows:
            if not _follows(row, before):
                yield f"call {row['seq']} of {lane} is not what was recorded"
            before = str(row.get("hash"))


def _effects(lane: str, rows: Sequence[Mapping[str, object]]) -> Iterator[str]:
    tree = ""
    for row in rows:
        now = str(row.get("tree") or tree)
        if row["kind"] == "tool" and tree and now != tree and not row.get("startedAt"):
            yield f"call {row['seq']} of {lane} changed the workspace without an intent"
        tree = now


def _follows(row: Mapping[str, object], before: str) -> bool:
    """Compute a call's hash over what is recorded of it and the call before."""
    if not row.get("done"):
        return True
    usage = "" if row.get("inputTokens") is None else f"{row['inputTokens']} {row['outputTokens']}"
    parts = [
        before,
        *(str(row.get(n) or "") for n in ("kind", "requestHash", "deltaJson", "valueJson", "tree")),
        usage,
    ]
    digest = hashlib.sha256()
    for part in parts:
        raw = part.encode("utf-8", "surrogatepass")
        digest.update(len(raw).to_bytes(8, "big"))
        digest.update(raw)
    return digest.hexdigest() == row.get("hash")


def _i8(facts: Facts, _: Outside) -> Iterator[str]:
    """Statuses move only along the table, and the events fold to the state."""
    at = dict.fromkeys((t.id for t in facts.plan.tasks), Status.PENDING)
    for event in facts.events:
        to = event.data.get("to")
        if not event.task or not isinstance(to, str):
            continue
        if event.data.get("from") != at[event.task] or Status(to) not in MOVES[at[event.task]]:
            died = to == Status.FAILED and event.data.get("cause") == "worker_died"
            if not died:
                yield f"{event.task} moved from {at[event.task].value} to {to} (event {event.seq})"
        at[event.task] = Status(to)
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
        for e in facts.told(EventKind.LANE_CUT, task=event.task)
    )


def _i10(facts: Facts, _: Outside) -> Iterator[str]:
    """Nothing is completed without a stored passing verdict that is bound to what was delivered."""
    for task, row in facts.tasks.items():
        if row["status"] != Status.COMPLETED:
            continue
        number = _accepted(facts, task)
        if not number:
            yield f"{task} is completed without an accepted attempt"
            continue
        chain = facts.chain(task, number)
        records = facts.records(chain)
        yield from _passing(facts, task, number, records)
        yield from _unbroken(facts, chain)
        if tree := row.get("integratedTree"):
            counted = set(row.get("passedChecks") or ())
            yield from (
                f"{task} was merged although check {r['check']} of {r['task']} was red"
                for r in records
                if r.get("phase") == "merged"
                and r["tree"] == tree
                and _is_red(facts, r, records, counted)
            )


def _passing(
    facts: Facts, task: str, number: int, records: Sequence[Mapping[str, object]]
) -> Iterator[str]:
    work = facts.work(task, number)
    verdicts = [r for r in records if r["record"] == "verdict" and r["passed"]]
    bound = [
        r
        for r in verdicts
        if r["tree"] == work.tree and r["answerHash"] == seal.fingerprint(work.answer)
    ]
    if not bound:
        yield f"{task} is completed without a sealed verdict on its deliverable"
    delivered = [r for r in records if r["record"] == "deliverable"]
    if [r["tree"] for r in delivered] != [work.tree]:
        yield f"the sealed deliverable of {task} is not the one that was judged"
    if work.commit and facts.git.tree(work.commit) != work.tree:
        yield f"the commit of {task} does not hold the tree that was judged"
    stored = [
        v for v in facts.nodes["Verdict"] if v["taskId"] == task and v["attemptNumber"] == number
    ]
    if not stored or not stored[-1]["passed"]:
        yield f"{task} is completed without a stored passing verdict"


def _unbroken(facts: Facts, chain: str) -> Iterator[str]:
    rows = sorted(
        (r for r in facts.nodes["Evidence"] if r["chain"] == chain), key=lambda r: r["seq"]
    )
    records = [proof._record(row) for row in rows]
    yield from (f"{chain}: {problem.what}" for problem in seal.verify(chain, records))


def _is_red(
    facts: Facts,
    record: Mapping[str, object],
    records: Sequence[Mapping[str, object]],
    counted: set[str],
) -> bool:
    """True if the last run of a check that counts failed on this tree."""
    owner = str(record["task"])
    check = next(c for c in facts.plan.task(owner).checks if c.id == record["check"])
    counts = check.id in set(facts.tasks[owner].get("passedChecks") or ()) | counted
    same = [
        r
        for r in records
        if r.get("phase") == record["phase"]
        and (r.get("task"), r.get("check"), r.get("tree")) == (owner, check.id, record["tree"])
    ]
    return check.required and counts and same[-1]["exitCode"] != 0


def _i11(facts: Facts, outside: Outside) -> Iterator[str]:
    """No secret stands in store, reports, recordings or output."""
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
    """Nothing of the project changed but what the run applied, and mimir's own folders."""
    if outside.before is None:
        return
    now = listing(facts.project)
    applied = {p for e in facts.told(EventKind.APPLIED) for p in e.data.get("paths", ())}
    for path in sorted(now.keys() | outside.before.keys()):
        ours = path in applied or path.startswith(WRITTEN_BESIDE)
        if not ours and now.get(path) != outside.before.get(path):
            yield f"{path} was changed"


def _i13(facts: Facts, _: Outside) -> Iterator[str]:
    """No run is completed while a check of a completed task is red on the final tree."""
    chain = f"{facts.run}/gate"
    records = facts.records(chain)
    ended_well = (RunStatus.COMPLETED, RunStatus.COMPLETED_WITH_GAPS)
    yield from _unbroken(facts, chain)
    if not records or records[-1]["record"] != "gate":
        if facts.row["status"] != RunStatus.CANCELLED:
            yield "the final gate was not passed"
        return
    gate, tree = records[-1], facts.row["headTree"]
    if gate["tree"] != tree:
        yield "the final gate looked at another tree"
    runs = [r for r in records if r["record"] == "check" and r["tree"] == tree]
    for task, row in facts.tasks.items():
        if row["status"] != Status.COMPLETED:
            continue
        ran = {r["check"] for r in runs if r["task"] == task}
        if missing := {c.id for c in facts.plan.task(task).checks} - ran:
            yield f"checks {sorted(missing)} of {task} were not run on the final tree"
    red = [r for r in runs if _is_red(facts, r, runs, set())]
    if (red or gate["red"]) and facts.row["status"] in ended_well:
        yield f"the run is {facts.row['status']} although a check is red on the final tree"
    if bool(red) != bool(gate["red"]):
        yield "what the gate says is not what its runs say"


Rule = Callable[[Facts, Outside], Iterator[str]]
RULES: Mapping[str, Rule] = {
    "I1": _i1,
    "I2": _i2,
    "I3": _i3,
    "I4": _i4,
    "I5": _i5,
    "I6": _i6,
    "I7": _i7,
    "I8": _i8,
    "I9": _i9,
    "I10": _i10,
    "I11": _i11,
    "I12": _i12,
    "I13": _i13,
}
