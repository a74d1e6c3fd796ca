"""Questions of a paused run, asked on the terminal of the command that executes it."""

from collections.abc import Mapping
from typing import TYPE_CHECKING

from mimir.cli.console import clean_line
from mimir.cli.output.people.inbox_page import is_approval, question_lines
from mimir.cli.session import CommandSession
from mimir.domain.json_value import as_object, as_objects, as_text
from mimir.domain.question import FormField, read_form
from mimir.domain.run import INPUT
from mimir.errors import MimirError, UsageError

if TYPE_CHECKING:
    from mimir.orchestrator.api import Mimir
    from mimir.orchestrator.questions.answering import GivenAnswer

Shape = Mapping[str, object]


async def ask_open_questions(session: CommandSession, mimir: "Mimir", run: str) -> bool:
    """Ask each question that a run paused for; return whether one was answered."""
    status = await mimir.status(run)
    # A run that another reason paused stays so, whatever was asked in it.
    if status.get("reason") != INPUT:
        return False
    answered = False
    for one in as_objects(status.get("questions")):
        if one.get("state") == "open" and one.get("blocking") is True:
            answered |= await _ask(session, mimir, one)
    return answered


async def _ask(session: CommandSession, mimir: "Mimir", question: Shape) -> bool:
    """Ask one question until its answer is taken; an empty line leaves it open."""
    for line in ("", *question_lines(question, session.console.width)):
        session.console.note(line)
    while True:
        given = await (
            _ask_decision(session) if is_approval(question) else _ask_form(session, question)
        )
        if given is None:
            session.console.note("It stays open: mimir inbox")
            return False
        try:
            await mimir.answer(as_text(question.get("id")), given)
        except UsageError as error:
            session.console.note(f"not taken: {error}")
        except MimirError as error:
            # Another terminal was faster: its answer counts.
            session.console.note(str(error))
            return True
        else:
            return True


async def _ask_decision(session: CommandSession) -> "GivenAnswer | None":
    """Ask for an approval; None: later."""
    from mimir.orchestrator.questions.answering import GivenAnswer

    text = await _ask_field(session, "Your decision (yes, or no and the reason; empty: later):")
    return GivenAnswer(text=text) if text else None


async def _ask_form(session: CommandSession, question: Shape) -> "GivenAnswer | None":
    """Ask for each field of a question; None: later."""
    from mimir.orchestrator.questions.answering import GivenAnswer

    form = read_form(as_object(question.get("schema")))
    given: dict[str, str] = {}
    for one in form.fields:
        text = await _ask_field(session, field_prompt(one, alone=len(form.fields) == 1))
        # Every field needs a value, so the first empty one ends the form.
        if not text:
            return None
        given[one.name] = text
    return GivenAnswer(fields=given)


def field_prompt(one: FormField, *, alone: bool) -> str:
    """Return the line that asks for one field; `alone`: the question has no other."""
    name = "Your answer" if alone else clean_line(one.title or one.name)
    return f"{name} ({one.describe()}; empty: later):"


async def _ask_field(session: CommandSession, prompt: str) -> str:
    try:
        return await session.console.ask_line(prompt)
    except UsageError:  # the input has ended
        return ""
