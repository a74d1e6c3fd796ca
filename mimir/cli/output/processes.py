"""What `mimir status --workers` adds, as lines: who serves a run, what each holds, how they do. Pure."""

from collections.abc import Mapping

from mimir.cli.console import clean_line
from mimir.cli.live.board import items, members, number, text, texts


def lines(shape: Mapping[str, object]) -> list[str]:
    """Return a line a process, a line a lock, and one of figures."""
    workers, locks = items(shape.get("workers")), items(shape.get("locks"))
    if not workers:
        return ["workers: none"]
    said = ["workers:", *(f"  {_worker(one)}" for one in workers)]
    if locks:
        said += ["locks:", *(f"  {_lock(one)}" for one in locks)]
    return [*said, _figures(members(shape.get("metrics")))]


def _worker(one: Mapping[str, object]) -> str:
    chair = " coordinates," if one.get("coordinator") else ""
    tasks = ", ".join(texts(one.get("tasks"))) or "nothing"
    count = int(number(one.get("agents")) or 0)
    line = f"{text(one.get('agentId'))}  {text(one.get('state'))},{chair} {count} at once, works on {tasks}; seen {text(one.get('seenAt'))}"
    return clean_line(line)


def _lock(one: Mapping[str, object]) -> str:
    version = int(number(one.get("version")) or 0)
    return clean_line(
        f"{text(one.get('taskId'))}  {text(one.get('agentId'))}, version {version}, "
        f"since {text(one.get('lockedAt'))} until {text(one.get('expiresAt'))}"
    )


def _figures(metrics: Mapping[str, object]) -> str:
    claims = members(metrics.get("claims"))
    parts = [f"{int(number(claims.get('claimed')) or 0)} tasks claimed"]
    named = (
        ("lockContention", "lock contention"),
        ("retryRate", "retries"),
        ("idleShare", "idle"),
    )
    for name, word in named:
        value = number(metrics.get(name))
        if value is not None:
            parts.append(f"{word} {value:.1%}")
    return f"figures: {', '.join(parts)}"
