"""Questions of a run or a project as JSON values: inbox, `status --json`, response."""

from collections.abc import Mapping, Sequence

from mimir.domain.json_value import JsonObject
from mimir.domain.question import describe_values
from mimir.domain.question_states import OPEN
from mimir.reporting.summary.state_triangle import is_shown, load_triangle, select_noting
from mimir.store.protocol import ReadOps
from mimir.store.questions import question_rows
from mimir.store.records.question_records import QuestionRecord
from mimir.store.records.run_records import RunRecord
from mimir.store.records.task_records import TaskStatusRecord


def describe_question(one: QuestionRecord) -> JsonObject:
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
        "subject": one.subject or f"{one.run_id}/{one.task}/{one.attempt}",
        **({"subject_hash": one.subject_hash} if one.subject else {}),
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


def shape_questions(
    reads: ReadOps, run: RunRecord, tasks: Sequence[TaskStatusRecord]
) -> Mapping[str, object]:
    """Return questions and state triangle of a run as members of its status."""
    asked = question_rows.load_of_run(reads, run.id)
    questions = [describe_question(one) for one in asked]
    noting = select_noting((one.task_id, one.tools, one.attempt_number) for one in tasks)
    triangle = load_triangle(reads, run, asked, noting, tasks=len(tasks))
    return {
        **({"questions": questions} if questions else {}),
        **({"triangle": triangle.as_json()} if is_shown(triangle, run, asked) else {}),
    }
