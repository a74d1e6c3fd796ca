"""Drives a run before the person's eyes, and says at the end what it came to, where everything is and what to do next."""

import asyncio
from collections import Counter
from collections.abc import Coroutine, Mapping
from contextlib import AbstractContextManager, nullcontext
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, cast, get_args

from mimir.cli.arguments import display_path
from mimir.cli.live import board as boards
from mimir.cli.live.board import RunBoard
from mimir.cli.live.follow import watch
from mimir.cli.live.views import (
    JsonOutput,
    LineOutput,
    LiveOutput,
    TerminalOutput,
    can_draw,
    redraw_while,
)
from mimir.cli.session import CommandSession
from mimir.domain.run import Apply, RunBudget, RunResult
from mimir.domain.task_states import RunStatus

if TYPE_CHECKING:
    from mimir.cli.facade import Mimir
    from mimir.settings import LoadedSettings


CRITERIA = ("executed", "judged", "unverified", "failed")
"""What a criterion may come to, in the order in which it is told."""


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
    """Serve a run to its end or to where it pauses, shown as the person's terminal allows.

    Args:
        session: Whose command it is.
        mimir: The open project.
        loaded: Its settings, with the command's flags.
        run: Id.
        limits: New totals of the run.
        apply: As the flag says; None: as the run was begun with, else as the settings say.
        resumed: True: it was begun before; what happened then is not told again.

    Returns:
        The exit code.

    Raises:
        asyncio.CancelledError: Interrupted; the run is paused, and that was said.
    """
    status = await mimir.status(run)
    past = await mimir.events(run, 0) if resumed else ()
    work = mimir.drive(
        run,
        workers=loaded.settings.run.workers,
        apply=apply or _pinned(status) or loaded.settings.run.apply,
        limits=limits,
        resumed=resumed,
    )
    left = (
        f"interrupted: run {run} is paused; no finished work is lost.",
        f"next: mimir resume {run}",
    )
    board = boards.fold(boards.begin(status), past)
    return await _watched(session, mimir, loaded, run, board, work, left)


async def join_and_show(
    session: CommandSession, mimir: "Mimir", loaded: "LoadedSettings", run: str
) -> int:
    """Serve a run beside others, shown in the same way; the exit code.

    Raises:
        asyncio.CancelledError: Interrupted; this process has left the run, and that was said.
    """
    past = await mimir.events(run, 0)
    board = boards.fold(boards.begin(await mimir.status(run)), past)
    if not session.json:
        session.console.say(f"helping run {run}: {loaded.settings.run.workers} tasks at once")
    work = mimir.help(run, workers=loaded.settings.run.workers)
    left = (
        f"interrupted: this process has left run {run}; no work is lost.",
        f"next: mimir status {run}",
    )
    return await _watched(session, mimir, loaded, run, board, work, left)


async def _watched(
    session: CommandSession,
    mimir: "Mimir",
    loaded: "LoadedSettings",
    run: str,
    board: RunBoard,
    work: Coroutine[object, object, RunResult],
    left: tuple[str, str],
) -> int:
    """Do the work before the person's eyes; `left` is said when it is interrupted."""
    view, picture = _view(session, loaded, board)
    try:
        with picture:
            ending = await watch(work, partial(mimir.events, run), view, after=board.seq)
    except asyncio.CancelledError:
        for line in left:
            session.console.note(line)
        raise
    await _tell(session, mimir, ending)
    return ending.exit_code


def _view(
    session: CommandSession, loaded: "LoadedSettings", board: RunBoard
) -> tuple[LiveOutput, AbstractContextManager[None]]:
    console = session.console
    if session.json:
        return JsonOutput(console), nullcontext()
    if not can_draw(console):
        return LineOutput(console), nullcontext()
    live = TerminalOutput(console, board)
    return live, redraw_while(console, live.frame, color=loaded.color, keep=True)


def _pinned(status: Mapping[str, object]) -> Apply | None:
    """Return how the run was begun: a resumed run must not bring into the person's files what it was told to leave out."""
    said = status.get("apply")
    return cast("Apply", said) if said in get_args(Apply) else None


async def _tell(session: CommandSession, mimir: "Mimir", ending: RunResult) -> None:
    """Say what it came to. For scripts, events have said it; only what is in the way is said beside them."""
    if session.json:
        if ending.outcome is not RunStatus.COMPLETED:
            for line in (outcome_line(ending), *next_steps(ending)[:1]):
                session.console.note(line)
        return
    status = await mimir.status(ending.run)
    for line in (
        outcome_line(ending),
        count_line(status),
        *result_paths(ending, store_place(mimir.store_uri, session.project)),
    ):
        if line:
            session.console.say(line)
    for line in next_steps(ending):
        session.console.say(line)


def outcome_line(ending: RunResult) -> str:
    """Return the outcome in a line."""
    why = f": {ending.message}" if ending.message else ""
    return f"{ending.outcome.value}{why}"


def count_line(status: Mapping[str, object]) -> str:
    """Return how many tasks and criteria ended how, in a line; nothing of a run without tasks."""
    tasks = boards.items(status.get("tasks"))
    if not tasks:
        return ""
    states = Counter(boards.text(task.get("status")) for task in tasks)
    parts = [f"{states.pop('completed', 0)} of {len(tasks)} tasks completed"]
    parts += [f"{count} {state}" for state, count in states.items() if count]
    sums: Counter[str] = Counter()
    for task in tasks:
        criteria = boards.members(task.get("criteria"))
        sums.update({name: int(boards.number(criteria.get(name)) or 0) for name in CRITERIA})
    proof = ", ".join(f"{sums[name]} {name}" for name in CRITERIA if sums[name])
    return f"{', '.join(parts)}{f'; criteria: {proof}' if proof else ''}"


def result_paths(ending: RunResult, store_uri: str) -> list[str]:
    """Return where everything is, a line each."""
    applied = f"{len(ending.applied)} files in your directory" if ending.applied else ""
    changed = ", ".join(ending.conflicts[:5])
    parts = (
        ("plan", ending.plan_path),
        ("report", ending.report_path),
        ("store", store_uri),
        ("seal", ending.seal),
        ("applied", applied),
        ("not applied", f"you changed these meanwhile: {changed}" if changed else ""),
    )
    return [f"{name}: {value}" for name, value in parts if value]


def store_place(uri: str, project: Path) -> str:
    """Return where the store is: a file as its path, short; anything else as it is."""
    scheme, _, path = uri.partition(":")
    return display_path(Path(path), project) if scheme == "sqlite" and path else uri


def next_steps(ending: RunResult) -> list[str]:
    """Return one or two things to do next."""
    run = ending.run
    if ending.next_step:
        return [f"next: {ending.next_step}"]
    match ending.outcome:
        case RunStatus.PAUSED | RunStatus.RUNNING:
            steps = [f"mimir resume {run}"]
        case RunStatus.COMPLETED if ending.conflicts:
            steps = [f"mimir report {run}", f"mimir apply {run}"]
        case RunStatus.COMPLETED:
            steps = [f"mimir report {run}", f"mimir verify {run}"]
        case RunStatus.FAILED if ending.plan_path:
            steps = [f"mimir report {run}", f"mimir execute {ending.plan_path} --from {run}"]
        case _:
            steps = [f"mimir report {run}"]
    return [f"next: {step}" for step in steps]
