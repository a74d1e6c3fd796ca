"""`mimir export` and `mimir migrate`: a run or a whole store taken out, or put into another store."""

from typing import TYPE_CHECKING, Annotated, cast, get_args

import typer

from mimir.cli.commands.run_commands import Run
from mimir.cli.session import CommandSession

if TYPE_CHECKING:
    from mimir.cli.facade import Copied, Form

Format = Annotated[
    str, typer.Option("--format", metavar="FORM", help="cypher, jsonl or mermaid; default: jsonl.")
]
From = Annotated[str, typer.Argument(metavar="FROM", help="A store: a file or neo4j://…")]
To = Annotated[str, typer.Argument(metavar="TO", help="A store; a file is made.")]
Only = Annotated[str, typer.Option("--run", metavar="RUN", help="This run alone.")]


def export(session: CommandSession, run: Run = None, form: Format = "jsonl") -> int:
    """Print a run, or the whole store, as text.

    RUN is a run, or how its name begins; left out, everything that the store holds (mermaid: the latest run).
    """
    wanted = _form(form)
    loaded = session.load()
    kept: list[str] = []
    boxed = session.json and wanted != "jsonl"

    async def job() -> str:
        async with session.open(loaded, create=False) as mimir:
            whole = run is None and wanted != "mermaid"
            id = "" if whole else await mimir.find_run(run)
            await mimir.export(id, wanted, kept.append if boxed else session.console.say)
            return id

    id = session.run(job())
    if boxed:
        shape = {"schema": 1, "run": id, "format": wanted, "text": "\n".join(kept)}
        session.console.json(shape)
    return 0


def migrate(session: CommandSession, source: From, target: To, run: Only = "") -> int:
    """Copy a store into another one, either way; what came through is read back and compared.

    FROM stays as it is. What TO holds already is never changed: the same run is skipped, another one under its name is refused.
    """
    from mimir.cli.facade import app

    loaded = session.load()

    async def job() -> "Copied":
        return await app().migrate(
            session.project, loaded, source, target, run=run, say=session.console.note
        )

    done = session.run(job())
    if session.json:
        shape = {"schema": 1, "runs": list(done.runs), "known": list(done.known)}
        session.console.json({**shape, "nodes": done.nodes, "edges": done.edges})
        return 0
    for id in done.runs:
        session.console.say(f"{id}: copied")
    for id in done.known:
        session.console.say(f"{id}: was there already, equal")
    session.console.say(f"{done.nodes} nodes and {done.edges} edges, each read back and equal.")
    return 0


def _form(named: str) -> "Form":
    """Read the name of a form.

    Raises:
        UsageError: There is none of this name.
    """
    from mimir.cli.arguments import nearest
    from mimir.cli.facade import Form
    from mimir.errors import UsageError

    forms = get_args(Form)
    if named not in forms:
        near = nearest(named, forms)
        step = f"Did you mean {near}?" if near else f"There are: {', '.join(forms)}."
        raise UsageError(f"There is no format {named[:80]!r}.", next_step=step)
    return cast("Form", named)
