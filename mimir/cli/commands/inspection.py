"""`mimir status`, `report`, `verify`, `doctor`, and `mimir` alone: what looks and changes nothing."""

import gc
from typing import TYPE_CHECKING, Annotated

import typer

from mimir.cli.commands.run_commands import Run
from mimir.cli.session import CommandSession

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from mimir.cli.facade import Diagnosis, Mimir, Verified
    from mimir.settings import LoadedSettings

BROKEN = 1
"""Exit code of `verify` when a record is not what was sealed."""
OPTIONAL = ("model",)
"""What may be missing: without a model everything works on recordings."""
STORE = ".mimir/mimir.db"
"""Where runs are kept unless a setting says otherwise."""

Seal = Annotated[
    str, typer.Option("--seal", metavar="HASH", help="The seal that you wrote down, to compare.")
]

Workers = Annotated[
    bool, typer.Option("--workers", help="Show the processes that serve it, and what they hold.")
]


def status(session: CommandSession, run: Run = None, workers: Workers = False) -> int:
    """Say where a run stands.

    RUN is a run, or how its name begins; left out, the latest.
    """
    # Thousands of rows live until they are printed, and then the process ends: looking for garbage took a tenth of the time.
    gc.disable()
    try:
        return _status(session, run, workers=workers)
    finally:
        gc.enable()


def _status(session: CommandSession, run: str | None, *, workers: bool) -> int:
    loaded = session.load()

    async def job() -> "Mapping[str, object]":
        if not workers:
            return await session.glance(loaded, run)
        async with session.open(loaded, create=False) as mimir:
            id = await mimir.find_run(run)
            return {**await mimir.status(id), **await mimir.workers(id)}

    shape = session.run(job())
    if session.json:
        session.console.json({"schema": 1, **shape})
        return 0
    from mimir.cli.output import processes, tables

    # As one text: each is flushed, and a run may have thousands of tasks.
    console = session.console
    console.say("\n".join(tables.status(shape, console.glyphs, console.width)))
    for line in processes.lines(shape) if workers else ():
        session.console.say(line)
    return 0


def report(session: CommandSession, run: Run = None) -> int:
    """Print a run's report.

    RUN is a run, or how its name begins; left out, the latest.
    """
    loaded = session.load()

    async def job() -> "tuple[str, str, Mapping[str, object]]":
        async with session.open(loaded, create=False) as mimir:
            id = await mimir.find_run(run)
            if session.json:
                return "", "", await mimir.report_json(id)
            return (*await mimir.report(id), {})

    path, text, shape = session.run(job())
    if session.json:
        session.console.json({"schema": 1, **shape})
        return 0
    session.console.say(text.rstrip("\n"))
    session.console.note(f"report: {path}")
    return 0


def verify(session: CommandSession, run: Run = None, seal: Seal = "") -> int:
    """Recompute all seals of a run.

    RUN is a run, or how its name begins; left out, the latest. Every record must be the one that was sealed.
    """
    loaded = session.load()

    async def job() -> "Verified":
        async with session.open(loaded, create=False) as mimir:
            return await mimir.verify(await mimir.find_run(run), seal)

    found = session.run(job())
    if session.json:
        shape = {"schema": 1, "run": found.run, "ok": found.ok, "records": found.records}
        session.console.json({**shape, "seal": found.seal, "problems": list(found.problems)})
    else:
        from mimir.cli.output import tables

        for line in tables.audit_table(found):
            session.console.say(line)
    return 0 if found.ok else BROKEN


def doctor(session: CommandSession) -> int:
    """Look at what mimir needs on this machine.

    Exits with 69 if store, git or sandbox do not work; a model that is missing is told, and is no failure.
    """
    from mimir.cli.error_output import UNAVAILABLE

    loaded = session.load()

    async def job() -> "Sequence[Diagnosis]":
        async with session.open(loaded) as mimir:
            return await mimir.doctor()

    found = session.run(job())
    if session.json:
        checks = [{"what": d.what, "ok": d.ok, "detail": d.detail, "fix": d.fix} for d in found]
        session.console.json({"schema": 1, "ok": all(d.ok for d in found), "checks": checks})
    else:
        from mimir.cli.output import tables

        for line in tables.doctor_table(found, session.console.glyphs):
            session.console.say(line)
    return 0 if all(one.ok for one in found if one.what not in OPTIONAL) else UNAVAILABLE


def orientation(session: CommandSession) -> int:
    """Say where one is and what to try; asks no model, makes nothing."""
    from mimir.cli.arguments import plans_of

    loaded = session.load()
    run = _latest(session, loaded)
    plans = plans_of(session.project)
    newest = max(plans, key=lambda p: p.stat().st_mtime_ns).parent.name if plans else ""
    shape = {
        "schema": 1,
        "store": loaded.settings.store or STORE,
        "model": _model(loaded),
        "plan": newest,
        "run": run.get("run", ""),
        "outcome": run.get("outcome") or run.get("status") or "",
    }
    if session.json:
        session.console.json(shape)
        return 0
    has_store = bool(loaded.settings.store) or (session.project / STORE).exists()
    from mimir.cli.output import tables

    for line in tables.orientation(shape, has_store=has_store):
        session.console.say(line)
    return 0


def _model(loaded: "LoadedSettings") -> str:
    """Return which model would be asked; a server that was named serves what it has. Empty: none."""
    llm = loaded.settings.llm
    return llm.model or (f"the one at {llm.base_url}" if llm.base_url else "")


def _latest(session: CommandSession, loaded: "LoadedSettings") -> "Mapping[str, object]":
    """Return the newest run's status, or nothing where none can be seen."""
    from mimir.errors import MimirError

    if not loaded.settings.store and not (session.project / STORE).exists():
        return {}

    async def job() -> "Mapping[str, object]":
        async with session.open(loaded, create=False) as mimir:
            return await _newest(mimir)

    try:
        return session.run(job())
    except MimirError as error:
        session.console.note(f"warning: the store cannot be read: {error}")
        return {}


async def _newest(mimir: "Mimir") -> "Mapping[str, object]":
    from mimir.errors import UsageError

    try:
        return await mimir.status(await mimir.find_run(None))
    except UsageError:
        return {}
