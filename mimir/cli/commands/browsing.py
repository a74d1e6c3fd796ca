"""`mimir runs`, `show`, `log`, `pause` and `clean`: look at stored runs and steer them.

They open the store alone and ask no model.
"""

from dataclasses import replace
from typing import TYPE_CHECKING, Annotated

import typer

from mimir.cli.commands.options import OneRun, Run
from mimir.cli.session import DECLINED, CommandSession
from mimir.errors import UsageError

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from mimir.bootstrap.stored_project import ProjectPlace, StoredProject
    from mimir.domain.event import Event
    from mimir.orchestrator.runs.subjects import Subject
    from mimir.store.protocol import ReadOps
    from mimir.store.records.run_records import RunRecord

POLL_SECONDS = 0.5
Kind = Annotated[
    str, typer.Option("--kind", metavar="KIND", help="Only plan, execute or agent runs.")
]
Agent = Annotated[
    str, typer.Option("--agent", metavar="AGENT", help="Only invocations of this agent.")
]
Since = Annotated[
    str, typer.Option("--since", metavar="D", help="Only from a date on, or of the last 12h or 7d.")
]
All = Annotated[bool, typer.Option("--all", help="All runs; default: the newest 20.")]
Name = Annotated[str, typer.Argument(metavar="RUN[/TASK[/ATTEMPT]]", hidden=True)]
Diff = Annotated[bool, typer.Option("--diff", help="Show the changes of files as a patch.")]
Calls = Annotated[bool, typer.Option("--calls", help="List the calls of models and tools.")]
Output = Annotated[
    str, typer.Option("--output", metavar="CHECK", help="Show the output of a check.")
]
Follow = Annotated[bool, typer.Option("--follow", help="Wait for further events.")]
Yes = Annotated[bool, typer.Option("--yes", "-y", help="Remove without confirmation.")]


def runs(
    session: CommandSession,
    every: All = False,
    kind: Kind = "",
    agent: Agent = "",
    since: Since = "",
) -> int:
    """List the runs of the project.

    Each line has the run's id, state, completed tasks, cost, age and title.
    """
    from mimir.cli import arguments
    from mimir.orchestrator.runs import listing

    if kind not in ("", "plan", "execute", "agent"):
        raise UsageError(
            f"{kind[:40]!r} is no kind of run.", next_step="Use --kind plan, execute or agent."
        )
    wanted = listing.RunFilter(
        kind=kind or ("agent" if agent else ""), agent=agent.replace("_", "-")
    )

    def look(reads: "ReadOps", place: "ProjectPlace") -> "Sequence[Mapping[str, object]]":
        limited = replace(wanted, since=arguments.start_of(since, place.now))
        return listing.list_runs(reads, place.id, place.find_dead(), place.now, limited)

    found = session.look(look)
    from mimir.cli.output import run_pages

    lines = run_pages.run_list(found, session.console.width, every=every)
    return session.show({"runs": list(found)}, *lines)


def show(
    session: CommandSession,
    name: Name = "",
    diff: Diff = False,
    calls: Calls = False,
    output: Output = "",
) -> int:
    """Show a run, one of its tasks, or one attempt.

    Ids may be shortened. Default: the latest run that worked on tasks.
    """
    from mimir.orchestrator.runs import subjects

    def read(
        reads: "ReadOps", place: "ProjectPlace"
    ) -> "tuple[Subject, dict[str, object], ProjectPlace, tuple[str, str]]":
        subject = subjects.find_subject(reads, place.id, name)
        shape = dict(_load_subject(reads, place, subject))
        if not (calls or output or diff):
            return subject, shape, place, ("", "")
        # Imported here: the state of a run needs none of it.
        from mimir.orchestrator.runs import browsing

        if calls:
            shape["calls_made"] = browsing.list_calls(reads, subject)
        if output:
            shape["outputs"] = browsing.list_outputs(reads, subject, output)
        return subject, shape, place, browsing.find_trees(reads, subject) if diff else ("", "")

    subject, shape, place, (before, after) = session.look(read)
    if diff:
        shape["diff"] = session.run(place.diff(before, after)) if before else ""
    if session.json:
        session.console.json({**shape, "schema": 1})
        return 0
    session.console.page("\n".join(_pages(session, subject, shape)))
    return 0


def _load_subject(
    reads: "ReadOps", place: "ProjectPlace", subject: "Subject"
) -> "Mapping[str, object]":
    if subject.task:
        from mimir.orchestrator.runs import browsing

        return browsing.show_task(reads, subject)
    from mimir.reporting.status import read_status

    return read_status(reads, subject.run, place.find_dead(), place.now)


def _pages(session: CommandSession, subject: "Subject", shape: "Mapping[str, object]") -> list[str]:
    from mimir.cli.output import run_pages, tables
    from mimir.domain.json_value import as_objects, as_text

    glyphs, width = session.console.glyphs, session.console.width
    lines: list[str] = []
    if "diff" in shape:
        lines += [as_text(shape["diff"]).rstrip("\n") or "No file was changed."]
    if "outputs" in shape:
        lines += run_pages.output_pages(as_objects(shape["outputs"]), width)
    if "calls_made" in shape:
        lines += run_pages.call_table(as_objects(shape["calls_made"]), width)
    if lines:
        return lines
    if subject.attempt:
        return run_pages.attempt_page(shape, glyphs, width)
    if subject.task:
        return run_pages.task_page(shape, glyphs, width)
    return tables.status(shape, glyphs, width, every=True)


def log(session: CommandSession, run: Run = None, follow: Follow = False) -> int:
    """Print the events of a run, oldest first.

    RUN is a run id or its beginning. Default: the latest run. With --follow it waits for further
    events until the run ends or pauses.
    """
    from mimir.cli.live.line_output import as_json, as_line
    from mimir.domain.clock import moment
    from mimir.domain.task_states import RUN_ENDED, RunStatus
    from mimir.orchestrator.runs import listing
    from mimir.store import run_reading
    from mimir.store.operations import runs as stored

    began: list[float] = []

    def print_all(events: "Sequence[Event]", *, is_read_only: bool) -> None:
        lines: list[str] = []
        for event in events:
            at = moment(event.at).timestamp()
            began[:] = began or [at]
            lines.append(as_line(event, at - began[0], is_read_only=is_read_only))
            if session.json:
                session.console.json(as_json(event, is_read_only=is_read_only))
        if lines and not session.json:
            session.console.say("\n".join(lines))

    def read(
        reads: "ReadOps", place: "ProjectPlace", named: str | None, after: int = 0
    ) -> "tuple[RunRecord, Sequence[Event], bool]":
        id = listing.find_id(reads, place.id, named, planning=True)
        record = run_reading.load_run(reads, id)
        status = record.shown_status(reads.now(), place.find_dead())
        has_stopped = status in RUN_ENDED or status is RunStatus.PAUSED
        return record, stored.events(reads, id, after=after), has_stopped

    if not follow:
        record, found, _ = session.look(lambda reads, place: read(reads, place, run))
        print_all(found, is_read_only=record.is_read_only)
        return 0

    async def follow_events(opened: "StoredProject") -> None:
        import asyncio

        named, seen = run, 0
        while True:
            record, found, has_stopped = await opened.store.read(
                lambda reads, named=named, after=seen: read(reads, opened, named, after)
            )
            print_all(found, is_read_only=record.is_read_only)
            named = record.id
            seen = found[-1].seq if found else seen
            if has_stopped:
                return
            await asyncio.sleep(POLL_SECONDS)

    session.use_store(follow_events)
    return 0


def pause(session: CommandSession, run: OneRun) -> int:
    """Pause a running run.

    RUN is a run id or its beginning. Its processes stop within seconds; no work is lost, and
    `mimir resume` continues it.
    """
    from mimir.scheduling import lifecycle

    async def pause_run(opened: "StoredProject") -> tuple[str, bool]:
        id, dead = await opened.find_run(run), opened.find_dead()
        return id, await opened.store.write(lambda ops: lifecycle.pause_from_outside(ops, id, dead))

    id, changed = session.use_store(pause_run)
    stop = "its processes stop within seconds" if changed else "it was paused already"
    shape = {"run": id, "outcome": "paused"}
    return session.show(shape, f"paused: {id}; {stop}.", f"next: mimir resume {id}")


def clean(session: CommandSession, yes: Yes = False) -> int:
    """Remove files that no run needs any more.

    It lists the removable files and asks. The store, the history, and all files that a running
    or paused run needs, stay.
    """
    from mimir.errors import BusyError
    from mimir.orchestrator.runs import cleanup
    from mimir.workspace.tree_removal import remove_tree

    async def clean_up(opened: "StoredProject") -> int:
        if opened.has_live_process():
            raise BusyError(
                "A process of mimir works in this directory, so nothing is removed.",
                next_step="Wait for its end, or pause its run: mimir pause RUN",
            )
        found = await opened.store.read(
            lambda reads: cleanup.find_removable(reads, opened.id, opened.work)
        )
        sizes = {path: cleanup.size_of(path) for path in found}
        names = {path: str(path.relative_to(opened.directory)) for path in found}
        if session.json:
            shape = [{"path": names[path], "bytes": sizes[path]} for path in found]
            session.console.json({"schema": 1, "removed": yes, "files": shape})
        else:
            for path in found:
                session.console.say(f"{sizes[path]:>12,} bytes  {names[path]}")
        if not found:
            session.console.note("There is nothing to remove.")
        elif not yes and not session.json:
            session.console.require_terminal(
                next_step="Remove without confirmation: mimir clean --yes"
            )
            count = f"{len(found)} files and directories, {sum(sizes.values()):,} bytes"
            if not await session.console.ask(f"Remove {count}?"):
                return DECLINED
        for path in found if yes or not session.json else ():
            remove_tree(path)
        return 0

    return session.use_store(clean_up)
