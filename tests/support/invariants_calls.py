"""Invariants of the calls of agents: limits, repetitions, intents and outcomes (I5, I6, I7)."""

import hashlib
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from mimir.domain.event import EventKind
from mimir.domain.ids import PLAN_TASK
from mimir.domain.plan import Task
from mimir.domain.task_states import TaskStatus
from mimir.store.schema import unpack
from mimir.store.transcripts import call_rows
from tests.support.run_facts import Facts, Outside


def i5(facts: Facts, _: Outside) -> Iterator[str]:
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


def _is_closing(facts: Facts, task: str, number: int, call: Mapping[str, Any]) -> bool:
    """True of an answer that came after a closing answer had been asked for."""
    for row in facts.calls(task, number):
        if row["kind"] == "model" and row["seq"] <= call["seq"]:
            delta: Any = unpack(str(row["deltaJson"]))
            if any(m.get("closing") for m in delta["messages"]):
                return True
    return False


def i6(facts: Facts, outside: Outside) -> Iterator[str]:
    """Model calls repeated after crashes: at most one a task in flight."""
    recorded = Counter(_lane(facts, row) for row in facts.nodes["Call"] if row["kind"] == "model")
    told = Counter(
        (e.task, e.attempt, e.data["role"], e.data["seq"])
        for e in facts.events_of_kind(EventKind.MODEL_CALLED)
    )
    cut = facts.events_of_kind(EventKind.LANE_CUT)
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


def _lane(facts: Facts, row: Mapping[str, Any]) -> str:
    return str(row["lane"]).removeprefix(f"{facts.run}/")


def i7(facts: Facts, _: Outside) -> Iterator[str]:
    """Each call has its intent before, and its outcome after, in a lane without gaps."""
    lanes: dict[str, list[Mapping[str, Any]]] = {}
    for row in facts.nodes["Call"]:
        lanes.setdefault(str(row["lane"]), []).append(row)
    for lane, rows in lanes.items():
        rows.sort(key=lambda row: row["seq"])
        open_ones = [row["seq"] for row in rows if not row.get("done")]
        if open_ones and not _may_stay_open(facts, rows[-1], open_ones):
            yield f"calls {open_ones} of {lane} have no outcome"
        if [row["seq"] for row in rows] != list(range(len(rows))):
            yield f"the calls of {lane} are not numbered one by one"
        if any(row["kind"] == "model" and not row.get("startedAt") for row in rows):
            yield f"a model call of {lane} had no intent"
        yield from _effects(lane, rows)
        before = call_rows.hash_before(lane, {}, 0)
        for row in rows:
            if not _follows(row, before):
                yield f"call {row['seq']} of {lane} is not what was recorded"
            before = str(row.get("hash"))


def _may_stay_open(facts: Facts, last: Mapping[str, Any], open_ones: Sequence[object]) -> bool:
    """True of the last call of a cancelled task, and of a model call that the provider refused for good: the lane ended with it."""
    task, number = str(last["task"]), last["attempt"]
    if facts.statuses.get(task) == TaskStatus.CANCELLED:
        return True
    causes = [a.get("endCause") for a in facts.attempts(task) if a["attemptNumber"] == number]
    refused = task == PLAN_TASK or causes == ["model_error"] or _judged_elsewhere(facts, last)
    return open_ones == [last["seq"]] and last["kind"] == "model" and refused


def _judged_elsewhere(facts: Facts, last: Mapping[str, Any]) -> bool:
    """True of a conversation of QC that was refused: there was a second one, or QC was not available."""
    lane, task = str(last["lane"]), str(last["task"])
    if not str(last["role"]).startswith("qc"):
        return False
    if not lane.endswith(".2"):
        return any(row["lane"] == f"{lane}.2" for row in facts.nodes["Call"])
    causes = [
        a.get("endCause") for a in facts.attempts(task) if a["attemptNumber"] == last["attempt"]
    ]
    return causes == ["qc_unavailable"]


def _effects(lane: str, rows: Sequence[Mapping[str, Any]]) -> Iterator[str]:
    tree = ""
    for row in rows:
        now = str(row.get("tree") or tree)
        if row["kind"] == "tool" and tree and now != tree and not row.get("startedAt"):
            yield f"call {row['seq']} of {lane} changed the workspace without an intent"
        tree = now


def _follows(row: Mapping[str, Any], before: str) -> bool:
    """Compute a call's hash over its record and the call before."""
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
