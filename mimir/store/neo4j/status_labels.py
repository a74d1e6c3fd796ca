"""Status as a second label, `:Task:Completed`: a colour for users; no query reads it."""

from collections.abc import Mapping, Sequence

from mimir.store.neo4j.query_library import STATUS_LABELS, CypherText, names, query
from mimir.store.protocol import Value


def status(label: str, new: Mapping[str, Value]) -> CypherText:
    """Return Cypher that shows the status of a change; empty without a status."""
    shown = STATUS_LABELS.get(label)
    if shown is None or "status" not in new:
        return CypherText()
    statuses = names(shown.values(), between=":")
    now = shown.get(str(new["status"]))
    if now is None:
        return query("status-none", statuses=statuses)
    return query("status-set", statuses=statuses, status=now)


def by_status(
    label: str, rows: Sequence[dict[str, Value]]
) -> list[tuple[CypherText, list[dict[str, Value]]]]:
    """Group rows by the label that shows their status."""
    # One statement per status: Cypher cannot set a label from a parameter.
    alike: dict[CypherText, list[dict[str, Value]]] = {}
    for row in rows:
        alike.setdefault(status(label, row), []).append(row)
    return sorted(alike.items(), key=lambda one: one[0])
