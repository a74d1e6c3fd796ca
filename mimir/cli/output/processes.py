"""Lines of `mimir status --workers`: processes, leases and metrics of a run."""

from collections.abc import Mapping

from mimir.cli.console import clean_line
from mimir.cli.live.cells import number
from mimir.domain.json_value import as_object, as_objects, as_text, as_texts

_RATES = (("lockContention", "lock contention"), ("retryRate", "retries"), ("idleShare", "idle"))


def lines(shape: Mapping[str, object]) -> list[str]:
    """Return a line for each process, one for each lease, and one for the metrics."""
    workers, locks = as_objects(shape.get("workers")), as_objects(shape.get("locks"))
    if not workers:
        return ["workers: none"]
    found = ["workers:", *(f"  {_process_line(one)}" for one in workers)]
    if locks:
        found += ["locks:", *(f"  {_lease_line(one)}" for one in locks)]
    return [*found, _metrics_line(as_object(shape.get("metrics")))]


def _process_line(one: Mapping[str, object]) -> str:
    role = " coordinator," if one.get("coordinator") else ""
    tasks = ", ".join(as_texts(one.get("tasks"))) or "none"
    count = int(number(one.get("agents")) or 0)
    return clean_line(
        f"{as_text(one.get('agentId'))}  {as_text(one.get('state'))},{role} {count} at once, "
        f"tasks: {tasks}; last heartbeat {as_text(one.get('seenAt'))}"
    )


def _lease_line(one: Mapping[str, object]) -> str:
    version = int(number(one.get("version")) or 0)
    return clean_line(
        f"{as_text(one.get('taskId'))}  {as_text(one.get('agentId'))}, version {version}, "
        f"since {as_text(one.get('lockedAt'))} until {as_text(one.get('expiresAt'))}"
    )


def _metrics_line(metrics: Mapping[str, object]) -> str:
    claims = as_object(metrics.get("claims"))
    parts = [f"{int(number(claims.get('claimed')) or 0)} tasks claimed"]
    for name, word in _RATES:
        value = number(metrics.get(name))
        if value is not None:
            parts.append(f"{word} {value:.1%}")
    return f"metrics: {', '.join(parts)}"
