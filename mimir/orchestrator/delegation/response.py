"""Response of an invocation: status and assurance, computed from the stored run. Pure."""

from collections.abc import Mapping, Sequence

from mimir.domain.json_value import as_array, as_objects, as_text, as_texts
from mimir.domain.task_states import RunStatus

MAX_TEXT = 50_000


def build_response(
    agent: str, run: Mapping[str, object], task: Mapping[str, object]
) -> Mapping[str, object]:
    """Return the `AgentResponse` of an invocation.

    Args:
        agent: Address of the definition.
        run: As in `status --json`.
        task: As in `show RUN/TASK --json`.
    """
    id = as_text(run.get("run"))
    criteria = as_objects(task.get("criteria"))
    attempts = as_objects(task.get("attempts"))
    changed = _changed_paths(task, attempts)
    status = _status(as_text(run.get("status")), changed)
    return {
        "schema": 1,
        "run": id,
        "session": None,
        "agent": agent,
        "status": status,
        "error": _error(run, task, status),
        "deliverables": {
            "documents": [{"path": path} for path in changed],
            "analysis": as_text(task.get("answer"))[:MAX_TEXT],
            "recommendations": [],
            "structured": {},
        },
        "memory_operations": [],
        "recommendations": {"additional_specialists": [], "follow_up_tasks": []},
        "assurance": {
            "level": assurance_level(criteria, is_complete=status == "completed"),
            "criteria": _count_criteria(criteria),
            "citations": {"total": 0, "verified": 0, "unverified": []},
            "seal": run.get("seal"),
        },
        "metadata": {
            "chatmode": agent,
            "task_completion_status": "complete" if status == "completed" else status,
            "self_reported": None,
            "started_at": run.get("started"),
            "processing_time": run.get("elapsed_seconds"),
            "tokens": run.get("tokens"),
            "cost": run.get("cost"),
            "tool_calls": sum(_number(one.get("tool_calls")) for one in attempts),
            "attempts": len(attempts),
            "findings": [note for one in attempts for note in as_texts(one.get("notes"))],
            "depth": 0,
        },
        "questions": [],
        "notifications": [],
        "next": f"mimir report {id}",
    }


def assurance_level(criteria: Sequence[Mapping[str, object]], *, is_complete: bool) -> str:
    """Return `executed` if a check decided each criterion, `judged`, or `none`."""
    if not is_complete or not criteria:
        return "none"
    if all(one.get("basis") == "executed" for one in criteria):
        return "executed"
    is_decided = all(one.get("state") == "passed" for one in criteria)
    return "judged" if is_decided else "none"


def _status(outcome: str, changed: Sequence[str]) -> str:
    match outcome:
        case RunStatus.COMPLETED:
            return "completed"
        case RunStatus.CANCELLED:
            return "cancelled"
        case RunStatus.FAILED | RunStatus.COMPLETED_WITH_GAPS:
            return "partial" if changed else "failed"
        case _:
            return "working"


def _changed_paths(
    task: Mapping[str, object], attempts: Sequence[Mapping[str, object]]
) -> list[str]:
    """Return the paths of the accepted deliverable, otherwise of the last attempt."""
    last = attempts[-1].get("changed") if attempts else None
    found = as_array(task.get("changed")) or as_array(last)
    return [as_text(path) for path in found]


def _error(
    run: Mapping[str, object], task: Mapping[str, object], status: str
) -> Mapping[str, object] | None:
    if status == "completed":
        return None
    cause = as_text(task.get("cause")) or as_text(run.get("status"))
    verb = "resume" if status == "working" else "report"
    message = as_text(run.get("message"))
    return {"cause": cause, "message": message, "next": f"mimir {verb} {run.get('run')}"}


def _count_criteria(criteria: Sequence[Mapping[str, object]]) -> Mapping[str, int]:
    counts = {"executed": 0, "judged": 0, "unverified": 0, "failed": 0}
    for one in criteria:
        state = as_text(one.get("state"))
        name = state if state in ("failed", "unverified") else as_text(one.get("basis"))
        if name in counts:
            counts[name] += 1
    return counts


def _number(value: object) -> int:
    return value if isinstance(value, int) else 0
