"""`mimir ledger` and `mimir handoff`: the state of a run as a file, and its edits."""

from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from mimir.cli.session import DECLINED, CommandSession
from mimir.errors import UsageError

if TYPE_CHECKING:
    from mimir.bootstrap.stored_project import StoredProject
    from mimir.orchestrator.patterns.ledger import LedgerEdits

OneRun = Annotated[
    str, typer.Option("--run", metavar="RUN", help="Run id or its beginning; default: the latest.")
]
Output = Annotated[
    str, typer.Option("--output", metavar="FILE", help="Write to a file instead of the screen.")
]
Sync = Annotated[bool, typer.Option("--sync", help="Store your edits of .mimir/LEDGER.md.")]
Yes = Annotated[bool, typer.Option("--yes", "-y", help="Store the edits without confirmation.")]
LedgerFile = Annotated[Path, typer.Argument(metavar="FILE", help="A LEDGER.md.")]
Words = Annotated[str, typer.Argument(metavar="TEXT", help="For the next plan; - reads input.")]


def ledger(
    session: CommandSession,
    run: OneRun = "",
    output: Output = "",
    sync: Sync = False,
    yes: Yes = False,
) -> int:
    """Print the ledger of a run, or store your edits of it.

    A running run writes its ledger to .mimir/LEDGER.md. New and removed bullets under Learnings
    and text under Handoff wait there until --sync stores them. Other edits have no effect.
    """

    async def print_or_store(opened: "StoredProject") -> int:
        if sync:
            return await _synchronize(session, opened, run, yes=yes)
        from mimir.orchestrator.patterns.ledger import render

        found = await opened.read_ledger(run or None)
        text = render(found)
        if output and not session.json:
            (session.project / output).write_text(text, encoding="utf-8")
            session.console.note(f"written: {output}")
            return 0
        return session.show(asdict(found), text.rstrip("\n"))

    return session.use_store(print_or_store)


async def _synchronize(
    session: CommandSession, opened: "StoredProject", run: str, *, yes: bool
) -> int:
    from mimir.orchestrator.patterns import ledger_file, ledger_state

    edits = ledger_file.read_edits(session.project)
    session.show(asdict(edits), *_describe(edits))
    if not edits.has_effect:
        session.console.note(f"{ledger_file.LEDGER} has no edit that --sync stores.")
        return 0
    if not yes:
        session.console.require_terminal(
            next_step="Store the edits without confirmation: mimir ledger --sync --yes"
        )
        if not await session.console.ask("Store these edits?"):
            return DECLINED
    # Only the edits that were shown: the user may have changed the file since then.
    await opened.store.write(lambda ops: ledger_state.synchronize(ops, opened.id, edits))
    ledger_file.forget_edits(session.project, await opened.read_ledger(run or None), edits)
    session.console.note("stored; the next plan and its workers find them in the memory")
    return 0


def _describe(edits: "LedgerEdits") -> list[str]:
    return [
        *(f"new note: {kind}: {text}" for kind, text in edits.added),
        *(f"rejected note: {one.text} ({one.id})" for one in edits.removed),
        *(f"hand-off: {text}" for text in edits.handoff),
        *(f"no effect: {line}" for line in edits.others),
    ]


def import_file(session: CommandSession, file: LedgerFile) -> int:
    """Make a plan and notes from a ledger whose store is lost.

    The plan has the open tasks with title and role. Their prompts, criteria and checks are lost.
    """
    try:
        text = file.read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError) as error:
        raise UsageError(
            f"{file} cannot be read: {error}", next_step="Give the path of a LEDGER.md."
        ) from None
    loaded = session.load()

    async def job() -> tuple[str, int, int]:
        async with session.open(loaded, create=True) as mimir:
            return await mimir.import_ledger(text)

    path, tasks, notes = session.run(job())
    shape = {"plan": path, "tasks": tasks, "notes": notes}
    session.show(shape, f"plan: {path or 'none'} ({tasks} open tasks)", f"notes: {notes}")
    if path and not session.json:
        lost = "Prompts, criteria and checks of the tasks are lost: write them again."
        session.console.note(lost)
        session.console.note(f"next: mimir check {path}")
    return 0


def handoff(session: CommandSession, words: Words) -> int:
    """Write a hand-off for the next plan: a note that its PM is given first."""
    from mimir.cli import arguments

    text = arguments.read_request([words], session.project)

    async def store(opened: "StoredProject") -> str:
        from mimir.orchestrator.delegation.handoffs import add_handoff

        return await opened.store.write(lambda ops: add_handoff(ops, opened.id, text))

    note = {"note": session.use_store(store)}
    return session.show(note, "stored: the next plan is given it first")
