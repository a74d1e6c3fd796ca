"""`mimir answer`: answer questions of agents, from any terminal."""

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from mimir.cli.session import CommandSession
from mimir.errors import MimirError, UsageError

if TYPE_CHECKING:
    from collections.abc import Sequence

    from mimir.orchestrator.questions.answering import AnswerResult, GivenAnswer

Words = Annotated[list[str] | None, typer.Argument(metavar="ID TEXT", hidden=True)]
Fields = Annotated[
    list[str] | None,
    typer.Option("--field", metavar="NAME=VALUE", help="One field of a question with several."),
]
File = Annotated[
    Path | None,
    typer.Option("--file", metavar="FILE", help="YAML file with an answer for each question id."),
]
Reason = Annotated[
    str, typer.Option("--reason", metavar="TEXT", help="Why you reject; it goes to the author.")
]
Edit = Annotated[
    Path | None,
    typer.Option("--edit", metavar="FILE", help="Approve this text in place of the file."),
]
Resume = Annotated[bool, typer.Option("--resume", help="Then continue the run here.")]


def answer(
    session: CommandSession,
    words: Words = None,
    fields: Fields = None,
    file: File = None,
    reason: Reason = "",
    edit: Edit = None,
    resume: Resume = False,
) -> int:
    """Answer a question of an agent, or approve or reject its work.

    ID is a question id or its beginning, or RUN/TASK. TEXT is the answer; of an approval yes, or
    no with the reason. The first answer counts. The conversation of the agent continues with it.
    """
    from mimir.orchestrator.questions.answering import GivenAnswer, read_subject

    if file is not None:
        if words or fields or reason or edit:
            raise UsageError("--file excludes an ID, --field, --reason and --edit.")
        from mimir.orchestrator.questions.answer_file import read_answers

        answers = read_answers(session.project / file, str(file))
        done, refused = _answer_all(session, answers, transport="file")
    else:
        if not words:
            raise UsageError(
                "No question is named.", next_step="See the open questions: mimir inbox"
            )
        # Words of an answer need no quotes.
        name, text = words[0], " ".join(words[1:]) if len(words) > 1 else None
        given = GivenAnswer(
            text=text,
            fields=_parse_fields(fields or []),
            reason=reason,
            edited=None if edit is None else read_subject(session.project, str(edit)),
        )
        done, refused = _answer_all(session, [(name, given)], transport="terminal")
        # The only answer is an error of the command.
        if refused:
            raise refused[0][1]
    _print(session, done, refused)
    for run in dict.fromkeys(one.run for one in done if resume and not one.is_served):
        from mimir.cli.commands import run_commands

        code = run_commands.resume(session, run)
        if code:
            return code
    return max((error.exit_code for _, error in refused), default=0)


def _parse_fields(pairs: "Sequence[str]") -> dict[str, str]:
    found: dict[str, str] = {}
    for pair in pairs:
        name, equals, value = pair.partition("=")
        if not equals or not name:
            raise UsageError(f"--field {pair[:80]!r} is not NAME=VALUE.")
        if name in found:
            raise UsageError(f"--field names {name[:60]!r} twice.")
        found[name] = value
    return found


def _answer_all(
    session: CommandSession,
    answers: "Sequence[tuple[str, GivenAnswer]]",
    *,
    transport: str,
) -> "tuple[list[AnswerResult], list[tuple[str, MimirError]]]":
    """Answer questions one after another, each in its own transaction."""
    from mimir.orchestrator.questions.answering import Answerer, give_answer
    from mimir.tools.secrets import Redactor

    loaded = session.load()

    async def job() -> "tuple[list[AnswerResult], list[tuple[str, MimirError]]]":
        done: list[AnswerResult] = []
        refused: list[tuple[str, MimirError]] = []
        async with session.open_store(loaded) as opened:
            answerer = Answerer(
                project_id=opened.id,
                by="user",
                transport=transport,
                redact=Redactor(loaded.secrets),
                project=session.project,
                dead=opened.find_dead(),
            )
            for name, given in answers:
                # Each has its own transaction: a refused answer must not undo the others.
                try:
                    done.append(await give_answer(opened.store, name, given, answerer))
                except MimirError as error:
                    refused.append((name, error))
        return done, refused

    return session.run(job())


def _print(
    session: CommandSession,
    done: "Sequence[AnswerResult]",
    refused: "Sequence[tuple[str, MimirError]]",
) -> None:
    if session.json:
        answered = [
            {"id": one.question, "run": one.run, "task": one.task, "answer": one.answer}
            for one in done
        ]
        not_taken = [
            {"id": name, "problem": str(error), "next": error.next_step} for name, error in refused
        ]
        shape = {"schema": 1, "answered": answered, "refused": not_taken}
        session.console.json(shape)
        return
    for one in done:
        session.console.say(f"answered: {one.question} ({one.run}/{one.task}): {one.answer}")
        if one.effect:
            session.console.note(one.effect)
    for _, error in refused:
        session.console.say(f"refused: {error}")
        if error.next_step:
            session.console.say(f"  {error.next_step}")
    for step in dict.fromkeys(one.next_step for one in done if one.next_step):
        session.console.say(f"next: {step}")
