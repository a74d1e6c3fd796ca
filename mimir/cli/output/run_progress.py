"""Execution of a run on the terminal: the live view, the result, the next step."""

import asyncio
from collections import Counter
from collections.abc import Coroutine, Mapping
from contextlib import AbstractContextManager, nullcontext
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, get_args

from mimir.cli.arguments import display_path
from mimir.cli.live import board as boards
from mimir.cli.live.board import RunBoard
from mimir.cli.live.cells import ASKING, WORDS
from mimir.cli.live.follow import watch
from mimir.cli.live.views import (
    JsonOutput,
    LineOutput,
    LiveOutput,
    TerminalOutput,
    can_draw,
    redraw_while,
)
from mimir.cli.output.people.live_prompt import ask_beside
from mimir.cli.output.people.question_prompt import ask_open_questions
from mimir.cli.output.tables import CRITERIA
from mimir.cli.session import CommandSession
from mimir.domain.json_value import as_member, as_object, as_objects, as_text
from mimir.domain.quoted_text import count_noun
from mimir.domain.run import Apply, RunBudget, RunResult
from mimir.domain.task_states import ANSWERED, RunStatus
from mimir.errors import Paused

if TYPE_CHECKING:
    from mimir.orchestrator.api import Mimir
    from mimir.settings.layers import LoadedSettings


async def run_and_show(
    session: CommandSession,
    mimir: "Mimir",
    loaded: "LoadedSettings",
    run: str,
    *,
    limits: RunBudget,
    apply: Apply | None,
    resumed: bool,
) -> int:
    """Execute a run until it ends or pauses, and show it; return the exit code.

    Without the flag `apply`, the run keeps its mode. `resumed`: earlier events are not shown again. On a terminal, a run that pauses for
    answers asks for them, and continues.

    Raises:
        asyncio.CancelledError: Interrupted; the run is paused, and the next step was printed.
    """
    show = partial(_run_once, session, mimir, loaded, run, limits=limits, apply=apply)
    code = await show(resumed=resumed)
    while code == Paused.exit_code and session.console.can_ask and not session.json:
        if not await ask_open_questions(session, mimir, run):
            break
        code = await show(resumed=True)
    return code


async def _run_once(
    session: CommandSession,
    mimir: "Mimir",
    loaded: "LoadedSettings",
    run: str,
    *,
    limits: RunBudget,
    apply: Apply | None,
    resumed: bool,
) -> int:
    status = await mimir.status(run)
    past = await mimir.events(run, 0) if resumed else ()
    # A resumed run keeps the mode that it was started with, such as `--apply never`.
    pinned: Apply | None = as_member(status.get("apply"), get_args(Apply))
    work = mimir.drive(
        run,
        workers=loaded.settings.run.workers,
        apply=apply or pinned or loaded.settings.run.apply,
        limits=limits,
        resumed=resumed,
    )
    interrupted = (
        f"interrupted: run {run} is paused; no work is lost.",
        f"next: mimir resume {run}",
    )
    board = boards.fold(boards.begin(status), past)
    return await _show(session, mimir, loaded, board, work, interrupted)


async def join_and_show(
    session: CommandSession, mimir: "Mimir", loaded: "LoadedSettings", run: str
) -> int:
    """Serve a run with other processes, and show it; return the exit code."""
    # A process that joins late shows the run from its beginning.
    past = await mimir.events(run, 0)
    board = boards.fold(boards.begin(await mimir.status(run)), past)
    workers = loaded.settings.run.workers
    if not session.json:
        session.console.say(f"serving run {run}: {workers} tasks at once")
    interrupted = (
        f"interrupted: this process left run {run}; no work is lost.",
        f"next: mimir status {run}",
    )
    work = mimir.help(run, workers=workers)
    return await _show(session, mimir, loaded, board, work, interrupted)


async def _show(
    session: CommandSession,
    mimir: "Mimir",
    loaded: "LoadedSettings",
    board: RunBoard,
    work: Coroutine[object, object, RunResult],
    interrupted: tuple[str, str],
) -> int:
    view, drawing = _open_view(session, loaded, board)
    try:
        with drawing:
            async with ask_beside(session, mimir, view):
                events = partial(mimir.events, board.run)
                result = await watch(work, events, view, after=board.seq)
    except asyncio.CancelledError:
        for line in interrupted:
            session.console.note(line)
        raise
    if session.json:
        # The events have reported the run, so only a problem is explained.
        if result.outcome is not RunStatus.COMPLETED:
            for line in (outcome_line(result), *next_steps(result)[:1]):
                session.console.note(line)
        return result.exit_code
    store = store_place(mimir.store_uri, session.project)
    status = await mimir.status(result.run)
    paths = (*finished_part(result, status), *result_paths(result, store))
    for line in (outcome_line(result), count_line(status), *paths, *next_steps(result)):
        if line:
            session.console.say(line)
    return result.exit_code


def _open_view(
    session: CommandSession, loaded: "LoadedSettings", board: RunBoard
) -> tuple[LiveOutput, AbstractContextManager[None]]:
    console = session.console
    if session.json:
        return JsonOutput(console, is_read_only=board.is_read_only), nullcontext()
    # A log or a dumb terminal cannot move its cursor.
    if not can_draw(console):
        return LineOutput(console, is_read_only=board.is_read_only), nullcontext()
    live = TerminalOutput(console, board, workers=loaded.settings.run.workers)
    return live, redraw_while(console, live.frame, color=loaded.color, keep=True)


def outcome_line(result: RunResult) -> str:
    """Return the outcome and its reason."""
    reason = f": {result.message}" if result.message else ""
    return f"{result.state}{reason}"


def count_line(status: Mapping[str, object]) -> str:
    """Return the counts of tasks and criteria; empty for a run without tasks."""
    tasks = as_objects(status.get("tasks"))
    if not tasks:
        return ""
    states = Counter(
        ASKING if task.get("question") else as_text(task.get("status")) for task in tasks
    )
    done = ANSWERED if ANSWERED in states else "completed"
    parts = [f"{states.pop(done, 0)} of {len(tasks)} tasks {done}"]
    words = {status.value: word for status, word in WORDS.items()}
    parts += [f"{count} {words.get(state, state)}" for state, count in states.items() if count]
    sums: Counter[str] = Counter()
    for task in tasks:
        criteria = as_object(task.get("criteria"))
        sums.update({name: int(boards.number(criteria.get(name)) or 0) for name in CRITERIA})
    proof = ", ".join(f"{sums[name]} {name}" for name in CRITERIA if sums[name])
    return f"{', '.join(parts)}{f'; criteria: {proof}' if proof else ''}"


def finished_part(result: RunResult, status: Mapping[str, object]) -> list[str]:
    """Return the finished tasks of a run that is not complete, and how to apply them."""
    if not result.commit or result.outcome is RunStatus.COMPLETED:
        return []
    done = [
        as_text(task.get("id"))
        for task in as_objects(status.get("tasks"))
        if task.get("status") == "completed"
    ]
    more = f" and {len(done) - 20} more" if len(done) > 20 else ""
    place = f"commit {result.commit[:12]} on branch {result.branch}"
    return [
        f"finished: {', '.join(done[:20])}{more} ({place})",
        f"not applied: nothing; the finished tasks: mimir apply {result.run} --completed",
    ]


def result_paths(result: RunResult, store_uri: str) -> list[str]:
    """Return the places of the result, one a line."""
    count = len(result.applied)
    applied = f"{count_noun(count, 'file')} in your directory" if count else ""
    changed = ", ".join(result.conflicts[:5])
    reason = f"you changed these files during the run: {changed}" if changed else ""
    if result.shown:
        reason = f"git would no longer ignore existing files: {', '.join(result.shown[:5])}"
    parts = (
        ("plan", result.plan_path),
        ("report", result.report_path),
        ("store", store_uri),
        ("seal", result.seal),
        ("applied", applied),
        ("not applied", reason),
    )
    return [f"{name}: {value}" for name, value in parts if value]


def store_place(uri: str, project: Path) -> str:
    """Return the place of the store: a short path for a file, otherwise the URI."""
    scheme, _, path = uri.partition(":")
    return display_path(Path(path), project) if scheme == "sqlite" and path else uri


def next_steps(result: RunResult) -> list[str]:
    """Return one or two next steps."""
    run = result.run
    if result.next_step:
        return [f"next: {result.next_step}"]
    match result.outcome:
        case RunStatus.PAUSED | RunStatus.RUNNING:
            steps = [f"mimir resume {run}"]
        case RunStatus.COMPLETED:
            steps = [
                f"mimir report {run}",
                f"mimir {'apply' if result.conflicts else 'verify'} {run}",
            ]
        # Completed tasks of a failed run can be reused.
        case RunStatus.FAILED if result.plan_path:
            steps = [f"mimir report {run}", f"mimir execute {result.plan_path} --from {run}"]
        case _:
            steps = [f"mimir report {run}"]
    return [f"next: {step}" for step in steps]
