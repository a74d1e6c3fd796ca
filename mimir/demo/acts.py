"""Acts of the demo: a request is planned and executed, and its result is verified."""

import asyncio
import shlex
from collections.abc import Sequence
from pathlib import Path

from mimir.bootstrap import app
from mimir.demo import setup
from mimir.demo.crash_demo import count_cost, work_until_killed
from mimir.demo.highlights import find_highlights, proof_line
from mimir.demo.narrator import Narrator
from mimir.demo.screen import WIDEST, NarratorScreen, say_wrapped
from mimir.domain.run import RunBudget, RunResult
from mimir.domain.task_states import RunStatus
from mimir.errors import Paused, PlanError
from mimir.orchestrator.api import Mimir

REQUEST = (
    "Release 0.2 of tally: count broken lines instead of failing on them, show the 95th percentile "
    "and the busiest paths, print markdown tables. The tests of the release are written."
)


async def run_acts(
    screen: NarratorScreen, *, crash: bool, directory: Path | None, store: str, record: Path | None
) -> int:
    """Run all acts and return the exit code; see `entry.demo`."""
    project = await setup.build(directory)
    screen.say(f"project  {project}")
    say_wrapped(screen, "request  ", REQUEST)
    screen.say("")
    opened = app.open(project, setup.settings(project, store), say=screen.say, record=record)
    async with opened as mimir:
        narrator = Narrator(screen, mimir)
        run = await _plan(mimir, narrator)
        killed_at = await work_until_killed(project, run, narrator, store) if crash else 0
        named_store = mimir.store_uri if store else ""
        try:
            result = await narrator.watch(run, setup.drive(mimir, run, resumed=crash))
        except asyncio.CancelledError:
            screen.say("Interrupted; the run is paused, and no finished work is lost.")
            _say_resume(screen, project, run, named_store)
            raise
        # The error itself is printed by the command line.
        except Paused:
            _say_resume(screen, project, run, named_store)
            raise
        await _say_highlights(screen, mimir, run, killed_at)
        is_valid = await _say_result(screen, mimir, project, result)
        if result.outcome is RunStatus.PAUSED:
            _say_resume(screen, project, result.run, named_store)
        else:
            _say_next_commands(screen, project, named_store, record)
        return result.exit_code or (0 if is_valid else 1)


async def _plan(mimir: Mimir, narrator: Narrator) -> str:
    """Plan the request and create the run; return its id."""
    planned = await mimir.plan(REQUEST, ecko=True, output=None, model="")
    await narrator.catch_up(planned.run)
    # Only a changed model script can cause this.
    if planned.exit_code:
        first = planned.findings[0]
        raise PlanError(f"The plan of the demo is invalid: {first.message}", code=first.code)
    return await mimir.create_run(planned.plan, planned.path, only=(), limits=RunBudget())


async def _say_highlights(screen: NarratorScreen, mimir: Mimir, run: str, killed_at: int) -> None:
    screen.say("")
    screen.say("Problems that mimir caught:")
    for line in find_highlights(await mimir.material(run)):
        say_wrapped(screen, f"  {line.subject:<11}", line.text)
    if killed_at:
        cost = count_cost(await mimir.events(run, 0), killed_at)
        text = (
            f"{cost.before} model and tool calls were answered before it and {cost.after} after it; "
            f"{cost.repeated or 'none'} of them twice."
        )
        say_wrapped(screen, f"  {'the kill':<11}", text)


async def _say_result(
    screen: NarratorScreen, mimir: Mimir, project: Path, result: RunResult
) -> bool:
    """Print the result and verify it; return whether every seal is valid."""
    verified = await mimir.verify(result.run, "")
    seals = "every seal is valid" if verified.ok else "NOT VALID"
    screen.say("")
    proof = proof_line(await mimir.material(result.run))
    say_wrapped(screen, f"{result.outcome.value}: ", proof)
    for name, value in (
        ("run", result.run),
        ("plan", result.plan_path),
        ("report", result.report_path),
        ("store", mimir.store_uri),
        ("seal", result.seal or "none"),
    ):
        # Unbroken lines can be copied.
        screen.say(f"{name:<9}{value}")
    say_wrapped(screen, "applied  ", ", ".join(result.applied) or "nothing")
    say_wrapped(screen, "verify   ", f"{verified.records} records recomputed: {seals}")
    for problem in (result.message, *verified.problems):
        say_wrapped(screen, "  ", problem)
    screen.say("")
    return verified.ok


def _say_resume(screen: NarratorScreen, project: Path, run: str, store: str) -> None:
    where = ("--store", store) if store else ()
    # The scripted model is not in the user's settings, so the command must name it.
    resume = shlex.join(("mimir", "resume", run, "--model", f"play:{setup.PLAY}", *where))
    _say_lines(screen, ("Resume it:", f"  cd {shlex.quote(str(project))}", f"  {resume}"))


def _say_next_commands(
    screen: NarratorScreen, project: Path, store: str, record: Path | None
) -> None:
    where = (f"  export MIMIR_STORE={shlex.quote(store)}",) if store else ()
    replay = shlex.join(("mimir", "replay", *([str(record)] if record else [])))
    commands = (
        ("git diff", "the changes in your files"),
        ("python3 -m tally access.log --top 3", "the released program"),
        ("mimir report", "the report with its proof"),
        ("mimir verify", "recompute every seal"),
        (replay, "decide the run again, from its record alone"),
    )
    _say_lines(screen, ("Next commands:", f"  cd {shlex.quote(str(project))}", *where))
    is_wide = screen.width() >= WIDEST
    for command, purpose in commands:
        # A narrow terminal would break a line with both.
        lines = (
            (f"  {command:<41}  {purpose}",) if is_wide else (f"  {command}", f"      {purpose}")
        )
        _say_lines(screen, lines)


def _say_lines(screen: NarratorScreen, lines: Sequence[str]) -> None:
    for line in lines:
        screen.say(line)
