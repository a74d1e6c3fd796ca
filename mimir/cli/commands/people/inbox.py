"""`mimir inbox`: the questions that wait for the user."""

from typing import TYPE_CHECKING, Annotated

import typer

from mimir.cli.session import CommandSession

if TYPE_CHECKING:
    from collections.abc import Mapping

    from mimir.bootstrap.stored_project import ProjectPlace
    from mimir.store.protocol import ReadOps

All = Annotated[bool, typer.Option("--all", help="Closed questions too, with their answers.")]
Watch = Annotated[
    bool, typer.Option("--watch", help="Stay, and print each new question and each end of one.")
]
Session = Annotated[
    str,
    typer.Option("--session", metavar="ID", help="Only questions of this session of a client."),
]
SECONDS = 1.0
"""Time between two looks of `--watch`."""


def inbox(
    session: CommandSession, every: All = False, watch: Watch = False, session_id: Session = ""
) -> int:
    """List the questions of agents that wait for you.

    Each has the command that answers it.
    """
    from mimir.orchestrator.questions.inbox import load_inbox

    if watch:
        return session.run(_watch(session, session_id))

    def look(reads: "ReadOps", place: "ProjectPlace") -> "Mapping[str, object]":
        return load_inbox(reads, place.id, every=every, session=session_id)

    found = session.look(look)
    if session.json:
        session.console.json(found)
        return 0
    from mimir.cli.output.people.inbox_page import inbox_page
    from mimir.cli.output.people.proposals_page import proposals_page
    from mimir.domain.json_value import as_objects

    lines = inbox_page(as_objects(found.get("questions")), session.console.width)
    # Of the lowest risk: they come last.
    if page := proposals_page(as_objects(found.get("proposals")), session.console.width):
        lines += ["", *page]
    session.console.say("\n".join(lines))
    return 0


async def _watch(session: CommandSession, session_id: str) -> int:
    """Print the inbox and then its changes, until a signal ends this."""
    import asyncio

    from mimir.cli.output.people.inbox_page import inbox_page, question_lines
    from mimir.domain.json_value import as_objects, as_text
    from mimir.orchestrator.questions.inbox import load_inbox

    before: dict[str, Mapping[str, object]] | None = None
    async with session.open_store(session.load()) as opened:
        while True:
            found = await opened.store.read(
                lambda reads: load_inbox(reads, opened.id, every=True, session=session_id),
                brief=True,
            )
            now = {as_text(one.get("id")): one for one in as_objects(found.get("questions"))}
            is_open = [one for one in now.values() if one.get("state") == "open"]
            changed = [
                one
                for id, one in now.items()
                if before is not None and before.get(id, {}).get("state") != one.get("state")
            ]
            if session.json and (before is None or changed):
                session.console.json({**found, "questions": is_open})
            elif before is None:
                session.console.say("\n".join(inbox_page(is_open, session.console.width)))
            else:
                for one in changed:
                    lines = question_lines(one, session.console.width)
                    session.console.say("\n".join(("", *lines)))
            before = now
            await asyncio.sleep(SECONDS)
