"""`mimir inbox`: the questions that wait for the user."""

from typing import TYPE_CHECKING, Annotated

import typer

from mimir.cli.session import CommandSession

if TYPE_CHECKING:
    from collections.abc import Mapping

    from mimir.bootstrap.stored_project import ProjectPlace
    from mimir.store.protocol import ReadOps

All = Annotated[bool, typer.Option("--all", help="Closed questions too, with their answers.")]


def inbox(session: CommandSession, every: All = False) -> int:
    """List the questions of agents that wait for you.

    Each has the command that answers it.
    """
    from mimir.orchestrator.questions.inbox import load_inbox

    def look(reads: "ReadOps", place: "ProjectPlace") -> "Mapping[str, object]":
        return load_inbox(reads, place.id, every=every)

    found = session.look(look)
    if session.json:
        session.console.json(found)
        return 0
    from mimir.cli.output.people.inbox_page import inbox_page
    from mimir.domain.json_value import as_objects

    lines = inbox_page(as_objects(found.get("questions")), session.console.width)
    session.console.say("\n".join(lines))
    return 0
