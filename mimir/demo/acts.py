"""The acts of the demo: a request becomes a plan, the plan becomes work, and the end is verified before the person's eyes."""

import asyncio
import shlex
import textwrap
from collections.abc import Sequence
from pathlib import Path

from mimir.bootstrap import app
from mimir.demo import setup
from mimir.demo.crash_demo import toll, work_until_killed
from mimir.demo.highlights import find_highlights, proof_line
from mimir.demo.narrator import Narrator, NarratorScreen
from mimir.domain.run import RunBudget, RunResult
from mimir.domain.task_states import RunStatus
from mimir.errors import Paused, PlanError
from mimir.orchestrator.api import Mimir

REQUEST = (
    "Release 0.2 of tally: count broken lines instead of failing on them, tell the 95th percentile "
    "and the busiest paths, print markdown tables. The tests of the release are written."
)


WIDTH = 100
"""Columns of what is said in sentences."""


async def perform(
    screen: NarratorScreen, *, crash: bool, directory: Path | None, store: str, record: Path | None
) -> int:
    """Play all acts; see `play.demo`."""
    project = await setup.build(directory)
    screen.say(f"project  {project}")
    _say(screen, "request  ", REQUEST)
    screen.say()
    opened = app.open(project, setup.settings(project, store), say=screen.say, record=record)
    async with opened as mimir:
        teller = Narrator(screen, mimir)
        run = await _plan(mimir, teller)
        killed_at = await work_until_killed(project, run, teller, store) if crash else 0
        try:
            ending = await teller.watch(run, setup.drive(mimir, run, resumed=crash))
        except (asyncio.CancelledError, Paused) as ended:
            if not isinstance(
                ended, Paused
            ):  # else its store is lost, which is told with the error
                screen.say("Interrupted; the run is paused, and no finished work is lost.")
            _list(screen, _go_on(project, run, mimir.store_uri if store else ""))
            raise
        await _look_back(screen, mimir, run, killed_at)
        return await _close(screen, mimir, project, ending, named=bool(store), record=record)


async def _plan(mimir: Mimir, teller: Narrator) -> str:
    """Have the request planned, and a run made of the plan; the run's id."""
    planned = await mimir.plan(REQUEST, ecko=True, output=None, model="")
    await teller.catch_up(planned.run)
    teller.say("", planned.path)
    if planned.exit_code:
        first = planned.findings[0]
        raise PlanError(
            f"The plan of the demo cannot be accepted: {first.message}", code=first.code
        )
    return await mimir.create_run(planned.plan, planned.path, only=(), limits=RunBudget())


async def _look_back(screen: NarratorScreen, mimir: Mimir, run: str, killed_at: int) -> None:
    """Say what went wrong on the way, and what a kill cost."""
    screen.say()
    screen.say("What went wrong on the way:")
    for line in find_highlights(await mimir.material(run)):
        _say(screen, f"  {line.who:<11}", line.said)
    if killed_at:
        cost = toll(await mimir.events(run, 0), killed_at)
        said = (
            f"{cost.before} calls of models and tools were answered before it, {cost.after} after it; "
            f"{cost.repeated or 'not one'} of them twice."
        )
        _say(screen, f"  {'the kill':<11}", said)


async def _close(
    screen: NarratorScreen,
    mimir: Mimir,
    project: Path,
    ending: RunResult,
    *,
    named: bool,
    record: Path | None,
) -> int:
    """Say what it came to, verify every seal, and name what to do next."""
    verified = await mimir.verify(ending.run, "")
    word = "every one is as it was sealed" if verified.ok else "BROKEN"
    screen.say()
    screen.say(f"{ending.outcome.value}: {proof_line(await mimir.material(ending.run))}")
    for name, value in (
        ("run", ending.run),
        ("plan", project / ending.plan_path),
        ("report", project / ending.report_path),
        ("store", mimir.store_uri),
        ("applied", ", ".join(ending.applied) or "nothing"),
        ("seal", ending.seal or "none"),
        ("verify", f"{verified.records} records recomputed: {word}"),
    ):
        screen.say(f"{name:<9}{value}")
    for problem in (ending.message, *verified.problems):
        if problem:
            screen.say(f"  {problem}")
    screen.say()
    paused = ending.outcome is RunStatus.PAUSED
    store = mimir.store_uri if named else ""
    _list(
        screen, _go_on(project, ending.run, store) if paused else _try_next(project, store, record)
    )
    return ending.exit_code or (0 if verified.ok else 1)


def _list(screen: NarratorScreen, lines: Sequence[str]) -> None:
    for line in lines:
        screen.say(line)


def _go_on(project: Path, run: str, store: str) -> tuple[str, ...]:
    # The play is no setting of the person's: without it a model would be asked for.
    where = ("--store", store) if store else ()
    again = shlex.join(("mimir", "resume", run, "--model", f"play:{setup.PLAY}", *where))
    return ("Go on with:", f"  cd {shlex.quote(str(project))}", f"  {again}")


def _try_next(project: Path, store: str, record: Path | None) -> tuple[str, ...]:
    where = (f"  export MIMIR_STORE={shlex.quote(store)}",) if store else ()
    replay = shlex.join(("mimir", "replay", *([str(record)] if record else [])))
    return (
        "Try next:",
        f"  cd {shlex.quote(str(project))}",
        *where,
        "  git diff                                   what was applied to the files",
        "  python3 -m tally access.log --top 3        what was released",
        "  mimir report                               what happened, with the proof",
        "  mimir verify                               recompute every seal",
        f"  {replay:<41}  decide it all again, from the record alone",
    )


def _say(screen: NarratorScreen, lead: str, text: str) -> None:
    """Say a sentence, broken into lines that stand below one another."""
    for line in textwrap.wrap(
        text, WIDTH, initial_indent=lead, subsequent_indent=" " * len(lead), break_on_hyphens=False
    ):
        screen.say(line)
