"""State of a session as JSON values: its runs, its remaining budget and its metrics."""

from collections import Counter
from collections.abc import Collection, Mapping

from mimir.domain import money
from mimir.domain.clock import moment
from mimir.domain.invocation import DelegationLimits
from mimir.domain.json_value import NO_MEMBERS
from mimir.domain.task_states import RUN_ENDED
from mimir.orchestrator.delegation.rules import count_working, find_place
from mimir.orchestrator.delegation.stored_response import RESPONSE_TEXT
from mimir.orchestrator.sessions.limits import load_session
from mimir.orchestrator.sessions.metrics import CallFacts, compute_metrics
from mimir.store.operations.record_loading import find_json
from mimir.store.protocol import ReadOps
from mimir.store.records.record_codec import ABSENT
from mimir.store.records.session_records import SessionRecord
from mimir.store.run_reading import load_record, load_run


def shape_session(
    reads: ReadOps, project_id: str, session: str, dead: Collection[str], limits: DelegationLimits
) -> Mapping[str, object]:
    """Return the state of a session; one without an invocation has no runs."""
    calls = load_session(reads, project_id, session, dead)
    runs: list[dict[str, object]] = []
    for one in calls:
        shown: dict[str, object] = {
            "run": one.run,
            "agent": one.agent,
            "active": one.is_active,
            "parent": one.parent,
            "queue_position": find_place(calls, one.run),
        }
        runs.append(
            {
                name: value
                for name, value in shown.items()
                if value not in ("", 0) or name == "active"
            }
        )
    record = load_record(reads, SessionRecord, session)
    refused = record.refusals if record else ABSENT
    facts = [_load_facts(reads, one.run) for one in calls]
    return {
        "session": session,
        "name": record.name if record else "",
        "runs": runs,
        "total_calls": len(calls),
        "calls_by_agent": dict(Counter(one.agent for one in calls)),
        "refinements": sum(1 for one in calls if one.refines),
        "queued": sum(1 for one in calls if one.is_queued),
        "calls_left": max(0, limits.calls - len(calls)),
        "active_left": max(0, limits.active - count_working(calls)),
        **({"budget": _shape_budget(record)} if record else {}),
        "metrics": compute_metrics(facts, refused.mapping() if refused else NO_MEMBERS),
    }


def _shape_budget(record: SessionRecord) -> Mapping[str, object]:
    """Return the used and reserved budget of the runs of a session, with its limits."""
    limit = record.max_cost
    return {
        "calls": record.tree_calls,
        "max_calls": record.max_calls,
        "tokens": record.tree_tokens,
        "max_tokens": record.max_tokens,
        "cost": money.format_money(record.tree_cost),
        "max_cost": None if limit is None else money.format_money(limit),
    }


def _load_facts(reads: ReadOps, run: str) -> CallFacts:
    record = load_run(reads, run)
    stored = find_json(reads, run, RESPONSE_TEXT) if record.status in RUN_ENDED else None
    return CallFacts(
        agent=record.agent,
        started=moment(record.created_at),
        ended=moment(record.finished_at) if record.finished_at else None,
        tokens=record.tokens_used,
        response=stored.value.mapping() if stored else {},
    )
