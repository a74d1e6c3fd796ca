"""`mimir export` prints a run or a store; `mimir migrate` copies it to another store."""

from typing import TYPE_CHECKING, Annotated

import typer

from mimir.cli.arguments import nearest
from mimir.cli.commands.options import Run
from mimir.cli.session import CommandSession
from mimir.errors import UsageError

if TYPE_CHECKING:
    from mimir.orchestrator.api import Mimir
    from mimir.orchestrator.store_transfer import Form
    from mimir.store.transfer.store_copy import CopyResult

Format = Annotated[
    str, typer.Option("--format", metavar="FORM", help="Format: cypher, jsonl or mermaid.")
]
From = Annotated[str, typer.Argument(metavar="FROM", hidden=True)]
To = Annotated[str, typer.Argument(metavar="TO", hidden=True)]
Only = Annotated[str, typer.Option("--run", metavar="RUN", help="Copy only this run.")]


def export(session: CommandSession, run: Run = None, form: Format = "jsonl") -> int:
    """Print a run or the store as text.

    RUN is a run id or its beginning. Default: the whole store (mermaid: the latest run).
    """
    chosen = _find_form(form)
    lines: list[str] = []
    # `jsonl` is JSON already; other formats become one text of an object.
    is_boxed = session.json and chosen != "jsonl"

    async def write(mimir: "Mimir") -> str:
        is_whole = run is None and chosen != "mermaid"
        id = "" if is_whole else await mimir.find_run(run)
        await mimir.export(id, chosen, lines.append if is_boxed else session.console.print_exact)
        return id

    id = session.use_project(write)
    if is_boxed:
        session.show({"run": id, "format": chosen, "text": "\n".join(lines)})
    return 0


def migrate(session: CommandSession, source: From, target: To, run: Only = "") -> int:
    """Copy a store into another store.

    FROM and TO are files or neo4j://… URIs. The copy is read back and compared. FROM and the
    runs that TO already holds are never changed: an equal run is skipped, a different run with
    the same id is refused.
    """
    loaded = session.load()

    async def job() -> "CopyResult":
        from mimir.bootstrap import app

        return await app.migrate(
            session.project, loaded, source, target, run=run, say=session.console.note
        )

    result = session.run(job())
    shape = {"runs": list(result.runs), "known": list(result.known)}
    return session.show(
        {**shape, "nodes": result.nodes, "edges": result.edges},
        *(f"{id}: copied" for id in result.runs),
        *(f"{id}: already there, equal" for id in result.known),
        f"{result.nodes} nodes and {result.edges} edges, read back and equal.",
    )


def _find_form(name: str) -> "Form":
    """Return the export format of this name, or raise a `UsageError`."""
    from mimir.orchestrator.store_transfer import FORMS

    for form in FORMS:
        if form == name:
            return form
    near = nearest(name, FORMS)
    step = f"Did you mean {near}?" if near else f"Formats: {', '.join(FORMS)}."
    raise UsageError(f"There is no format {name[:80]!r}.", next_step=step)
