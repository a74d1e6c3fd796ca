"""Worker that is a program: one call, then its answer and the tree that it left."""

from mimir.agents.agent_loop import Conversation
from mimir.attempts.attempt_workspace import AttemptWorkspace
from mimir.attempts.program.journaled_program import ProgramOutcome, ProgramStart, denial_note
from mimir.attempts.services import AttemptServices, WorkerWorkspace
from mimir.domain.event import EventKind
from mimir.domain.json_value import as_object
from mimir.domain.message import Message
from mimir.domain.program import MAX_ARGUMENT_BYTES, PinnedProgram, fill_command
from mimir.domain.question import (
    WHOLE,
    FormField,
    NewQuestion,
    QuestionForm,
    QuestionLimits,
)
from mimir.domain.task_states import Cause
from mimir.domain.usage import TokenUsage
from mimir.errors import MimirError

ENGINE = "engine"
"""Role of the transcript in which mimir itself asks."""


class ProgramFailed(MimirError):  # noqa: N818  a state, not a fault of mimir
    """A program ended without success; its changes are kept."""

    def __init__(self, message: str, *, cause: Cause, answer: str = "") -> None:
        super().__init__(message)
        self.cause = cause
        self.answer = answer


async def work_by_program(
    services: AttemptServices,
    workspace: AttemptWorkspace,
    bench: WorkerWorkspace,
    program: PinnedProgram,
    *,
    interruptions: int,
) -> Conversation:
    """Run the program of a task and return its answer.

    `interruptions` counts its earlier starts without an end.

    Raises:
        ProgramFailed: It did not succeed.
        Waiting: It was interrupted, and the user must decide whether it starts again.
    """
    if interruptions:
        await _begin_again(services, program, interruptions)
    # The brief is that of any worker; where each part goes is decided by the preset.
    brief = services.start.brief
    prompt = "\n\n".join(one.text for one in brief if one.role == "system")
    task = "\n\n".join(one.text for one in brief if one.role != "system")
    argv, stdin = fill_command(program, prompt=prompt, task=task)
    if any(len(word.encode("utf-8", "replace")) > MAX_ARGUMENT_BYTES for word in argv):
        raise ProgramFailed(
            f"The task is too long for an argument of {program.title}.", cause=Cause.PROGRAM_ERROR
        )
    outcome = await services.tools.program(bench).run(
        ProgramStart(
            program=program,
            argv=argv,
            stdin=stdin,
            seconds=services.task.time_limit_minutes * 60,
            tree=services.start.tree,
        )
    )
    # A success with refused permissions is a success with a finding.
    if outcome.denials:
        workspace.note(denial_note(outcome.denials))
    if outcome.problem:
        raise ProgramFailed(
            f"{program.title}: {outcome.problem}", cause=_cause(outcome), answer=outcome.answer
        )
    return _conversation(services, outcome, program)


async def _begin_again(
    services: AttemptServices, program: PinnedProgram, interruptions: int
) -> None:
    """Note that an interrupted program is started again from the tree before it.

    Raises:
        ProgramFailed: The user does not want that.
        Waiting: By its definition the user decides, and has not answered yet.
    """
    if program.on_crash == "ask" and not await _ask_to_repeat(services, program, interruptions):
        raise ProgramFailed(
            f"{program.title} was interrupted, and the user did not let it start again (on_crash: ask).",
            cause=Cause.WORKER_DIED,
        )
    message = f"{program.title} was interrupted; it starts again from the tree before it."
    await services.journal.note(EventKind.WARNING, data={"message": message})


async def _ask_to_repeat(
    services: AttemptServices, program: PinnedProgram, interruptions: int
) -> bool:
    """Return whether the user lets an interrupted program start again."""
    transcript = await services.journal.open_transcript(ENGINE)
    question = NewQuestion(
        title=f"Start {program.title} again?",
        text=(
            f"{program.title} was interrupted while it worked on {services.task.id}. Its effects outside of its workspace are unknown. "
            "yes: it starts again from the tree before it, and costs again. no: the attempt fails."
        ),
        form=QuestionForm(fields=(FormField(name=WHOLE, kind="boolean"),)),
        default=None,
        is_blocking=True,
        limits=QuestionLimits(),
    )
    answer: object = None
    # Each interruption has its own question: the earlier ones are answered.
    for number in range(1, interruptions + 1):
        request = {"tool": "on_crash", "program": program.title, "number": number}
        outcome = await transcript.ask(request, question, title=question.title)
        answer = as_object(outcome.value.get("answer")).get(WHOLE)
    return answer is True


def _conversation(
    services: AttemptServices, outcome: ProgramOutcome, program: PinnedProgram
) -> Conversation:
    answer = Message(role="assistant", text=outcome.answer)
    return Conversation(
        messages=(*services.start.brief, answer),
        answer=answer,
        finish="stop",
        trip=None,
        usage=outcome.usage or TokenUsage(input_tokens=program.reserve_tokens),
        tool_calls=1,
        message_count=1,
        model=program.title,
    )


def _cause(outcome: ProgramOutcome) -> Cause:
    if outcome.stop == "timeout":
        return Cause.TIME
    return Cause.PROGRAM_ERROR if outcome.is_readable else Cause.INVALID_ANSWER
