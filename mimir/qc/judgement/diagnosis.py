"""Diagnosis of failed tasks and of their effect on the plan, without a model."""

import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field

from mimir.domain.failure import PMFailureSummary, QCFailureReport, TimelineEntry
from mimir.domain.graph import TaskGraph
from mimir.domain.plan import Plan, Task
from mimir.domain.task_states import Cause, TaskStatus

MAX_ROOT_CAUSES = 10
"""Groups of issues in a report; the timeline holds every issue."""
MAX_WORDS = 300
"""Characters of an issue in a root cause."""
HIGH_RISK = 0.5
"""Blocked share of the plan from which the risk is `high`."""
_SIMILAR = 0.75
"""Share of common words from which two issues form one group."""

RECOMMENDATIONS: Mapping[Cause, str] = {
    Cause.QC_REJECTED: "Read QC's issues below; make the prompt state what they require, or split the task.",
    Cause.CHECK_FAILED: "Run the failing check by hand on the saved deliverable; if the check requires more than the "
    "prompt, correct the prompt or the check.",
    Cause.SILENT_NO_OP: "The worker changed none of the files of the task: check that `Files` names the files "
    "of the prompt, and that the task has the tools to change them.",
    Cause.REFUSED_DELIVERABLE: "The worker changes files that it may not change; list them in the prompt as excluded.",
    Cause.INVALID_ANSWER: "The worker gives no usable answer; choose another model for this task.",
    Cause.MODEL_ERROR: "The model refused or the context was too long: list fewer context files, split the task, "
    "or choose another model.",
    Cause.PROGRAM_ERROR: "The program of the agent ended without success: read its output, and try it by hand "
    "(`mimir doctor` shows its version).",
    Cause.TIME: "The program of the agent was ended at its time limit; what it changed is kept. Raise the limit, or "
    "split the task.",
    Cause.NO_PROGRESS: "The attempt delivered a rejected result again; state in the prompt what "
    "is missing, or choose another model.",
    Cause.CRITERIA_IMPOSSIBLE: "QC says that no deliverable can meet these criteria: rewrite them.",
    Cause.UNVERIFIABLE: "Nothing proves these criteria: add a check that can fail, or criteria that a quote from the "
    "deliverable can prove.",
    Cause.QC_UNAVAILABLE: "QC's model gave no valid verdict: choose another model for QC and run the task again; a branch "
    "holds the deliverable.",
    Cause.INTEGRATION: "The work of other tasks conflicts: declare `Files`, or make one task depend on the other.",
    Cause.REJECTED: "An answer of yours differs from what the work assumed: state it in the prompt.",
    Cause.WORKER_DIED: "The process died three times during this task: check memory, disk and the system log.",
    Cause.DEPENDENCY: "A dependency did not complete: repair it first.",
    Cause.CANCELLED: "The run was cancelled; resume it or run the plan again.",
}
"""Next step for each cause; no cause is missing."""


@dataclass(slots=True)
class _IssueGroup:
    """Issues of several attempts with the same meaning."""

    cause: str
    words: frozenset[str]
    message: str
    """First of them, unchanged."""
    attempts: list[int] = field(default_factory=list[int])


def failure_report(
    task: str, cause: Cause, timeline: Sequence[TimelineEntry], *, tripped: Iterable[str] = ()
) -> QCFailureReport:
    """Compute the report of a failed task."""
    groups = _group_issues(timeline)
    return QCFailureReport(
        task=task,
        cause=cause.value,
        timeline=tuple(timeline),
        root_causes=tuple(_describe_group(group) for group in groups[:MAX_ROOT_CAUSES]),
        recommendations=_recommendations(cause, timeline, [t for t in tripped if t]),
    )


def failure_summary(
    plan: Plan, statuses: Mapping[str, TaskStatus], reports: Mapping[str, QCFailureReport]
) -> PMFailureSummary | None:
    """Compute the effect of a run's failures on its plan.

    Returns:
        None: no task failed or is blocked.
    """
    failed = [t for t in plan.tasks if statuses.get(t.id) is TaskStatus.FAILED]
    blocked = [t for t in plan.tasks if statuses.get(t.id) is TaskStatus.BLOCKED]
    if not failed and not blocked:
        return None
    graph = TaskGraph.from_plan(plan)
    stopped = {task.id for task in blocked}
    frees = {task.id: len(graph.downstream(task.id) & stopped) for task in failed}
    delay = blocked_share(plan, stopped)
    return PMFailureSummary(
        blocking_tasks=tuple(id for id, count in frees.items() if count),
        blocked_tasks=tuple(t.id for t in blocked),
        project_delay=delay,
        risk_level="high" if delay >= HIGH_RISK else "medium" if stopped else "low",
        next_actions=_next_actions(frees, reports),
        lessons_learned=tuple(_lesson(t, reports[t.id]) for t in failed if t.id in reports),
    )


def blocked_share(plan: Plan, blocked: Iterable[str]) -> float:
    """Return the blocked share of the plan's estimated minutes, 0–1.

    A task without an estimate counts as the mean of the others; if none has one, all count the same.
    """
    given = [t.estimated_minutes for t in plan.tasks if t.estimated_minutes is not None]
    # The mean keeps tasks without an estimate from counting as nothing.
    default = sum(given) / len(given) if given else 1.0
    minutes = {
        t.id: default if t.estimated_minutes is None else t.estimated_minutes for t in plan.tasks
    }
    total = sum(minutes.values())
    stopped = frozenset(blocked)
    if not total:
        return len(stopped) / len(minutes) if minutes else 0.0
    return sum(share for id, share in minutes.items() if id in stopped) / total


def _group_issues(timeline: Sequence[TimelineEntry]) -> list[_IssueGroup]:
    """Group the issues of all attempts by cause and similar words, most frequent first."""
    found: list[_IssueGroup] = []
    for entry in timeline:
        for issue in entry.issues or ("No issue was named.",):
            words = _words(issue)
            same = (one for one in found if one.cause == entry.cause and _alike(one.words, words))
            if (group := next(same, None)) is None:
                group = _IssueGroup(cause=entry.cause, words=words, message=issue)
                found.append(group)
            if entry.attempt not in group.attempts:
                group.attempts.append(entry.attempt)
    return sorted(found, key=lambda group: -len(group.attempts))


def _alike(one: frozenset[str], other: frozenset[str]) -> bool:
    """True for messages with similar words (Jaccard); two messages without words are alike."""
    union = one | other
    return not union or len(one & other) / len(union) >= _SIMILAR


_VARIABLE = re.compile(r"0x[0-9a-f]+|\b[0-9a-f]{12,}\b|\d+")


def _words(issue: str) -> frozenset[str]:
    """Return the words of a message without numbers, addresses and hashes."""
    return frozenset(re.findall(r"\w+", _VARIABLE.sub(" ", issue.casefold())))


def _describe_group(group: _IssueGroup) -> str:
    message = " ".join(group.message.split())
    if len(message) > MAX_WORDS:
        message = f"{message[:MAX_WORDS]} […]"
    attempts = ", ".join(str(number) for number in group.attempts)
    noun = "attempt" if len(group.attempts) == 1 else "attempts"
    return f"{group.cause} ({noun} {attempts}): {message}"


def _recommendations(
    cause: Cause, timeline: Sequence[TimelineEntry], tripped: Sequence[str]
) -> tuple[str, ...]:
    """Return the advice for the final cause, then for each other cause of the attempts."""
    causes = dict.fromkeys([cause.value, *(entry.cause for entry in timeline)])
    advice = [RECOMMENDATIONS[Cause(name)] for name in causes if name in Cause.__members__.values()]
    if tripped:
        advice.append(
            f"A limit was reached ({tripped[-1]}): raise `Estimated Tool Calls` or the time limit, or split the task."
        )
    scores = [entry.score for entry in timeline if entry.score is not None]
    if len(scores) > 1 and scores[-1] > scores[0]:
        advice.append("The score was rising: more attempts may suffice (`Max Retries`).")
    return tuple(dict.fromkeys(advice))


def _next_actions(
    frees: Mapping[str, int], reports: Mapping[str, QCFailureReport]
) -> tuple[str, ...]:
    """Return one action a failed task, those that block most first, and the next step."""
    actions: list[str] = []
    for id in sorted(frees, key=lambda one: -frees[one]):
        report = reports.get(id)
        advice = (
            report.recommendations[0] if report and report.recommendations else "Read its report."
        )
        freed = f" This frees {frees[id]} blocked task(s)." if frees[id] else ""
        actions.append(f"{id}: {advice}{freed}")
    actions.append(
        "Correct the plan and run it again with `--from` this run: unchanged completed tasks are reused."
    )
    return tuple(actions)


def _lesson(task: Task, report: QCFailureReport) -> str:
    why = report.root_causes[0] if report.root_causes else report.cause
    tries = len(report.timeline)
    return f"{task.id} ({task.title}) ended {report.cause} after {tries} attempt(s). Mostly: {why}"
