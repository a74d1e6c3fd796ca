"""Context of a worker: its task, its dependencies, its earlier attempts. Pure.

It never holds the PM's reasoning and research, or tasks that are not dependencies. The constant parts come first, and last the changes that
the next attempt must make: models heed the beginning and the end most.
"""

from collections.abc import Sequence
from dataclasses import replace

from mimir.agents.context import deduplication, excerpts, quotation
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
from mimir.domain.invocation import NO_FILES, PinnedSkill
from mimir.domain.plan import Task
from mimir.domain.quoted_text import list_path
from mimir.domain.usage import estimate

MOST_FILES = 10
MOST_DEPENDENCIES = 5
# Tokens shown of a dependency's answer.
SUMMARY = 150
# Further dependencies, and changed paths, that are named.
MOST_LISTED = 30
MAX_DESCRIPTION = 400
"""Characters of the description of a skill: about a hundred tokens."""


def write_worker_context(
    given: WorkerInput, budgets: ContextBudgets, sheet: ContextBuilder
) -> None:
    """Write a worker's context."""
    task = given.task
    sheet.add_text(
        "task", brief_header(task, given.attempt, given.attempts, f"Your role: {task.worker_role}")
    )
    sheet.add_text("prompt", f"## Task\n\n{quotation.verbatim(task.prompt)}")
    sheet.add_text("criteria", requirements(task))
    sheet.add_text("limits", describe_limits(given))
    sheet.add(
        ContextPart(
            heading="## Context files",
            pieces=list_file_pieces(given),
            budget=budgets.files,
            merged=deduplication.merge_paths(file.path for file in given.files),
        )
    )
    if given.skills:
        pieces = [skill_piece(given.skills)]
        sheet.add(ContextPart(heading="## Skills", pieces=pieces, budget=budgets.related))
    sheet.add(_dependencies(given.dependencies, budgets.dependencies))
    if given.earlier:
        write_earlier(given, budgets.earlier, sheet)


def describe_limits(given: WorkerInput) -> str:
    """Return the section on tools, files and how to go about the task."""
    task, tools = given.task, given.tools
    lines = ["## Tools and files", ""]
    lines.append(f"Your tools: {', '.join(tools) if tools else 'none'}.")
    if given.tool_calls and tools:
        lines.append(
            f"{given.tool_calls} of {given.tool_calls} tool calls left. Failed calls count, too."
        )
    scope = _write_scope(task)
    if given.within and task.files not in ((NO_FILES,), given.within):
        scope += f" Of these, only: {', '.join(map(list_path, given.within))}."
    lines.append(" ".join((scope, *map("{}.".format, given.foreign_tests))))
    if task.tool_execution.strip():
        lines += ["", "Recommended steps:", "", task.tool_execution.strip()]
    return "\n".join(lines)


def _write_scope(task: Task) -> str:
    if task.files == (NO_FILES,):
        return "You may write no file."
    if task.files:
        return f"You may write: {', '.join(map(list_path, task.files))}."
    return "You may write any file except existing tests, and settings of test runners, linters and build tools."


def list_file_pieces(given: WorkerInput) -> tuple[ContextPiece, ...]:
    """Return the context files of a task, each once."""
    files, task = given.files, given.task
    first: dict[str, FileView] = {}
    for file in files:
        first.setdefault(deduplication.path_key(file.path), file)
    views = tuple(first.values())
    changed = excerpts.find_changed_lines(given.earlier[-1].diff if given.earlier else "")
    words = "\n".join((task.title, task.prompt, *(c.text for c in task.criteria)))

    def focus(file: FileView) -> tuple[int, ...]:
        named = excerpts.find_named_lines(file.text or "", words)
        return tuple(dict.fromkeys((*changed.get(file.path, ()), *named)))

    pieces = [file_piece(file, "important", focus) for file in views[:MOST_FILES]]
    # The plan may list more than the limit (a warning): they are named, not shown.
    pieces += [replace(file_piece(file, "optional"), most=0) for file in views[MOST_FILES:]]
    return tuple(pieces)


def skill_piece(skills: Sequence[PinnedSkill]) -> ContextPiece:
    """Return the names and descriptions of skills, which come from files."""
    lines = (f"{one.name}: {one.description[:MAX_DESCRIPTION]}" for one in skills)
    return ContextPiece(
        name="skills",
        title="Skills whose instructions `read_skill` gives:",
        content="\n".join(map(quotation.one_line, lines)),
    )


def _dependencies(dependencies: Sequence[DependencyView], budget: int) -> ContextPart:
    views = tuple({d.id: d for d in dependencies}.values())  # a plan may repeat one
    first, more = views[:MOST_DEPENDENCIES], views[MOST_DEPENDENCIES:]
    heads = [(d.id, first_tokens(d.answer, SUMMARY)) for d in first]
    shown, merged = deduplication.merge_summaries(heads)
    pieces = [_dependency(d, shown[d.id]) for d in first]
    if more:
        pieces.append(_further_dependencies(more))
    if changes := deduplication.tasks_by_path([(d.id, d.files) for d in views]):
        pieces.append(_changes(changes))
    before = "The changes of these tasks are in your workspace." if views else ""
    cut = [
        _withheld_answer(d, head)
        for d, (_, head) in zip(first, heads, strict=True)
        if head != d.answer
    ]
    return ContextPart(
        heading="## Completed dependencies",
        before=before,
        pieces=pieces,
        budget=budget,
        merged=(*merged, *cut, *(_withheld_answer(d, "") for d in more)),
    )


def _withheld_answer(view: DependencyView, shown: str) -> WithheldPiece:
    return WithheldPiece(
        name=f"dependency:{view.id}",
        why="budget",
        tokens=estimate(view.answer) - estimate(shown),
        reference=artifact(view.artifact),
    )


def _dependency(view: DependencyView, shown: str) -> ContextPiece:
    whole = shown == view.answer
    part = "its answer" if whole else "the beginning of its answer"
    rest = f"; {artifact(view.artifact)} gives the whole" if view.artifact and not whole else ""
    return ContextPiece(
        name=f"dependency:{view.id}",
        title=f"{view.id}: {quotation.one_line(view.title)} — {part}{rest}",
        content=shown,
        reference=artifact(view.artifact),
    )


def _further_dependencies(more: Sequence[DependencyView]) -> ContextPiece:
    # Of very many only the number: a brief must not grow with the task's fan-in.
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
    lines = [f"- {list_path(name)[:200]} ({tasks[:200]})" for name, tasks in changes[:MOST_LISTED]]
    if len(changes) > MOST_LISTED:
        lines.append(f"- and {len(changes) - MOST_LISTED} more")
    return ContextPiece(
        name="dependencies:files",
        title="Files that they changed:",
        content="\n".join(lines),
        data=False,
        importance="optional",
    )


def write_earlier(given: WorkerInput, budget: int, sheet: ContextBuilder) -> None:
    """Write the results of earlier attempts; causes and required fixes are never cut."""
    last = given.earlier[-1]
    outcomes = "\n".join(_outcome_line(one) for one in given.earlier)
    sheet.add(ContextPart(heading="## Earlier attempts", before=outcomes, pieces=[], budget=0))
    # Causes come first: issues, failed checks, then finished work.
    found = [(f"attempt {one.number}", issue) for one in given.earlier for issue in one.issues]
    issues, merged = deduplication.merge_messages(found)
    pieces = [
        ContextPiece(
            name=f"issue:{n}",
            content=f"- ({', '.join(issue.where)}) {issue.line}",
            importance="critical",
            data=False,
        )
        for n, issue in enumerate(issues, start=1)
    ]
    # No budget: critical pieces are never cut.
    sheet.add(
        ContextPart(heading="## Issues", pieces=pieces, budget=0, merged=merged, between="\n")
    )
    sheet.add(
        ContextPart(
            heading="## State of the last attempt",
            pieces=[*_failed_outputs(last), *_earlier_work(last)],
            budget=budget,
        )
    )
    # Last, next to the answer: the attempt must do these differently.
    if given.required_fixes:
        sheet.add_text("required fixes", fixes(given.required_fixes, "Complete each of these:"))


def _outcome_line(one: EarlierAttempt) -> str:
    score = "not scored" if one.score is None else f"score {points(one.score)}"
    tripped = f"; its tools were ended: {quotation.one_line(one.tripped)}" if one.tripped else ""
    note = f"; {quotation.one_line(one.note)}" if one.note else ""
    return f"- Attempt {one.number}: {score}, tried again because of {one.reason}{tripped}{note}"


def _earlier_work(last: EarlierAttempt) -> list[ContextPiece]:
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
                title=f"Changes of attempt {last.number} (they are in your workspace)",
                content=last.diff,
                most=6_000,
            )
        )
    return pieces


def _failed_outputs(last: EarlierAttempt) -> list[ContextPiece]:
    return [
        ContextPiece(
            name=f"check:{check.id}",
            title=f"Check {check.id} of attempt {last.number}: {quotation.one_line(check.command)} — {check.outcome}",
            content=check.output,
            keep="tail",
        )
        for check in last.checks
    ]
