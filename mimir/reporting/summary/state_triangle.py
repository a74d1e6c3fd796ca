"""State triangle of a run: its direction, its assumptions, and its decisions."""

from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence

from mimir.domain.agent import ASK_TOOL, NOTE_TOOL
from mimir.domain.ids import lane_id
from mimir.domain.json_value import as_object, as_text
from mimir.domain.question import describe_values
from mimir.domain.question_states import OPEN
from mimir.errors import StoreError
from mimir.reporting.summary.run_data import StateTriangle
from mimir.store.protocol import ReadOps, Where
from mimir.store.questions import question_rows
from mimir.store.records.call_records import CallRecord
from mimir.store.records.question_records import QuestionRecord
from mimir.store.records.run_records import RunRecord
from mimir.store.records.task_records import TaskStatusRecord
from mimir.store.run_reading import find_records
from mimir.store.schema import unpack

MOST_NOTES = 20
"""Noted assumptions of one task that are shown."""


def load_triangle(
    reads: ReadOps,
    run: RunRecord,
    questions: Sequence[QuestionRecord],
    noting: Mapping[str, int],
    *,
    tasks: int,
) -> StateTriangle:
    """Return the state triangle of a run.

    Args:
        reads: One view of the store.
        run: The run.
        questions: Its questions.
        noting: Attempts of each task that may note assumptions.
        tasks: Number of its tasks.
    """
    # Answers and approvals of the user during planning direct the run too.
    planned = question_rows.load_of_run(reads, run.plan_run) if run.plan_run else ()
    asked = (*planned, *questions)
    answered = [one for one in asked if one.values is not None and one.answered_by]
    request = [f"Request: {run.request}"] if run.request else []
    plan = [f"Plan: {tasks} tasks in {run.plan_path}"] if tasks else []
    return StateTriangle(
        direction=(*request, *(f"Answer to {one.id}: {_answer(one)}" for one in answered)),
        assumptions=(*_defaults(asked), *_notes(reads, run.id, noting)),
        decisions=(
            *plan,
            *(f"{one.name}: {_answer(one)} ({one.id}, {one.answered_by})" for one in answered),
        ),
    )


def is_shown(triangle: StateTriangle, run: RunRecord, questions: Sequence[QuestionRecord]) -> bool:
    """Return whether something was asked or assumed."""
    is_answered = len(triangle.direction) > bool(run.request)
    return bool(questions or triangle.assumptions or is_answered)


def select_noting(tasks: Iterable[tuple[str, Collection[str], int]]) -> Mapping[str, int]:
    """Return the attempts of the tasks that may note assumptions, given (id, tools, attempts)."""
    # Calls of the others are not read.
    return {
        task: attempts for task, tools, attempts in tasks if ASK_TOOL in tools or NOTE_TOOL in tools
    }


def find_noting(reads: ReadOps, run: str) -> Mapping[str, int]:
    """Return the attempts of each task of a run that may note assumptions."""
    tasks = find_records(reads, TaskStatusRecord, {"runId": run}, order=("seq",))
    return select_noting((one.task_id, one.tools, one.attempt_number) for one in tasks)


def _answer(one: QuestionRecord) -> str:
    return describe_values(one.values or {})


def _defaults(questions: Sequence[QuestionRecord]) -> Iterator[str]:
    """Yield the defaults that hold because there was no answer."""
    for one in questions:
        holds = not one.is_blocking or one.state != OPEN
        default = one.default_values
        if default is not None and holds and not one.answered_by:
            yield f"{one.name}: {describe_values(default)} ({one.id}, default)"


def _notes(reads: ReadOps, run: str, noting: Mapping[str, int]) -> Iterator[str]:
    """Yield the assumptions that workers noted, task by task."""
    for task, attempts in noting.items():
        lanes = [lane_id(run, task, number, "worker") for number in range(1, attempts + 1)]
        where: Where = {"lane": ("in", lanes), "tool": NOTE_TOOL, "done": True}
        calls = find_records(reads, CallRecord, where, order=("lane", "seq")) if lanes else ()
        # A later attempt may note the same again.
        noted = dict.fromkeys(text for one in calls if (text := _read_note(one)))
        yield from (f"{task}: {text}" for text in list(noted)[:MOST_NOTES])


def _read_note(call: CallRecord) -> str:
    """Return the note of a call; empty: it was refused."""
    if as_object(call.value.mapping()).get("is_error"):
        return ""
    try:
        given = as_object(unpack(as_text(call.delta.mapping().get("arguments"))))
    except StoreError:
        return ""
    text, because = as_text(given.get("text")).strip(), as_text(given.get("because")).strip()
    return f"{text} (because {because})" if text else ""
