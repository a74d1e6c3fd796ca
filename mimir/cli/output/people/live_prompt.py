"""Open question under the board of a running run; its answer is typed there."""

import asyncio
import contextlib
from collections.abc import AsyncGenerator, Sequence
from typing import TYPE_CHECKING

from mimir.cli.console import clean_line
from mimir.cli.layout import columns_of, wrap
from mimir.cli.live.follow import POLL_SECONDS
from mimir.cli.live.keyboard import TypedLine, capture_keys, is_in_foreground
from mimir.cli.live.views import LiveOutput, TerminalOutput
from mimir.cli.output.people.inbox_page import question_lines
from mimir.cli.output.people.question_prompt import Shape, field_prompt
from mimir.cli.session import CommandSession
from mimir.domain.json_value import as_object, as_objects
from mimir.domain.question import read_form
from mimir.errors import MimirError, UsageError

if TYPE_CHECKING:
    from mimir.orchestrator.api import Mimir
    from mimir.orchestrator.questions.answering import GivenAnswer


_LEAST_ROOM = 20
"""Columns for the answer after its prompt; with fewer it has a line of its own."""


class LivePrompt:
    """Asks the questions of a run while its other tasks continue."""

    def __init__(self, session: CommandSession, mimir: "Mimir", live: TerminalOutput) -> None:
        self._session = session
        self._mimir = mimir
        self._live = live
        self._later = set[str]()
        self._typed = TypedLine()
        self._finished = list[str]()
        self._lines: Sequence[str] = ()

    async def follow(self) -> None:
        """Show one open question after another, until this is cancelled."""
        while True:
            waiting = [one for one in self._live.asking if one not in self._later]
            if waiting and is_in_foreground():
                await self._show(waiting[0])
            else:
                await asyncio.sleep(POLL_SECONDS)

    async def _show(self, id: str) -> None:
        status = await self._mimir.status(self._live.run)
        found = [one for one in as_objects(status.get("questions")) if one.get("id") == id]
        if not found or found[0].get("state") != "open":
            await asyncio.sleep(POLL_SECONDS)  # the board does not know its end yet
            return
        try:
            with capture_keys(self._session.console, self._take):
                await self._ask(found[0], id)
        finally:
            self._typed, self._finished, self._lines = TypedLine(), [], ()
            self._live.show_prompt(())

    def _take(self, keys: str) -> None:
        self._finished += self._typed.take(keys)
        self._draw()

    async def _ask(self, question: Shape, id: str) -> None:
        """Ask until an answer is taken; an empty line leaves the question open."""
        from mimir.orchestrator.questions.answering import GivenAnswer

        form = read_form(as_object(question.get("schema")))
        problem = ""
        while True:
            given: dict[str, str] = {}
            for one in form.fields:
                prompt = field_prompt(one, alone=len(form.fields) == 1)
                text = await self._read_line(question, id, problem, prompt)
                if text is None:  # it was answered elsewhere
                    return
                if not text:
                    self._later.add(id)
                    return
                given[one.name] = text
            try:
                await self._store(id, GivenAnswer(fields=given))
            except UsageError as error:
                problem = str(error)
                continue
            except MimirError:
                pass  # another terminal was faster: its answer counts
            self._later.add(id)  # the board learns of it with the next events
            return

    async def _store(self, id: str, given: "GivenAnswer") -> None:
        storing = asyncio.ensure_future(self._mimir.answer(id, given))
        try:
            await asyncio.shield(storing)
        except asyncio.CancelledError:
            # A pause of the run must not cut off an answer that is being stored.
            await asyncio.wait({storing})
            raise

    async def _read_line(self, question: Shape, id: str, problem: str, prompt: str) -> str | None:
        """Return the next typed line; None: the question is no longer open."""
        width = self._session.console.width
        lines = question_lines(question, width)[:-1]  # without the command that answers it
        notes = wrap(clean_line(problem), width) if problem else []
        self._lines = (*lines, *notes, prompt)
        self._draw()
        while not self._finished:
            if id not in self._live.asking:
                return None
            await asyncio.sleep(POLL_SECONDS)
        return self._finished.pop(0)

    def _draw(self) -> None:
        if not self._lines:
            return
        width = self._session.console.width
        *before, prompt = self._lines
        head = wrap(prompt, width)
        if columns_of(head[-1]) > width - _LEAST_ROOM:
            head.append("")
        # The end of a long answer is shown: there it grows.
        typed, room = self._typed.text, width - columns_of(head[-1]) - 2
        while columns_of(typed) > room:
            typed = typed[1:]
        self._live.show_prompt([*before, *head[:-1], f"{head[-1]} {typed}_".lstrip()])


@contextlib.asynccontextmanager
async def ask_beside(
    session: CommandSession, mimir: "Mimir", view: LiveOutput
) -> AsyncGenerator[None]:
    """Ask the open questions of a run under its board while the block runs."""
    if not isinstance(view, TerminalOutput) or not session.console.can_ask:
        yield
        return
    asking = asyncio.ensure_future(LivePrompt(session, mimir, view).follow())
    try:
        yield
    finally:
        asking.cancel()
        # An error here must not hide the result of the run: the inbox has the question.
        await asyncio.gather(asking, return_exceptions=True)
