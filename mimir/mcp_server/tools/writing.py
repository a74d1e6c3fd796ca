"""Tools that write to the store: `answer` and `memory_add`."""

import json
from collections.abc import Mapping, Sequence
from functools import partial

from mimir.bootstrap.stored_project import ProjectPlace, StoredProject
from mimir.domain.json_value import as_objects, as_text, is_object
from mimir.domain.run import INPUT
from mimir.errors import MimirError, ToolError
from mimir.mcp_server.tools.run_reading import read_visible_inbox
from mimir.mcp_server.tools.run_results import list_open_questions
from mimir.mcp_server.tools.tool_values import IncomingCall, Principal, ToolAnswer
from mimir.orchestrator.questions.answering import (
    Answerer,
    AnswerResult,
    GivenAnswer,
    answer_question,
    conclude_answer,
)
from mimir.orchestrator.questions.inbox import find_question
from mimir.store.protocol import ReadOps, WriteOps
from mimir.tools.secrets import Redactor

ARGUMENTS = "arguments"
"""Transport of an answer that a model gave."""


async def answer(call: IncomingCall) -> ToolAnswer:
    """List open questions; with `answers`, answer those that ask for input."""
    answers = call.arguments.members("answers")
    if not answers:
        return await _list_questions(call)
    if "answer" not in call.principal.scopes:
        raise ToolError(
            "Answers as arguments need the scope answer.",
            next_step="The user answers: mimir inbox",
        )
    given = {id: _read_answer(id, value) for id, value in answers.items()}
    content = await close_questions(call, given, transport=ARGUMENTS)
    return ToolAnswer(content=content, is_error=not content["answered"])


async def close_questions(
    call: IncomingCall, given: Mapping[str, GivenAnswer], *, transport: str
) -> dict[str, object]:
    """Answer questions one after another, and continue the runs that waited for them."""
    redact = Redactor(call.project.load().secrets)

    async def work(opened: StoredProject) -> tuple[list[AnswerResult], list[dict[str, object]]]:
        done: list[AnswerResult] = []
        refused: list[dict[str, object]] = []
        answerer = Answerer(
            project_id=opened.id,
            by=call.principal.name,
            transport=transport,
            redact=redact,
            project=opened.directory,
            dead=opened.find_dead(),
        )
        for id, one in given.items():
            write = partial(
                _close,
                place=opened,
                id=id,
                given=one,
                answerer=answerer,
                call=call,
                by_model=transport == ARGUMENTS,
            )
            # Each has its own transaction: a refused answer must not undo the others.
            try:
                done.append(conclude_answer(await opened.store.write(write), answerer))
            except MimirError as error:
                refused.append({"id": id, "problem": str(error), "next": error.next_step or ""})
        return done, refused

    done, refused = await call.project.use_store(work)
    continued = await _continue_runs(call, done)
    return {
        "answered": [{"id": one.question, "run": one.run, "answer": one.answer} for one in done],
        "refused": refused,
        "continued": continued,
    }


def _close(
    ops: WriteOps,
    place: ProjectPlace,
    id: str,
    given: GivenAnswer,
    answerer: Answerer,
    call: IncomingCall,
    *,
    by_model: bool,
) -> AnswerResult:
    if call.principal.is_token:
        visible = read_visible_inbox(ops, place, call.principal, every=True)
        # The whole id: a beginning would name questions of other principals.
        if id not in [one.get("id") for one in as_objects(visible["questions"])]:
            raise ToolError(f"There is no question {id[:80]!r}.", next_step="Call inbox.")
    question = find_question(ops, answerer.project_id, id)
    # A model must not approve its own work.
    if by_model and question.kind != INPUT:
        raise ToolError(
            f"{question.id} is a decision of the user ({question.kind}): no argument decides it.",
            next_step="The user answers: mimir inbox",
        )
    return answer_question(ops, question.id, given, answerer)


async def _continue_runs(call: IncomingCall, done: Sequence[AnswerResult]) -> list[str]:
    """Start the runs again that paused for these answers and that no process serves."""
    waiting = list(dict.fromkeys(one.run for one in done if not one.is_served))

    def look(reads: ReadOps, place: ProjectPlace) -> list[str]:
        found = [place.read_status(reads, run) for run in waiting]
        return [
            as_text(one.get("run"))
            for one in found
            if one.get("status") == "paused" and one.get("reason") == INPUT
        ]

    runs = await call.project.read(look) if waiting else []
    for run in runs:
        call.project.start(["resume", run, "--json"], call.principal.name)
    return runs


async def _list_questions(call: IncomingCall) -> ToolAnswer:
    found = await call.project.read(
        lambda reads, place: read_visible_inbox(reads, place, call.principal, every=False)
    )
    questions = list_open_questions(as_objects(found["questions"]))
    wanted = call.arguments.texts("questions")
    if wanted:
        questions = [
            one for one in questions if any(as_text(one["id"]).startswith(id) for id in wanted)
        ]
    if not questions:
        return ToolAnswer(content={"open": [], "next": "No question is open."})
    count = len(questions)
    is_one = count == 1
    next_step = (
        f"{count} question{'' if is_one else 's'} {'is' if is_one else 'are'} open. "
        f"The user can answer {'it' if is_one else 'them'} with `mimir inbox`."
    )
    return ToolAnswer(content={"open": questions, "next": next_step}, forms=questions)


def _read_answer(id: str, value: object) -> GivenAnswer:
    """Return an answer: a text, or an object with a text for each field."""
    if isinstance(value, str):
        return GivenAnswer(text=value)
    if is_object(value):
        return GivenAnswer(
            fields={
                name: one if isinstance(one, str) else json.dumps(one)
                for name, one in value.items()
            }
        )
    raise ToolError(f"The answer to {id[:80]} must be a text.", next_step='Write {"q-…": "TEXT"}.')


async def memory_add(call: IncomingCall) -> ToolAnswer:
    """Store a note: a proposal, unless a token has the scope `answer`."""
    given, principal = call.arguments, call.principal
    text = given.text("text")
    if not text.strip():
        raise ToolError("The note is empty.", next_step="Write the text of the note.")
    redact = Redactor(call.project.load().secrets)

    async def work(opened: StoredProject) -> Mapping[str, object]:
        name = redact(given.text("name")) or redact(text)[:80]
        add = partial(_save_note, opened.id, principal, name, redact(text), given.texts("about"))
        return await opened.store.write(add)

    return ToolAnswer(content=await call.project.use_store(work))


def _save_note(
    project: str, principal: Principal, name: str, text: str, about: Sequence[str], ops: WriteOps
) -> Mapping[str, object]:
    from mimir.store.operations import memory

    if principal.is_token and "answer" in principal.scopes:
        id = memory.add(ops, project, name, text)
    else:
        id = memory.propose(ops, project, name, text, proposed_by=principal.name)
    # In one transaction with the note: an unknown node leaves no note behind.
    for node in about:
        memory.link(ops, project, id, node)
    # A note that the user has decided stays as it is.
    return {"id": id, "state": memory.find_state(ops, id)}
