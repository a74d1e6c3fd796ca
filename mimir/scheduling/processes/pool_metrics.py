"""How the processes of a run do, from the store alone: who is there, what each holds, and the figures of a pool. Pure but for the reads."""

from collections import defaultdict
from collections.abc import Collection, Mapping, Sequence

from mimir.domain.event import EventKind
from mimir.scheduling.lifecycle import COORDINATOR
from mimir.scheduling.task_queries import load_attempts
from mimir.store import row_fields
from mimir.store.operations import leases, runs, worker_processes
from mimir.store.protocol import ReadOps, Row
from mimir.store.schema import NodeLabel

Agents = Mapping[tuple[str, int], str]
"""(task, attempt) → the process that had it last."""


def shape(reads: ReadOps, run: str, dead: Collection[str]) -> dict[str, object]:
    """Return `workers`, `locks` and `metrics` of a run, as JSON values.

    Args:
        reads: One view of the store.
        run: Its id.
        dead: Processes that are known to be gone.
    """
    rows = worker_processes.present(reads, run)
    locks = worker_processes.locks(reads, run)
    row = reads.get(NodeLabel.RUN, run) or {}
    coordinator = leases.holder(reads, row, COORDINATOR, dead)
    held: dict[str, list[str]] = defaultdict(list)
    for lock in locks:
        held[lock.agent_id].append(lock.task_id)
    return {
        "workers": [
            {
                "agentId": row_fields.text_field(one, "owner"),
                "host": row_fields.text_field(one, "host"),
                "process": row_fields.int_field(one, "process"),
                "state": _state(one, reads.now(), dead),
                "coordinator": row_fields.text_field(one, "owner") == coordinator,
                "agents": row_fields.int_field(one, "agents"),
                "tasks": held[row_fields.text_field(one, "owner")],
                "since": row_fields.text_field(one, "since"),
                "seenAt": row_fields.text_field(one, "seenAt"),
            }
            for one in rows
        ],
        "locks": [lock.as_json() for lock in locks],
        "metrics": metrics(reads, run),
    }


def metrics(reads: ReadOps, run: str, agent: str = "") -> dict[str, object]:
    """Return the figures of a run's agents; of one process alone, if it is named.

    `contextSize` and `completionSeconds` (mean and largest) are by agent; `lockContention` is the share of claims that found others
    faster; `retryRate` the share of attempts that were not a task's first; `idleShare` the share of the agents' time without a task.
    """
    rows = [w for w in worker_processes.present(reads, run) if agent in ("", w.get("owner"))]
    by_agent: dict[str, list[Row]] = defaultdict(list)
    agents = _agents(reads, run)
    for attempt in load_attempts(reads, run):
        place = (
            row_fields.text_field(attempt, "taskId"),
            row_fields.int_field(attempt, "attemptNumber"),
        )
        if agent in ("", agents.get(place, "")):
            by_agent[agents.get(place, "")].append(attempt)
    attempts = [row for one in by_agent.values() for row in one]
    return {
        "contextSize": {a: _spread(v, "estimatedContextTokens") for a, v in by_agent.items()},
        "completionSeconds": {a: _spread(v, "workerDuration") for a, v in by_agent.items()},
        "lockContention": _share(_sum(rows, "empty"), _sum(rows, "tries")),
        "retryRate": _share(
            sum(row_fields.bool_field(r, "isRetry") for r in attempts), len(attempts)
        ),
        "idleShare": _share(
            _sum(rows, "servedSeconds") - _sum(rows, "busySeconds"), _sum(rows, "servedSeconds")
        ),
        "claims": {name: _sum(rows, name) for name in ("tries", "empty", "claimed", "lost")},
    }


def _state(row: Row, now: str, dead: Collection[str]) -> str:
    """Say how a process is: `left` in order, `dead` as its host knows, `late` if its heartbeat is overdue, or `live`."""
    if row.get("leftAt"):
        return "left"
    if row_fields.text_field(row, "owner") in dead:
        return "dead"
    return "live" if row_fields.text_field(row, "until") > now else "late"


def _agents(reads: ReadOps, run: str) -> Agents:
    kinds = (EventKind.ATTEMPT_STARTED, EventKind.LEASE_TAKEN)
    return {
        (event.task, event.attempt): str(event.data.get("owner", ""))
        for event in runs.events(reads, run, kinds=kinds)
    }


def _spread(rows: Sequence[Row], name: str) -> dict[str, float]:
    values = [row_fields.float_field(row, name) for row in rows if row.get(name) is not None]
    if not values:
        return {}
    return {"mean": round(sum(values) / len(values), 3), "largest": round(max(values), 3)}


def _sum(rows: Sequence[Row], name: str) -> float:
    return sum(row_fields.float_field(row, name) for row in rows)


def _share(part: float, whole: float) -> float | None:
    """Return a share; None: there is nothing to have a share of."""
    return round(part / whole, 4) if whole else None
