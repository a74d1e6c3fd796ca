"""Narrative of a report: the reporters' answers. A failed question only omits its text."""

from collections.abc import Awaitable, Callable, Iterable, Iterator, Mapping, Sequence
from functools import partial
from typing import Literal

from mimir.agents.context import quotation
from mimir.agents.preambles import templates
from mimir.agents.preambles.templates import OwnReader
from mimir.attempts.services import ModelChoice
from mimir.domain.agent import ROLES
from mimir.domain.message import Message, ModelRequest
from mimir.domain.quoted_text import storable
from mimir.domain.task_states import TaskStatus
from mimir.domain.usage import estimate
from mimir.errors import MimirError
from mimir.llm.protocol import ChatModel
from mimir.reporting.render import sections
from mimir.reporting.render.markdown_escape import escape_text, one_line
from mimir.reporting.render.narrative import Narrative
from mimir.reporting.summary.summary import RunSummary
from mimir.reporting.summary.task_lines import TaskLine

Role = Literal["qc_reporter", "pm_reporter"]
Ask = Callable[[str, int], Awaitable[ChatModel]]
"""(role, number) → a model with its own transcript; numbers count from 1 within a role."""

_TEMPLATES: Mapping[Role, templates.Name] = {
    "qc_reporter": "qc-failure",
    "pm_reporter": "pm-report",
}
MOST_REPORTS = 20
"""Failed tasks with a narrative, in the order of the plan; the computed report has all."""
MOST_TASKS = 100
"""Tasks that the PM reporter is given one by one."""
MOST_INPUT_TOKENS = 12_000
"""Facts that a reporter is given."""
MOST_CHARS = 12_000
"""Characters of a narrative that are stored."""


async def write_prose(
    summary: RunSummary,
    ask: Ask,
    read: OwnReader | None,
    *,
    choices: Mapping[str, ModelChoice] | None = None,
) -> Narrative:
    """Ask the reporters for the narrative: one text for each failed task, one for the run.

    Args:
        summary: Facts of the report; the reporters are given nothing else.
        ask: Gives the model of a role.
        read: Reader of the preamble files of the project. None: only the shipped ones.
        choices: Model of each role, from the settings pinned for the run. None: the defaults.
    """

    async def answer(role: Role, number: int, question: str) -> str:
        choice = (choices or {}).get(role, ModelChoice())
        return await _ask_reporter(role, question, partial(ask, role, number), read, choice)

    texts: dict[str, str] = {}
    for number, report in enumerate(summary.failures[:MOST_REPORTS], start=1):
        task = next(line for line in summary.tasks if line.id == report.task)
        facts = _task_facts(task, sections.failure(report))
        question = (
            f"Task: {one_line(report.task, 200)}\nAttempt 1 of 1\n\n"
            f"Write the prose of the failure report. The facts:\n\n{quotation.fence_block(facts)}\n"
        )
        words = await answer("qc_reporter", number, question)
        if words:  # a task without a text has no section
            texts[report.task] = words
    question = (
        "Task: plan\nAttempt 1 of 1\n\n"
        f"Write the prose of the execution report. The facts:\n\n{quotation.fence_block(_run_facts(summary))}\n"
    )
    run = await answer("pm_reporter", 1, question)
    return Narrative(run=run, tasks=texts)


async def _ask_reporter(
    role: Role,
    question: str,
    open_model: Callable[[], Awaitable[ChatModel]],
    read: OwnReader | None,
    choice: ModelChoice,
) -> str:
    """Return the text of a reporter; empty: the question failed."""
    try:
        system = templates.system_message(_TEMPLATES[role], read)
        model = await open_model()
        answer = await model.ask(
            ModelRequest(
                messages=(
                    Message(role="system", text=storable(system)),
                    Message(role="user", text=storable(question)),
                ),
                model=choice.model,
                max_tokens=choice.max_tokens or ROLES[role].answer_tokens,
                temperature=choice.temperature,
            )
        )
    except MimirError:
        return ""
    # Half an answer could end before its "but": it is none.
    is_finished = answer.finish == "stop" and not answer.message.calls
    return escape_text(answer.message.text).strip()[:MOST_CHARS] if is_finished else ""


def _task_facts(task: TaskLine, report: str) -> str:
    """Return the facts for a QC reporter: the computed report and the last judged criteria."""
    criteria = [
        f"- {c.id} ({c.state}, {c.basis}): {one_line(c.text)} {one_line(c.reason)}".rstrip()
        for c in task.criteria
    ]
    return _join_within_limit([f"Title: {one_line(task.title)}", report, "Criteria:", *criteria])


def _run_facts(summary: RunSummary) -> str:
    """Return the facts for the PM reporter."""
    # Without times and resumes: after a crash the same question is answered from the transcript.
    decided = [d for d in summary.decisions if d.task]
    totals, criteria = summary.totals, summary.totals.criteria
    return _join_within_limit(
        [
            f"Outcome: {summary.outcome}. {summary.because}",
            f"Request: {one_line(summary.request, 2000)}",
            f"Tasks: {totals.tasks}; criteria passed by execution {criteria.executed}, by judgement {criteria.judged}, "
            f"unverified {criteria.unverified}, failed {criteria.failed}.",
            *_list_tasks(summary.tasks),
            sections.failures(summary),
            *(sections.failure(report) for report in summary.failures),
            *(f"{d.task}, attempt {d.attempt}: {d.text}" for d in decided),
            *(f"Warning: {one_line(text)}" for text in summary.warnings),
        ]
    )


def _list_tasks(tasks: Sequence[TaskLine]) -> Iterator[str]:
    """Yield one line for each task; of too many, completed ones are left out first."""
    # Failed and blocked tasks matter most for the narrative.
    left_out: set[str] = set()
    if len(tasks) > MOST_TASKS:
        done = TaskStatus.COMPLETED.value
        last = sorted(tasks, key=lambda task: task.status == done)[MOST_TASKS:]  # stable
        left_out = {task.id for task in last}
    yield from (_task_line(task) for task in tasks if task.id not in left_out)
    if left_out:
        yield f"- and {len(left_out)} more tasks"


def _task_line(task: TaskLine) -> str:
    cause = f" ({task.cause})" if task.cause else ""
    files = ", ".join(one_line(path, 100) for path in task.files[:10])
    return (
        f"- {task.id} {one_line(task.title, 120)}: {task.status}{cause}, attempts {task.attempts}, "
        f"criteria {task.counts.as_json()}" + (f", files {files}" if files else "")
    )


def _join_within_limit(parts: Iterable[str]) -> str:
    """Join parts up to the limit of tokens; the others are counted."""
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
