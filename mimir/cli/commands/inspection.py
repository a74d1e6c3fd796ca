"""`mimir status`, `report`, `verify`, `doctor` and `mimir` alone: read-only commands."""

import gc
from typing import TYPE_CHECKING, Annotated

import typer

from mimir.cli.arguments import plans_of
from mimir.cli.commands.options import Run
from mimir.cli.session import DEFAULT_STORE, CommandSession
from mimir.errors import MimirError, UnavailableError, UsageError

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from mimir.bootstrap.doctor import DoctorFinding
    from mimir.bootstrap.stored_project import StoredProject
    from mimir.orchestrator.api import Mimir
    from mimir.reporting.audit.verification import AuditResult
    from mimir.settings.layers import LoadedSettings

BROKEN = 1
"""Exit code of `verify` if a record differs from its sealed values."""
OPTIONAL = ("model", "git identity")
"""Parts that `doctor` may miss: recordings need no model, only commits an identity."""

Seal = Annotated[str, typer.Option("--seal", metavar="HASH", help="Seal to compare with.")]
Explain = Annotated[
    str, typer.Option("--explain", metavar="TASK", help="Show the decision of each criterion.")
]
Ask = Annotated[bool, typer.Option("--ask", help="Ask the model for one word (16 tokens).")]
Paste = Annotated[bool, typer.Option("--paste", help="Print a block without secrets.")]
Full = Annotated[bool, typer.Option("--full", help="The whole report, also on a terminal.")]
OfSession = Annotated[
    str, typer.Option("--session", metavar="S", help="Session of invocations, s-….")
]
Workers = Annotated[bool, typer.Option("--workers", help="Also show the processes of the run.")]


def status(session: CommandSession, run: Run = None, workers: Workers = False) -> int:
    """Show the state of a run.

    RUN is a run id or its beginning. Default: the latest run.
    """
    # A status has thousands of rows, and all of them are needed until the process ends.
    gc.disable()
    try:
        return _show_status(session, run, workers=workers)
    finally:
        gc.enable()


def metrics(session: CommandSession, of_session: OfSession = "") -> int:
    """Show the metrics of a session of invocations.

    The metrics of one run are in its report.
    """
    from mimir.bootstrap.delegation_limits import read_limits
    from mimir.cli.output.agent_pages import session_lines
    from mimir.orchestrator.sessions.shape import shape_session

    if not of_session:
        raise UsageError(
            "No session is named: use --session S.", next_step="List the runs: mimir runs --all"
        )
    limits = read_limits(session.load().settings)
    found = session.look(
        lambda reads, place: shape_session(reads, place.id, of_session, place.find_dead(), limits)
    )
    if not found["runs"] and not found["name"]:
        raise UsageError(
            f"There is no session {of_session[:80]!r}.",
            next_step="List the runs: mimir runs --all",
        )
    return session.show(found, *session_lines(found))


def _show_status(session: CommandSession, run: str | None, *, workers: bool) -> int:
    shape = _load_processes(session, run) if workers else _load_status(session, run)
    if session.json:
        return session.show(shape)
    from mimir.cli.output import processes, tables

    lines = tables.status(shape, session.console.glyphs, session.console.width)
    return session.show(shape, *lines, *(processes.lines(shape) if workers else ()))


def _load_status(session: CommandSession, run: str | None) -> "Mapping[str, object]":
    return session.look(lambda reads, place: place.read_status(reads, run))


def _load_processes(session: CommandSession, run: str | None) -> "Mapping[str, object]":
    async def load(mimir: "Mimir") -> "Mapping[str, object]":
        id = await mimir.find_run(run)
        return {**await mimir.status(id), **await mimir.workers(id)}

    # Only the list of processes needs the whole project.
    return session.use_project(load)


def report(session: CommandSession, run: Run = None, full: Full = False) -> int:
    """Print the report of a run.

    RUN is a run id or its beginning. Default: the latest run. On a terminal it is short and laid
    out; in a pipe it is the whole markdown.
    """
    is_short = session.console.is_terminal and not full

    async def load(opened: "StoredProject") -> "tuple[str, str, Mapping[str, object]]":
        id, files = await opened.find_run(run), opened.report_files()
        if session.json:
            return "", "", await files.read_json(id)
        return (*await files.write(id), await files.read_json(id) if is_short else {})

    path, text, shape = session.use_store(load)
    if session.json:
        session.console.json({"schema": 1, **shape})
    elif not session.console.is_terminal:
        session.console.say(text.rstrip("\n"))
        session.console.note(f"report: {path}")
    else:
        from mimir.cli.output import report_pages

        glyphs, width = session.console.glyphs, session.console.width
        short = report_pages.short(shape, glyphs, width, path) if is_short else []
        session.console.page("\n".join(short or report_pages.lay_out(text, width)))
    return 0


def verify(session: CommandSession, run: Run = None, seal: Seal = "", explain: Explain = "") -> int:
    """Recompute every seal of a run.

    RUN is a run id or its beginning. Default: the latest run. Exits with 1 if a record differs
    from its sealed values.
    """
    from mimir.cli.output import tables

    async def check(mimir: "Mimir") -> "tuple[AuditResult, Sequence[str]]":
        id = await mimir.find_run(run)
        lines = await mimir.explain(id, explain) if explain else ()
        return await mimir.verify(id, seal), lines

    result, explained = session.use_project(check)
    shape = {
        "run": result.run,
        "ok": result.ok,
        "records": result.records,
        "seal": result.seal,
        "record": result.record,
        "problems": list(result.problems),
        **({"explained": list(explained)} if explain else {}),
    }
    session.show(shape, *explained, *([""] if explained else []), *tables.audit_table(result))
    return 0 if result.ok else BROKEN


def doctor(session: CommandSession, ask: Ask = False, paste: Paste = False) -> int:
    """Check the requirements of mimir on this machine.

    It creates nothing. Exits with 69 if the store, git, the disk or the sandbox does not work. A
    missing model is reported but is not a failure.
    """
    from mimir.bootstrap import doctor as machine

    loaded = session.load()

    async def job() -> "Sequence[DoctorFinding]":
        with session.show_wait("Looking at this machine", loaded):
            found = await machine.examine(session.project, loaded, ask=ask)
        return machine.redact_findings(found, loaded) if paste else found

    from mimir.cli.output import tables

    found = session.run(job())
    checks = [{"what": d.subject, "ok": d.ok, "detail": d.detail, "fix": d.fix} for d in found]
    lines = tables.doctor_table(found, session.console.glyphs, session.console.width)
    shape = {"ok": all(d.ok for d in found), "checks": checks}
    session.show(shape, *(["```", *lines, "```"] if paste else lines))
    is_ready = all(one.ok for one in found if one.subject not in OPTIONAL)
    return 0 if is_ready else UnavailableError.exit_code


def orientation(session: CommandSession) -> int:
    """Show store, model, newest plan, latest run and a next step; create nothing."""
    loaded = session.load()
    llm = loaded.settings.llm
    run = _latest_run(session, loaded)
    plans = plans_of(session.project)
    shape = {
        "store": loaded.settings.store or DEFAULT_STORE,
        # An endpoint without a model name serves its own model.
        "model": llm.model or (f"the one at {llm.base_url}" if llm.base_url else ""),
        "plan": max(plans, key=lambda p: p.stat().st_mtime_ns).parent.name if plans else "",
        "run": run.get("run", ""),
        "outcome": run.get("outcome") or run.get("status") or "",
    }
    handoff = ""
    if shape["outcome"] == "paused":
        id = str(shape["run"])
        handoff = session.look(lambda reads, place: place.read_handoff(reads, id))
    from mimir.cli.output import tables

    has_store, width = session.has_store(loaded), session.console.width
    lines = tables.orientation(shape, width, has_store=has_store, handoff=handoff)
    return session.show(shape, *lines)


def _latest_run(session: CommandSession, loaded: "LoadedSettings") -> "Mapping[str, object]":
    """Return the status of the latest run; empty if there is none or the store is unreadable."""
    if not session.has_store(loaded):
        return {}

    try:
        return _load_status(session, None)
    except UsageError:  # a store without a run is no error here
        return {}
    except MimirError as error:
        session.console.note(f"warning: the store cannot be read: {error}")
        return {}
