"""Why a task failed, and what the failures mean for the plan: computed from attempts and statuses, without a model. Pure."""

import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field

from mimir.domain.failure import PMFailureSummary, QCFailureReport, TimelineEntry
from mimir.domain.graph import TaskGraph
from mimir.domain.plan import Plan, Task
from mimir.domain.task_states import Cause, TaskStatus

MAX_ROOT_CAUSES = 10
"""Kinds of trouble named in a report; the timeline holds every issue."""
MAX_WORDS = 300
"""Characters of an issue in a root cause."""
HIGH_RISK = 0.5
"""Blocked share of the plan from which the risk is `high`."""
_SIMILAR = 0.75
"""Share of common words from which two messages are one kind of trouble."""

RECOMMENDATIONS: Mapping[Cause, str] = {
    Cause.QC_REJECTED: "Read QC's issues below; make the prompt name what they ask for, or split the task.",
    Cause.CHECK_FAILED: "Run the failing check by hand on the kept deliverable; if the check asks for what the "
    "prompt does not, mend the prompt or the check.",
    Cause.SILENT_NO_OP: "The worker changed none of the files of the task: check that `Files` names what the "
    "prompt asks to change, and that the tools to change it are granted.",
    Cause.REFUSED_DELIVERABLE: "The worker touches files that it may not change; say in the prompt which ones to leave alone.",
    Cause.INVALID_ANSWER: "The worker's model gives no usable answer; name another model for this task.",
    Cause.MODEL_ERROR: "The model refused or the context was too long: list fewer context files, split the task, "
    "or name another model.",
    Cause.NO_PROGRESS: "The same result was delivered again although it had been rejected; the prompt must say what "
    "is missing, or the task needs another model.",
    Cause.CRITERIA_IMPOSSIBLE: "QC says that no deliverable can meet these criteria: rewrite them.",
    Cause.UNVERIFIABLE: "Nothing can prove these criteria: add a check that can fail, or criteria that can be "
    "quoted from the deliverable.",
    Cause.QC_UNAVAILABLE: "QC's model gave no valid verdict: name another model for QC and run the task again; the "
    "deliverable is kept on a branch.",
    Cause.INTEGRATION: "The work of other tasks gets in the way: declare `Files`, or make one task depend on the other.",
    Cause.WORKER_DIED: "The process died three times at this task: look at memory, disk and the log of the machine.",
    Cause.DEPENDENCY: "A dependency did not complete: mend that one first.",
    Cause.CANCELLED: "The run was cancelled; resume it or run the plan again.",
}
"""What to do about each cause; every cause has its line."""


@dataclass(slots=True)
class _IssueGroup:
    """Messages that say the same thing, over the attempts."""

    cause: str
    words: frozenset[str]
    message: str
    """The first of them, as it was written."""
    attempts: list[int] = field(default_factory=list[int])


def failure_report(
    task: str, cause: Cause, timeline: Sequence[TimelineEntry], *, tripped: Iterable[str] = ()
) -> QCFailureReport:
    """Compute the report of a failed task.

    Args:
        task: Its id.
        cause: Why it ended.
        timeline: Its attempts, oldest first; the last one is that which ended it.
        tripped: What tripped in its attempts, in words; empty ones are ignored.
    """
    troubles = _group_issues(timeline)
    return QCFailureReport(
        task=task,
        cause=cause.value,
        timeline=tuple(timeline),
        root_causes=tuple(_describe_group(trouble) for trouble in troubles[:MAX_ROOT_CAUSES]),
        recommendations=_recommendations(cause, timeline, [t for t in tripped if t]),
    )


def failure_summary(
    plan: Plan, statuses: Mapping[str, TaskStatus], reports: Mapping[str, QCFailureReport]
) -> PMFailureSummary | None:
    """Compute what the failures of a run mean for its plan.

    Args:
        plan: The tasks of the run.
        statuses: Where each of them stands at the end; a task that is not in it did not run.
        reports: Of the failed tasks.

    Returns:
        None if nothing failed and nothing is blocked.
    """
    failed = [t for t in plan.tasks if statuses.get(t.id) is TaskStatus.FAILED]
    blocked = [t for t in plan.tasks if statuses.get(t.id) is TaskStatus.BLOCKED]
    if not failed and not blocked:
        return None
    graph = TaskGraph.from_plan(plan)
    stopped = {task.id for task in blocked}
    blocking = tuple(t.id for t in failed if graph.downstream(t.id) & stopped)
    delay = blocked_share(plan, stopped)
    return PMFailureSummary(
        blocking_tasks=blocking,
        blocked_tasks=tuple(t.id for t in blocked),
        project_delay=delay,
        risk_level="high" if delay >= HIGH_RISK else "medium" if stopped else "low",
        next_actions=_next_actions(failed, reports, blocking, graph, stopped),
        lessons_learned=tuple(_lesson(t, reports[t.id]) for t in failed if t.id in reports),
    )


def blocked_share(plan: Plan, blocked: Iterable[str]) -> float:
    """Return the share of the plan's estimated minutes that stands still, 0–1.

    A task without an estimate counts as the mean of those that have one; where none has, all count the same.
    """
    given = [t.estimated_minutes for t in plan.tasks if t.estimated_minutes is not None]
    default = sum(given) / len(given) if given else 1.0
    minutes = {
        t.id: default if t.estimated_minutes is None else t.estimated_minutes for t in plan.tasks
    }
    total = sum(minutes.values())
    still = frozenset(blocked)
    if not total:
        return len(still) / len(minutes) if minutes else 0.0
    return sum(share for id, share in minutes.items() if id in still) / total


def _group_issues(timeline: Sequence[TimelineEntry]) -> list[_IssueGroup]:
    """Group the issues of all attempts by cause and similar words; what came back most often first."""
    found: list[_IssueGroup] = []
    for entry in timeline:
        for issue in entry.issues or ("No issue was named.",):
            trouble = _find_similar(found, entry.cause, words := _words(issue))
            if trouble is None:
                trouble = _IssueGroup(cause=entry.cause, words=words, message=issue)
                found.append(trouble)
            if entry.attempt not in trouble.attempts:
                trouble.attempts.append(entry.attempt)
    return sorted(found, key=lambda trouble: -len(trouble.attempts))


def _find_similar(
    found: Iterable[_IssueGroup], cause: str, words: frozenset[str]
) -> _IssueGroup | None:
    for trouble in found:
        union = len(trouble.words | words)
        alike = not union or len(trouble.words & words) / union >= _SIMILAR
        if trouble.cause == cause and alike:
            return trouble
    return None


_VARIABLE = re.compile(r"0x[0-9a-f]+|\b[0-9a-f]{12,}\b|\d+")


def _words(issue: str) -> frozenset[str]:
    """Return the words of a message without what differs from run to run: numbers, addresses, hashes."""
    return frozenset(re.findall(r"\w+", _VARIABLE.sub(" ", issue.casefold())))


def _describe_group(trouble: _IssueGroup) -> str:
    message = " ".join(trouble.message.split())
    if len(message) > MAX_WORDS:
        message = f"{message[:MAX_WORDS]} […]"
    attempts = ", ".join(str(number) for number in trouble.attempts)
    noun = "attempt" if len(trouble.attempts) == 1 else "attempts"
    return f"{trouble.cause} ({noun} {attempts}): {message}"


def _recommendations(
    cause: Cause, timeline: Sequence[TimelineEntry], tripped: Sequence[str]
) -> tuple[str, ...]:
    """Return what to do about the end, then about each other cause on the way to it."""
    causes = dict.fromkeys([cause.value, *(entry.cause for entry in timeline)])
    advice = [RECOMMENDATIONS[Cause(name)] for name in causes if name in Cause.__members__.values()]
    if tripped:
        advice.append(
            f"A limit was reached ({tripped[-1]}): raise `Estimated Tool Calls` or the time limit, or split the task."
        )
    scores = [entry.score for entry in timeline if entry.score is not None]
    if len(scores) > 1 and scores[-1] > scores[0]:
        advice.append("The score was rising: more attempts (`Max Retries`) may be enough.")
    return tuple(dict.fromkeys(advice))


def _next_actions(
    failed: Sequence[Task],
    reports: Mapping[str, QCFailureReport],
    blocking: Sequence[str],
    graph: TaskGraph,
    stopped: set[str],
) -> tuple[str, ...]:
    """Return one action a failed task, those that block most first, and how to go on."""
    weight = {t.id: len(graph.downstream(t.id) & stopped) for t in failed}
    actions: list[str] = []
    for task in sorted(failed, key=lambda t: -weight[t.id]):
        report = reports.get(task.id)
        advice = (
            report.recommendations[0] if report and report.recommendations else "Read its report."
        )
        frees = f" This frees {weight[task.id]} blocked task(s)." if task.id in blocking else ""
        actions.append(f"{task.id}: {advice}{frees}")
    actions.append(
        "Mend the plan and run it again with `--from` this run: completed tasks are taken over as they are."
    )
    return tuple(actions)


def _lesson(task: Task, report: QCFailureReport) -> str:
    why = report.root_causes[0] if report.root_causes else report.cause
    tries = len(report.timeline)
    return f"{task.id} ({task.title}) ended {report.cause} after {tries} attempt(s). Mostly: {why}"
