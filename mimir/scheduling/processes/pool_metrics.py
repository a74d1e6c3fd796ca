"""Metrics of the processes that serve a run, as JSON values."""

from collections import defaultdict
from collections.abc import Collection, Iterable

from mimir.domain.event import EventKind
from mimir.scheduling.lifecycle import COORDINATOR
from mimir.store.operations import record_loading, runs
from mimir.store.protocol import ReadOps
from mimir.store.records.artifact_records import ProcessRecord
from mimir.store.records.attempt_records import AttemptSummaryRecord


def shape(reads: ReadOps, run: str, dead: Collection[str]) -> dict[str, object]:
    """Return `workers`, `locks` and `metrics` of a run; `dead` names dead processes."""
    tasks = record_loading.find_held_tasks(reads, run)
    record, now = record_loading.find_run(reads, run), reads.now()
    coordinator = record_loading.lease_holder(record, COORDINATOR, now, dead) if record else ""
    held: dict[str, list[str]] = defaultdict(list)
    for task in tasks:
        held[task.locked_by].append(task.task_id)
    return {
        "workers": [
            {
                "agentId": process.owner,
                "host": process.host,
                "process": process.number,
                "state": _state(process, now, dead),
                "coordinator": process.owner == coordinator,
                "agents": process.agents,
                "tasks": held[process.owner],
                "since": process.since,
                "seenAt": process.seen_at,
            }
            for process in record_loading.load_processes(reads, run)
        ],
        "locks": [
            {
                "taskId": task.task_id,
                "agentId": task.locked_by,
                "version": task.version,
                "lockedAt": task.locked_at,
                "expiresAt": task.expires_at,
            }
            for task in tasks
        ],
        "metrics": measure_pool(reads, run),
    }


def measure_pool(reads: ReadOps, run: str, owner: str = "") -> dict[str, object]:
    """Return the metrics of a run's processes, or of one process.

    `contextSize` and `completionSeconds` (mean and largest) are by process. `lockContention` is the share of claims that found no
    free task, `retryRate` the share of attempts that are retries, `idleShare` the share of agent time without a task.
    """
    processes = [
        one for one in record_loading.load_processes(reads, run) if owner in ("", one.owner)
    ]
    owners = _load_owners(reads, run)
    by_owner: dict[str, list[AttemptSummaryRecord]] = defaultdict(list)
    for attempt in record_loading.load_run_attempts(reads, run, AttemptSummaryRecord):
        # An attempt with several holders counts for the last one.
        held_by = owners.get((attempt.task_id, attempt.number), "")
        if owner in ("", held_by):
            by_owner[held_by].append(attempt)
    attempts = [attempt for made in by_owner.values() for attempt in made]
    claims = {
        "tries": sum(one.tries for one in processes),
        "empty": sum(one.empty for one in processes),
        "claimed": sum(one.claimed for one in processes),
        "lost": sum(one.lost for one in processes),
    }
    served = sum(one.served_seconds for one in processes)
    idle = served - sum(one.busy_seconds for one in processes)
    return {
        "contextSize": {
            name: _spread(attempt.estimated_context_tokens for attempt in made)
            for name, made in by_owner.items()
        },
        "completionSeconds": {
            name: _spread(attempt.worker_duration for attempt in made)
            for name, made in by_owner.items()
        },
        "lockContention": _share(claims["empty"], claims["tries"]),
        "retryRate": _share(sum(attempt.is_retry for attempt in attempts), len(attempts)),
        "idleShare": _share(idle, served),
        "claims": claims,
    }


def _state(process: ProcessRecord, now: str, dead: Collection[str]) -> str:
    """Return `left` (in order), `dead`, `late` (its heartbeat is overdue) or `live`."""
    if process.left_at:
        return "left"
    if process.owner in dead:
        return "dead"
    return "live" if process.until > now else "late"


def _load_owners(reads: ReadOps, run: str) -> dict[tuple[str, int], str]:
    """Load the process that held each attempt last, by (task, attempt)."""
    kinds = (EventKind.ATTEMPT_STARTED, EventKind.LEASE_TAKEN)
    return {
        (event.task, event.attempt): str(event.data.get("owner", ""))
        for event in runs.events(reads, run, kinds=kinds)
    }


def _spread(values: Iterable[float | None]) -> dict[str, float]:
    known = [value for value in values if value is not None]
    if not known:
        return {}
    return {"mean": round(sum(known) / len(known), 3), "largest": round(max(known), 3)}


def _share(part: float, whole: float) -> float | None:
    """Return a share; None if the whole is zero."""
    return round(part / whole, 4) if whole else None
