"""Response of an invocation: status and assurance, computed from the stored run. Pure."""

from collections.abc import Mapping, Sequence

from mimir.agents.citations import MAX_CITATIONS, count_citations
from mimir.attempts.agent_answers.response_form import AgentAnswer, read_answer
from mimir.domain.json_value import JsonObject, as_array, as_object, as_objects, as_text, as_texts
from mimir.domain.question import is_unanswered
from mimir.domain.task_states import ANSWERED, RunStatus
from mimir.errors import AnswerError

MAX_TEXT = 50_000
MAX_MESSAGE = 1_000
"""Characters of the message of an error."""
WORKING, NEEDS_INPUT = "working", "needs_input"
"""Statuses of a response of a run that has not ended."""


def build_response(
    agent: str,
    run: JsonObject,
    task: JsonObject,
    attempt: JsonObject,
    *,
    documents: Sequence[JsonObject] = (),
    model: str = "",
    schema: JsonObject | None = None,
    is_program: bool = False,
    ended: str | None = None,
) -> JsonObject:
    """Return the `AgentResponse` of an invocation.

    Args:
        agent: Address of the definition.
        run: As in `status --json`.
        task: As in `show RUN/TASK --json`.
        attempt: As in `show RUN/TASK/ATTEMPT --json`, the accepted or last one, with its whole answer.
        documents: Changed files of that attempt.
        model: That answered; empty: it is not known.
        schema: Schema of the answer. None: it has none.
        is_program: Whether a program answered, whose free text is an answer too.
        ended: Time of the end. None: the run has not ended.
    """
    id, raw = as_text(run.get("run")), as_text(attempt.get("answer"))
    findings: list[tuple[str, str]] = []
    try:
        answer, is_in_form = read_answer(raw, schema), True
    except AnswerError as error:
        answer, is_in_form = AgentAnswer(analysis=raw), is_program or not raw
        if raw and not is_program:
            findings.append(("response-form", str(error)))
    criteria = as_objects(task.get("criteria"))
    attempts = as_objects(task.get("attempts"))
    changed = _changed_paths(task, attempts)
    questions = as_objects(run.get("questions"))
    # Without an answer that it asked for, its work is not whole, whatever criteria it has.
    lacks = any(is_unanswered(as_text(one.get("state")), one.get("answer")) for one in questions)
    has_work = bool(changed) or (lacks and bool(raw))
    status = _status(as_text(run.get("status")), has_work=has_work, is_in_form=is_in_form)
    is_asking = any(one.get("state") == "open" for one in questions)
    if status == WORKING and is_asking:
        status = NEEDS_INPUT
    complete = _completion_status(status)
    if answer.self_reported and complete and answer.self_reported != complete:
        findings.append(
            ("self-report", f"The agent reports {answer.self_reported}, not {complete}.")
        )
    # The answer is read again: only its text is stored.
    unverified = [as_text(one) for one in as_array(attempt.get("unsupported"))]
    total = min(count_citations(answer.texts), MAX_CITATIONS)
    level = assurance_level(
        criteria,
        is_complete=status == "completed",
        is_cited=status in ("completed", ANSWERED) and total > 0 and not unverified,
    )
    findings += answer.findings
    findings += [("note", note) for one in attempts for note in as_texts(one.get("notes"))]
    return {
        "schema": 1,
        "run": id,
        "session": None,
        "agent": agent,
        "status": status,
        "error": _error(run, task, status, dict(findings)),
        "deliverables": {
            "documents": list(documents) or [{"path": path} for path in changed],
            "analysis": answer.analysis[:MAX_TEXT],
            "recommendations": list(answer.recommendations),
            "structured": answer.structured or {},
        },
        "memory_operations": list(answer.memory_operations),
        "recommendations": {
            "additional_specialists": list(answer.specialists),
            "follow_up_tasks": list(answer.follow_ups),
        },
        "assurance": {
            "level": level,
            "criteria": _count_criteria(criteria),
            "citations": {
                "total": total,
                "verified": max(0, total - len(unverified)),
                "unverified": unverified,
            },
            "seal": run.get("seal"),
            "branch": run.get("branch"),
        },
        "metadata": {
            "chatmode": agent,
            "task_completion_status": complete,
            "self_reported": answer.self_reported or None,
            "confidence_level": answer.confidence or None,
            "started_at": run.get("started"),
            "completed_at": ended,
            "processing_time": run.get("elapsed_seconds"),
            "model": model or None,
            "tokens": run.get("tokens"),
            "cost": run.get("cost"),
            "tool_calls": sum(_number(one.get("tool_calls")) for one in attempts),
            "tool_call_limit": next(
                (one.get("limit") for one in as_objects(run.get("tasks"))), None
            ),
            "attempts": len(attempts),
            "depth": run.get("depth"),
            "calls_left": _calls_left(run),
            "limits_reached": [trip] if (trip := as_text(attempt.get("tripped"))) else [],
            "context": attempt.get("context"),
            "findings": [{"code": code, "message": message} for code, message in findings],
        },
        "questions": list(questions),
        "notifications": [],
        "next": "mimir inbox" if is_asking else f"mimir report {id}",
    }


def is_success(response: JsonObject, *, strict_citations: bool = False) -> bool:
    """Return whether an invocation succeeded; with strict citations each must be verified."""
    proof = as_object(as_object(response.get("assurance")).get("citations"))
    is_proven = not (strict_citations and as_array(proof.get("unverified")))
    return response.get("status") in ("completed", ANSWERED) and is_proven


def assurance_level(
    criteria: Sequence[JsonObject], *, is_complete: bool, is_cited: bool = False
) -> str:
    """Return `executed` if a check decided each criterion, `judged`, `cited`, or `none`."""
    if is_complete and criteria:
        if all(one.get("basis") == "executed" for one in criteria):
            return "executed"
        if all(one.get("state") == "passed" for one in criteria):
            return "judged"
    # One citation that does not hold makes the others doubtful.
    return "cited" if is_cited else "none"


def _status(outcome: str, *, has_work: bool, is_in_form: bool) -> str:
    match outcome:
        case "answered" | RunStatus.COMPLETED:
            return outcome if is_in_form else "partial"
        case RunStatus.CANCELLED:
            return "cancelled"
        case RunStatus.FAILED | RunStatus.COMPLETED_WITH_GAPS:
            return "partial" if has_work else "failed"
        case _:
            return WORKING


def _completion_status(status: str) -> str | None:
    """Return `complete`, `partial` or `failed`; None: the run has not ended."""
    match status:
        case "answered" | "completed":
            return "complete"
        case "partial":
            return "partial"
        case "working" | "needs_input":
            return None
        case _:
            return "failed"


def _changed_paths(task: JsonObject, attempts: Sequence[JsonObject]) -> list[str]:
    """Return the paths of the accepted deliverable, otherwise of the last attempt."""
    last = attempts[-1].get("changed") if attempts else None
    found = as_array(task.get("changed")) or as_array(last)
    return [as_text(path) for path in found]


def _error(
    run: JsonObject, task: JsonObject, status: str, findings: Mapping[str, str]
) -> JsonObject | None:
    if status in ("completed", ANSWERED, NEEDS_INPUT):
        return None
    cause = as_text(task.get("cause")) or as_text(run.get("status"))
    # The run did end; only the form of its answer is at fault.
    if cause in (RunStatus.COMPLETED, ANSWERED):
        cause = "response-form"
    verb = "resume" if status == WORKING else "report"
    message = as_text(run.get("message")) or _explain(task) or findings.get(cause, "")
    return {"cause": cause, "message": message, "next": f"mimir {verb} {run.get('run')}"}


def _explain(task: JsonObject) -> str:
    """Return why the last attempt of a task failed; empty: it did not."""
    last = as_objects(task.get("attempts"))[-1:]
    return " ".join(issue for one in last for issue in as_texts(one.get("issues")))[:MAX_MESSAGE]


def _count_criteria(criteria: Sequence[JsonObject]) -> Mapping[str, int]:
    counts = {"executed": 0, "judged": 0, "unverified": 0, "failed": 0}
    for one in criteria:
        state = as_text(one.get("state"))
        name = state if state in ("failed", "unverified") else as_text(one.get("basis"))
        if name in counts:
            counts[name] += 1
    return counts


def _calls_left(run: JsonObject) -> int | None:
    """Return the calls of models that the limit of the run leaves; None: there is no limit."""
    most = run.get("max_calls")
    return max(0, most - _number(run.get("calls"))) if isinstance(most, int) else None


def _number(value: object) -> int:
    return value if isinstance(value, int) else 0
