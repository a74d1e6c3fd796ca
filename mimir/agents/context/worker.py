"""What a worker sees: its task, what it builds on, and all that is known of its earlier attempts. Pure.

Never: the PM's reasoning and research, other tasks, tasks that are not dependencies. The order is from what never changes to what the
attempt must do differently: models heed the beginning and the end most.
"""

from collections.abc import Sequence

from mimir.agents.context import deduplication, quotation
from mimir.agents.context.inputs import (
    ContextBudgets,
    DependencyView,
    EarlierAttempt,
    FileView,
    WorkerInput,
)
from mimir.agents.context.receipt import WithheldPiece
from mimir.agents.context.task_sections import (
    artifact,
    brief_header,
    file_piece,
    fixes,
    points,
    requirements,
)
from mimir.agents.context.token_budget import (
    ContextBuilder,
    ContextPart,
    ContextPiece,
    first_tokens,
)
from mimir.domain.plan import Task
from mimir.domain.usage import estimate

MOST_FILES = 10
MOST_DEPENDENCIES = 5
SUMMARY = 150
"""Tokens shown of a dependency's answer."""
MOST_LISTED = 30
"""Dependencies beyond the first five, and changed paths, that are named."""


def worker(given: WorkerInput, budgets: ContextBudgets, sheet: ContextBuilder) -> None:
    """Write a worker's context."""
    task = given.task
    sheet.say(
        "task", brief_header(task, given.attempt, given.attempts, f"Your role: {task.worker_role}")
    )
    sheet.say("prompt", f"## What to do\n\n{quotation.verbatim(task.prompt)}")
    sheet.say("criteria", requirements(task))
    sheet.say("limits", _limits(task, given.tools))
    sheet.add(_files(given.files, budgets.files))
    sheet.add(_dependencies(given.dependencies, budgets.dependencies))
    if given.earlier:
        _earlier(given, budgets.earlier, sheet)


def _limits(task: Task, tools: Sequence[str]) -> str:
    lines = ["## Tools and files", ""]
    lines.append(f"Your tools: {', '.join(tools) if tools else 'none'}.")
    if task.files:
        lines.append(f"Change only files that match: {', '.join(map(quotation.path, task.files))}.")
    if task.tool_execution.strip():
        lines += ["", "How to go about it:", "", task.tool_execution.strip()]
    return "\n".join(lines)


def _files(files: Sequence[FileView], budget: int) -> ContextPart:
    first: dict[str, FileView] = {}
    for file in files:
        first.setdefault(deduplication.path_key(file.path), file)
    _, merged = deduplication.paths(file.path for file in files)
    views = tuple(first.values())
    pieces = [file_piece(file, "important") for file in views[:MOST_FILES]]
    # The plan may list more than the limit (a warning): they are named, not shown.
    pieces += [_named(file) for file in views[MOST_FILES:]]
    return ContextPart(heading="## Context files", pieces=pieces, budget=budget, merged=merged)


def _named(file: FileView) -> ContextPiece:
    view = file_piece(file, "optional")
    return ContextPiece(
        name=view.name,
        title=view.title,
        content=view.content,
        importance="optional",
        reference=view.reference,
        most=0,
    )


def _dependencies(dependencies: Sequence[DependencyView], budget: int) -> ContextPart:
    views = tuple({d.id: d for d in dependencies}.values())
    first, more = views[:MOST_DEPENDENCIES], views[MOST_DEPENDENCIES:]
    heads = [(d.id, first_tokens(d.answer, SUMMARY)) for d in first]
    shown, merged = deduplication.summaries(heads)
    pieces = [_dependency(d, shown[d.id]) for d in first]
    if more:
        pieces.append(_also(more))
    if changes := deduplication.changed_by([(d.id, d.files) for d in views]):
        pieces.append(_changes(changes))
    before = "These tasks are completed; what they changed is in your workspace." if views else ""
    cut = tuple(
        WithheldPiece(
            name=f"dependency:{d.id}",
            why="budget",
            tokens=estimate(d.answer) - estimate(head),
            reference=artifact(d.artifact),
        )
        for d, (_, head) in zip(first, heads, strict=True)
        if head != d.answer
    )
    left = tuple(
        WithheldPiece(
            name=f"dependency:{d.id}",
            why="budget",
            tokens=estimate(d.answer),
            reference=artifact(d.artifact),
        )
        for d in more
    )
    return ContextPart(
        heading="## What this task builds on",
        before=before,
        pieces=pieces,
        budget=budget,
        merged=(*merged, *cut, *left),
    )


def _dependency(view: DependencyView, shown: str) -> ContextPiece:
    whole = shown == view.answer
    rest = f"; {artifact(view.artifact)} gives the whole" if view.artifact and not whole else ""
    return ContextPiece(
        name=f"dependency:{view.id}",
        title=f"{view.id}: {quotation.one_line(view.title)} — "
        + (f"its answer{rest}" if whole else f"the beginning of its answer{rest}"),
        content=shown,
        reference=artifact(view.artifact),
    )


def _also(more: Sequence[DependencyView]) -> ContextPiece:
    """Name further dependencies; of very many only the number is told, so that a brief does not grow with its fan-in."""
    lines = [
        f"- {d.id}: {quotation.one_line(d.title)[:80]}"
        + (f" — {artifact(d.artifact)}" if d.artifact else "")
        for d in more[:MOST_LISTED]
    ]
    if len(more) > MOST_LISTED:
        lines.append(f"- and {len(more) - MOST_LISTED} more")
    return ContextPiece(
        name="dependencies:more",
        title=f"Also completed ({len(more)}):",
        content="\n".join(lines),
        data=False,
        importance="optional",
    )


def _changes(changes: Sequence[tuple[str, str]]) -> ContextPiece:
    lines = [
        f"- {quotation.path(name)[:200]} ({tasks[:200]})" for name, tasks in changes[:MOST_LISTED]
    ]
    if len(changes) > MOST_LISTED:
        lines.append(f"- and {len(changes) - MOST_LISTED} more")
    return ContextPiece(
        name="dependencies:files",
        title="Files that they changed:",
        content="\n".join(lines),
        data=False,
        importance="optional",
    )


def _earlier(given: WorkerInput, budget: int, sheet: ContextBuilder) -> None:
    """Write everything known of the attempts before; what must be done stands last."""
    last = given.earlier[-1]
    sheet.add(
        ContextPart(
            heading="## Earlier attempts",
            before="\n".join(_course(one) for one in given.earlier),
            pieces=[*_left_behind(last), *_outputs(last)],
            budget=budget,
        )
    )
    said = [(f"attempt {one.number}", issue) for one in given.earlier for issue in one.issues]
    issues, merged = deduplication.messages(said, "issue")
    sheet.add(
        ContextPart(
            heading="## Issues",
            pieces=[
                ContextPiece(
                    name=f"issue:{n}",
                    content=f"- ({', '.join(issue.where)}) {issue.line}",
                    importance="critical",
                    data=False,
                )
                for n, issue in enumerate(issues, start=1)
            ],
            budget=0,
            merged=merged,
            between="\n",
        )
    )
    if given.required_fixes:
        sheet.say("required fixes", fixes(given.required_fixes, "Do every one of these:"))


def _course(one: EarlierAttempt) -> str:
    score = "not scored" if one.score is None else f"score {points(one.score)}"
    tripped = f"; its tools were ended: {quotation.one_line(one.tripped)}" if one.tripped else ""
    note = f"; {quotation.one_line(one.note)}" if one.note else ""
    return f"- Attempt {one.number}: {score}, tried again because of {one.reason}{tripped}{note}"


def _left_behind(last: EarlierAttempt) -> list[ContextPiece]:
    pieces: list[ContextPiece] = []
    if last.answer:
        pieces.append(
            ContextPiece(
                name=f"answer:{last.number}",
                title=f"Closing answer of attempt {last.number}",
                content=last.answer,
                importance="optional",
                reference=artifact(last.artifact),
                most=3_000,
            )
        )
    if last.diff:
        pieces.append(
            ContextPiece(
                name=f"diff:{last.number}",
                title=f"What attempt {last.number} changed (it is in your workspace)",
                content=last.diff,
                most=6_000,
            )
        )
    return pieces


def _outputs(last: EarlierAttempt) -> list[ContextPiece]:
    return [
        ContextPiece(
            name=f"check:{check.id}",
            title=f"Check {check.id} of attempt {last.number}: {quotation.one_line(check.command)} — {check.outcome}",
            content=check.output,
            keep="tail",
        )
        for check in last.checks
    ]
