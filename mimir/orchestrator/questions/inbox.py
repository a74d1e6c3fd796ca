"""The inbox: questions of a project as JSON values, and lookup by a short id."""

from collections.abc import Sequence

from mimir.domain.question_states import OPEN
from mimir.errors import UsageError
from mimir.orchestrator.proposals.decisions import describe_memory, list_proposals
from mimir.orchestrator.runs.listing import match_id
from mimir.orchestrator.runs.subjects import find_subject
from mimir.reporting.questions import describe_question
from mimir.store.protocol import ReadOps, Where
from mimir.store.questions import question_rows
from mimir.store.records.question_records import QuestionRecord
from mimir.store.records.run_records import RunOverviewRecord
from mimir.store.run_reading import find_records


def load_inbox(
    reads: ReadOps, project_id: str, *, every: bool, session: str = ""
) -> dict[str, object]:
    """Return the inbox of a project: open questions by risk and age; closed ones if `every`.

    A `session` limits it to the runs of that session.

    Raises:
        UsageError: The session has no run.
    """
    found = question_rows.load_of_project(reads, project_id, every=every)
    proposals = list_proposals(reads, project_id)
    if session:
        runs = _load_runs(reads, project_id, session)
        found = [one for one in found if one.run_id in runs]
        proposals = [one for one in proposals if one.run_id in runs]
    ranked = sorted(found, key=lambda one: (one.state != OPEN, -one.risk))
    return {
        "schema": 1,
        "questions": [describe_question(one) for one in ranked],
        "notifications": [],
        "proposals": [describe_memory(one) for one in proposals],
    }


def _load_runs(reads: ReadOps, project_id: str, session: str) -> frozenset[str]:
    """Return the ids of the runs of a session."""
    where: Where = {"projectId": project_id, "sessionId": session}
    runs = frozenset(one.id for one in find_records(reads, RunOverviewRecord, where))
    if not runs:
        raise UsageError(
            f"No run belongs to a session {session[:80]!r}.",
            next_step="See all open questions: mimir inbox",
        )
    return runs


def find_question(reads: ReadOps, project_id: str, name: str) -> QuestionRecord:
    """Return the question that a user names: its id or the beginning of it, or `RUN/TASK`.

    Raises:
        UsageError: There is none, or several ids begin so.
    """
    if "/" in name:
        return _find_of_task(reads, project_id, name)
    # The prefix of all ids need not be typed.
    short = name if name.startswith("q-") else f"q-{name}"
    exact = question_rows.find(reads, short)
    if exact is not None and exact.project_id == project_id:
        return exact
    known = {one.id: one for one in question_rows.load_of_project(reads, project_id, every=True)}
    # An open question is meant, unless the text names a closed one alone.
    open_ids = [id for id, one in known.items() if one.state == OPEN]
    found = [id for id in open_ids if id.startswith(short)]
    titles = {id: known[id].name for id in found or known}
    id = match_id(short, titles, "questions")
    if not id:
        raise UsageError(
            f"There is no question {name[:80]!r}.", next_step="See the open questions: mimir inbox"
        )
    return known[id]


def _find_of_task(reads: ReadOps, project_id: str, name: str) -> QuestionRecord:
    subject = find_subject(reads, project_id, name)
    own = [one for one in question_rows.load_of_run(reads, subject.run) if one.task == subject.task]
    waiting = [one for one in own if one.state == OPEN]
    if len(waiting) == 1:
        return waiting[0]
    if not own:
        raise UsageError(
            f"Task {subject.task} of run {subject.run} has asked nothing.",
            next_step="See the open questions: mimir inbox",
        )
    if waiting:
        raise UsageError(
            f"{len(waiting)} questions of {subject.run}/{subject.task} are open.",
            next_step=f"Name one: {_names(waiting)}",
        )
    # Its error names the answer in force.
    return own[-1]


def _names(found: Sequence[QuestionRecord]) -> str:
    return ", ".join(f"{one.id} ({one.name})" for one in found)
