"""Prose of the reporters: words for people beside the numbers. Whatever goes wrong, there is none, and nothing else changes."""

import json
from collections.abc import Awaitable, Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Literal, cast

from mimir.agents.context import quotation
from mimir.agents.preambles import templates
from mimir.attempts.services import ModelChoice
from mimir.domain.agent import ROLES
from mimir.domain.message import Message, ModelRequest
from mimir.domain.task_states import TaskStatus
from mimir.domain.usage import estimate
from mimir.errors import MimirError
from mimir.llm.protocol import ChatModel
from mimir.reporting.render import sections
from mimir.reporting.render.markdown_escape import escape_text, one_line
from mimir.reporting.summary.summary import RunSummary
from mimir.reporting.summary.task_lines import TaskLine

Role = Literal["qc_reporter", "pm_reporter"]
Ask = Callable[[str, int], Awaitable[ChatModel]]
"""(role, number) → the model, bound to a lane of its own; numbers count from 1 within a role."""

_TEMPLATES: Mapping[Role, templates.Name] = {
    "qc_reporter": "qc-failure",
    "pm_reporter": "pm-report",
}
MOST_REPORTS = 20
"""Failed tasks that get prose, in the plan's order; the computed report has them all."""
MOST_TASKS = 100
"""Tasks that the PM reporter is told of one by one."""
MOST_INPUT_TOKENS = 12_000
"""Of the facts that a reporter is given."""
MOST_CHARS = 12_000
"""Characters of prose that are kept."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Narrative:
    """What the reporters wrote; untrusted."""

    run: str = ""
    """Of the PM reporter; empty: there is none."""
    tasks: Mapping[str, str] = field(default_factory=dict[str, str])
    """Failed task → words of its QC reporter."""

    def dump(self) -> str:
        """Return it as text to be kept."""
        return json.dumps({"run": self.run, "tasks": dict(self.tasks)}, sort_keys=True)

    @classmethod
    def load(cls, text: str) -> "Narrative":
        """Read what `dump` wrote; whatever cannot be read is no prose."""
        try:
            value = json.loads(text)
        except (ValueError, RecursionError):
            return NO_PROSE
        if not isinstance(value, dict):
            return NO_PROSE
        given = cast("Mapping[str, object]", value)
        run, tasks = given.get("run"), given.get("tasks")
        named = cast("Mapping[str, object]", tasks if isinstance(tasks, dict) else {})
        return cls(
            run=run if isinstance(run, str) else "",
            tasks={task: words for task, words in named.items() if isinstance(words, str)},
        )


NO_PROSE = Narrative()


async def write_prose(
    summary: RunSummary,
    ask: Ask,
    project: Path | None,
    *,
    choices: Mapping[str, ModelChoice] | None = None,
) -> Narrative:
    """Ask for the words of a report: one a failed task, one for the run.

    Args:
        summary: What they are to be about; all that the reporters are told.
        ask: Gives the model of a role.
        project: Where preambles of its own may lie.
        choices: How a role asks its model, from the settings pinned for the run. None: the defaults.
    """
    reporters = _ReporterAgents(ask, project, choices or {})
    told: dict[str, str] = {}
    for number, report in enumerate(summary.failures[:MOST_REPORTS], start=1):
        task = next(line for line in summary.tasks if line.id == report.task)
        facts = _of_task(task, sections.failure(report))
        question = (
            f"Task: {one_line(report.task, 200)}\nAttempt 1 of 1\n\n"
            f"Write the prose of the failure report. The facts:\n\n{quotation.fence_block(facts)}\n"
        )
        words = await reporters.words("qc_reporter", number, question)
        if words:
            told[report.task] = words
    question = (
        "Task: plan\nAttempt 1 of 1\n\n"
        f"Write the prose of the execution report. The facts:\n\n{quotation.fence_block(_of_run(summary))}\n"
    )
    run = await reporters.words("pm_reporter", 1, question)
    return Narrative(run=run, tasks=told)


class _ReporterAgents:
    """Who writes: one question, one answer, or none."""

    def __init__(self, ask: Ask, project: Path | None, choices: Mapping[str, ModelChoice]) -> None:
        self._ask = ask
        self._project = project
        self._choices = choices

    async def words(self, role: Role, number: int, question: str) -> str:
        """Return a reporter's words; empty: whatever went wrong."""
        choice = self._choices.get(role, ModelChoice())
        try:
            system = templates.system_message(_TEMPLATES[role], self._project)
            model = await self._ask(role, number)
            answer = await model.ask(
                ModelRequest(
                    messages=(
                        Message(role="system", text=quotation.printable(system)),
                        Message(role="user", text=quotation.printable(question)),
                    ),
                    model=choice.model,
                    max_tokens=choice.max_tokens or ROLES[role].answer_tokens,
                    temperature=choice.temperature,
                )
            )
        except MimirError:
            return ""
        # Half an answer could end before its "but": it is none.
        finished = answer.finish == "stop" and not answer.message.calls
        return escape_text(answer.message.text).strip()[:MOST_CHARS] if finished else ""


def _of_task(task: TaskLine, report: str) -> str:
    """Return what a QC reporter is told: the computed report, and the criteria as last judged."""
    criteria = [
        f"- {c.id} ({c.state}, {c.basis}): {one_line(c.text)} {one_line(c.reason)}".rstrip()
        for c in task.criteria
    ]
    return _bounded([f"Title: {one_line(task.title)}", report, "Criteria:", *criteria])


def _of_run(summary: RunSummary) -> str:
    """Return what the PM reporter is told.

    No time and nothing of how often the run was resumed is in it: after a crash the same question is answered from the record.
    """
    decided = [d for d in summary.decisions if d.task]
    totals, criteria = summary.totals, summary.totals.criteria
    return _bounded(
        [
            f"Outcome: {summary.outcome.value}. {summary.because}",
            f"Request: {one_line(summary.request, 2000)}",
            f"Tasks: {totals.tasks}; criteria passed by execution {criteria.executed}, by judgement {criteria.judged}, "
            f"unverified {criteria.unverified}, failed {criteria.failed}.",
            *_tasks(summary.tasks),
            sections.failures(summary),
            *(sections.failure(report) for report in summary.failures),
            *(f"{d.task}, attempt {d.attempt}: {d.text}" for d in decided),
            *(f"Warning: {one_line(text)}" for text in summary.warnings),
        ]
    )


def _tasks(tasks: Sequence[TaskLine]) -> Iterator[str]:
    """Yield a line a task; of more than there is room for, those that are completed give way to the others."""
    left_out: set[str] = set()
    if len(tasks) > MOST_TASKS:
        done = TaskStatus.COMPLETED.value
        last = sorted(tasks, key=lambda task: task.status == done)[MOST_TASKS:]  # stable
        left_out = {task.id for task in last}
    yield from (_task(task) for task in tasks if task.id not in left_out)
    if left_out:
        yield f"- and {len(left_out)} more tasks"


def _task(task: TaskLine) -> str:
    cause = f" ({task.cause})" if task.cause else ""
    files = ", ".join(one_line(path, 100) for path in task.files[:10])
    return (
        f"- {task.id} {one_line(task.title, 120)}: {task.status}{cause}, attempts {task.attempts}, "
        f"criteria {task.counts.as_json()}" + (f", files {files}" if files else "")
    )


def _bounded(parts: Iterable[str]) -> str:
    """Join parts as long as there is room; what does not fit is counted."""
    kept: list[str] = []
    room, left_out = MOST_INPUT_TOKENS, 0
    for part in parts:
        cost = estimate(part)
        if not part or cost > room:
            left_out += bool(part)
            continue
        kept.append(part)
        room -= cost
    if left_out:
        kept.append(f"({left_out} further parts are left out here.)")
    return "\n".join(kept)
