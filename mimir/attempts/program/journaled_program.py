"""Program with a transcript: it runs once, and its recorded outcome is served."""

from collections.abc import Awaitable, Callable, Sequence
from pathlib import Path

from mimir.attempts.program.readers import MAX_BYTES, ProgramAnswer, read_output
from mimir.domain.call_outcome import CallOutcome, Transcript
from mimir.domain.json_value import JsonObject, as_text, as_texts, as_whole_number
from mimir.domain.program import PROGRAM_TOOL, PinnedProgram
from mimir.domain.usage import TokenUsage
from mimir.domain.value_class import value_class

MAX_ANSWER = 50_000
"""Characters of the answer that are recorded."""
SHOWN_ERRORS = 2_000
"""Characters of the standard error in an issue."""


@value_class
class ProgramStart:
    """One start of a program."""

    program: PinnedProgram
    argv: tuple[str, ...]
    stdin: str
    seconds: float
    tree: str
    """Tree of the workspace before the call."""


@value_class
class ProgramExit:
    """End of a program."""

    exit_code: int | None
    """None: it was ended, or could not be started."""
    stop: str = ""
    """Reason of its end: `timeout`, `output`, `memory` or `processes`. Empty: it ended itself."""
    stdout: bytes = b""
    """Beginning, at most one byte more than is read."""
    shown: str = ""
    """Standard output as text, with a mark for a long middle."""
    stderr: str = ""
    is_missing: bool = False
    version: str = ""


@value_class
class ProgramOutcome:
    """Recorded outcome of a program."""

    answer: str
    problem: str
    """Empty: it succeeded."""
    stop: str
    is_readable: bool
    exit_code: int | None
    denials: tuple[str, ...] = ()
    output: str = ""
    usage: TokenUsage | None = None
    cost: str = ""
    """As the program reports it. Empty: not reported."""
    version: str = ""
    tree: str = ""


LaunchProgram = Callable[[ProgramStart, Path, str], Awaitable[ProgramExit]]
"""Runs a program in a workspace with a commit that git shows; no process is left."""
ServeProgram = Callable[[JsonObject], Awaitable[CallOutcome]]
"""Returns the recorded outcome of a request."""


@value_class
class JournaledProgram:
    """Program of one attempt: one effectful call of its transcript."""

    launch: LaunchProgram
    transcript: Transcript
    stand: Callable[[bool], Awaitable[Path]]
    """Returns the workspace; True: it may be changed."""
    snapshot: Callable[[], Awaitable[str]]
    base_commit: str
    redact: Callable[[str], str]
    serve: ServeProgram | None = None
    """Returns the outcome of a recording instead of a start. None: the program is started."""

    async def run(self, call: ProgramStart) -> ProgramOutcome:
        """Start the program, or return the recorded outcome."""

        async def work() -> CallOutcome:
            if self.serve is not None:
                return await self.serve(request)
            # The workspace is filled from the recorded tree, also after a crash.
            where = await self.stand(True)
            ended = await self.launch(call, where, self.base_commit)
            tree = await self.snapshot()
            outcome = judge_exit(call.program, ended)
            return CallOutcome(value=self._value(outcome), tree=tree, usage=outcome.usage)

        # The name of the program, not its place: a replay on another machine asks the same.
        request = {
            "tool": PROGRAM_TOOL,
            "program": call.program.title,
            "argv": [self.redact(word) for word in call.argv],
            "stdin": self.redact(call.stdin),
            "tree": call.tree,
        }
        found = await self.transcript.call(
            "tool",
            request,
            request,
            work,
            effectful=True,
            reserve=call.program.reserve_tokens,
            title=call.program.title,
        )
        return _read_outcome(found)

    def _value(self, outcome: ProgramOutcome) -> JsonObject:
        return {
            "text": self.redact(outcome.answer)[:MAX_ANSWER],
            "is_error": bool(outcome.problem),
            "exit_code": outcome.exit_code,
            "denied": False,
            "problem": self.redact(outcome.problem),
            "stop": outcome.stop,
            "is_readable": outcome.is_readable,
            "denials": [self.redact(one) for one in outcome.denials],
            "output": self.redact(outcome.output),
            "version": outcome.version,
            **({"cost": outcome.cost} if outcome.cost else {}),
        }


def judge_exit(program: PinnedProgram, ended: ProgramExit) -> ProgramOutcome:
    """Return whether a program succeeded, by its exit code and its output."""
    preset = program.preset
    read = ProgramAnswer()
    if ended.is_missing:
        problem, readable = f"The program {preset.command[0]!r} is not installed.", True
    elif len(ended.stdout) > MAX_BYTES or ended.stop == "output":
        problem, readable = f"It printed more than {MAX_BYTES:,} bytes and was ended.", False
    else:
        text = ended.stdout.decode("utf-8", "replace")
        read = read_output(preset.output, ended.exit_code or 0, text)
        problem, readable = read.problem, read.is_readable
        # A program that was ended may have printed a whole answer before.
        if ended.stop:
            problem, readable = _stop_problem(ended.stop), True
    if problem and ended.stderr.strip():
        problem += f" Its error output: {ended.stderr.strip()[-SHOWN_ERRORS:]}"
    return ProgramOutcome(
        answer=read.text,
        problem=problem,
        stop=ended.stop,
        is_readable=readable,
        exit_code=ended.exit_code,
        denials=read.denials,
        output=ended.shown,
        usage=read.usage,
        cost=read.cost,
        version=ended.version,
    )


def _stop_problem(stop: str) -> str:
    if stop == "timeout":
        return "Its time limit was reached, and it was ended."
    return f"It used too much of its limit ({stop}), and was ended."


def _read_outcome(found: CallOutcome) -> ProgramOutcome:
    value = found.value
    return ProgramOutcome(
        answer=as_text(value.get("text")),
        problem=as_text(value.get("problem")),
        stop=as_text(value.get("stop")),
        is_readable=value.get("is_readable") is not False,
        exit_code=as_whole_number(value.get("exit_code")),
        denials=tuple(as_texts(value.get("denials"))),
        output=as_text(value.get("output")),
        usage=found.usage,
        cost=as_text(value.get("cost")),
        version=as_text(value.get("version")),
        tree=found.tree,
    )


def denial_note(denials: Sequence[str]) -> str:
    """Return the finding of refused permissions."""
    return f"The program was not allowed to use: {', '.join(denials)}."
