"""Questions of a run or a project as JSON values: inbox, `status --json`, response."""

from collections.abc import Mapping

from mimir.domain.question import OPEN, describe_values
from mimir.store.records.question_records import QuestionRecord

Json = Mapping[str, object]


def describe_question(one: QuestionRecord) -> Json:
    """Return a question as JSON values."""
    default, answer = one.default_values, one.values
    return {
        "id": one.id,
        "kind": one.kind,
        "risk": one.risk,
        "run": one.run_id,
        "task": one.task,
        "attempt": one.attempt,
        "agent": one.asked_by,
        "title": one.name,
        "text": one.text,
        "schema": one.schema.mapping(),
        "default": default,
        "default_text": "" if default is None else describe_values(default),
        "subject": f"{one.run_id}/{one.task}/{one.attempt}",
        "blocking": one.is_blocking,
        "state": one.state,
        "asked_at": one.created_at,
        "expires_at": one.expires_at or None,
        "waiting_tasks": [one.task] if one.is_blocking and one.state == OPEN else [],
        "answer": answer,
        "answer_text": "" if answer is None else describe_values(answer),
        "answered_by": one.answered_by,
        "transport": one.transport,
        "closed_at": one.closed_at or None,
    }
