"""Earlier attempts of a task, as the brief of its next attempt describes them."""

from collections.abc import Iterable, Sequence
from fractions import Fraction

from mimir.agents.context.inputs import EarlierAttempt, FailedCheck
from mimir.agents.context.qc import how_it_ended
from mimir.agents.context.task_sections import command
from mimir.domain.deliverable import Deliverable
from mimir.domain.evidence import CheckOutcome
from mimir.domain.plan import Task
from mimir.domain.verdict import Verdict
from mimir.qc.judgement.score import select_causes
from mimir.store.records.attempt_records import AttemptRecord


def describe_attempt(task: Task, attempt: AttemptRecord) -> EarlierAttempt:
    """Return an attempt that has ended, with its causes first."""
    stored = attempt.check_outcomes
    outcomes: Sequence[CheckOutcome] = stored.decode(tuple[CheckOutcome, ...]) if stored else ()
    commands = {check.id: command(check) for check in task.checks}
    issues = (*_list_causes(attempt), *_left_out_issues(attempt))
    return EarlierAttempt(
        number=attempt.number,
        reason=attempt.end_cause,
        score=None if attempt.score is None else Fraction(str(attempt.score)),
        issues=quote_commands(task, issues),
        checks=tuple(
            FailedCheck(
                id=outcome.check,
                command=commands.get(outcome.check) or " ".join(outcome.after.argv),
                outcome=how_it_ended(outcome.after),
                output=outcome.after.output_tail,
            )
            for outcome in outcomes
            if outcome.state != "passed"
        ),
        answer=attempt.answer_text,
        artifact=answer_id(attempt.task_id, attempt.number),
        tripped=attempt.tripped,
        note=attempt.note,
    )


def quote_commands(task: Task, texts: Iterable[str]) -> tuple[str, ...]:
    """Return texts in which the commands of checks are written as in the plan."""
    # Stored texts hold the arguments joined by blanks; they are sealed, so that they stay as they are.
    names = [(" ".join(check.argv), command(check)) for check in task.checks]
    quoted: list[str] = []
    for text in texts:
        found = next((one for one in names if one[0] in text), None)
        quoted.append(text.replace(*found) if found else text)
    return tuple(quoted)


def answer_id(task: str, attempt: int) -> str:
    """Return the id of an attempt's answer within its run, for `read_artifact`."""
    # Without the run's id, which would make every prompt different.
    return f"{task}/{attempt}/answer"


def _list_causes(attempt: AttemptRecord) -> tuple[str, ...]:
    if not attempt.verdict:
        return attempt.issues
    return select_causes(attempt.verdict.decode(Verdict), attempt.issues)


def _left_out_issues(attempt: AttemptRecord) -> tuple[str, ...]:
    """Return the changes that the write scope refused, so that the retry does not repeat them."""
    work = attempt.deliverable.decode(Deliverable) if attempt.deliverable else None
    if work is None:
        return ()
    named = tuple(map(repr, work.left_out))
    return tuple(note for note in work.notes if note.startswith(named))
