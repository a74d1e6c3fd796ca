"""Values of a model script, and the choice of the next turn.

No part of a request is copied into an answer, except quotes that a scripted QC takes from its own prompt (`scripted_judge`).
"""

from collections.abc import Mapping, Sequence
from dataclasses import field
from fnmatch import fnmatchcase
from itertools import pairwise
from typing import Literal

from mimir.domain.message import Finish, Message
from mimir.domain.value_class import value_class
from mimir.errors import ModelError

Json = None | bool | int | float | str | list["Json"] | dict[str, "Json"]
FOREVER = 10**9


@value_class
class ScriptCondition:
    """Texts that must, or must not, occur in the messages; all of them together."""

    brief_has: tuple[str, ...] = ()
    """In the messages before the model's first answer."""
    brief_lacks: tuple[str, ...] = ()
    last_has: tuple[str, ...] = ()
    """In the messages since the model's latest answer."""
    last_lacks: tuple[str, ...] = ()

    def holds(self, request: "ScriptRequest") -> bool:
        """Return whether all conditions hold."""
        return (
            all(text in request.brief for text in self.brief_has)
            and not any(text in request.brief for text in self.brief_lacks)
            and all(text in request.last for text in self.last_has)
            and not any(text in request.last for text in self.last_lacks)
        )


ALWAYS = ScriptCondition()


@value_class
class ScriptedCall:
    """A tool call of a scripted turn."""

    tool: str
    arguments: str
    """As sent: JSON text, or deliberately other text."""
    id: str = ""
    """Empty: derived from the turn."""
    times: int = 1
    """Number of equal calls in one message."""


@value_class
class TurnFault:
    """A fault of a turn, by its name in `FAULTS`."""

    name: str
    times: int = FOREVER
    """Number of failing tries; the turn's own answer follows."""
    while_file: str = ""
    """Fails as long as this file exists; empty: no such condition."""
    seconds: float = 1.0
    """Of a Retry-After."""
    parameter: str = ""
    """Of `unsupported_parameter`: refused only if the request has it."""


@value_class
class ScriptedTurn:
    """One answer of a scripted model."""

    text: str | None = None
    calls: tuple[ScriptedCall, ...] = ()
    verdict: Mapping[str, Json] | None = None
    """A QC answer: see `scripted_judge`."""
    choose: tuple["ScriptedTurn", ...] = ()
    """Alternatives: the first one whose `when` holds is the turn."""
    when: ScriptCondition = ALWAYS
    fault: TurnFault | None = None
    delay_seconds: float = 0.0
    finish: Finish | None = None
    """None: follows from the answer."""
    usage: tuple[int, int] | Literal["none"] | None = None
    """Tokens in and out; "none": not reported; None: estimated."""
    repeat: int = 1
    """Number of equal answers in a row."""

    @property
    def has_answer(self) -> bool:
        """False for a turn that is only a fault."""
        return self.text is not None or bool(self.calls) or self.verdict is not None


@value_class
class ScriptedPart:
    """The turns of one kind of conversation."""

    role: str = "*"
    """A glob, like `task` and `lane`."""
    task: str = "*"
    lane: str = "*"
    """Matches the last name of the transcript, if a role has more than one."""
    attempts: tuple[int, ...] = ()
    """Empty: any."""
    from_attempt: int = 0
    """This one and all later ones."""
    when: ScriptCondition = ALWAYS
    turns: tuple[ScriptedTurn, ...] = ()
    closing: ScriptedTurn | None = None
    """Answer to the engine's request for a closing answer (`tool_choice: none`)."""

    def matches(self, request: "ScriptRequest") -> bool:
        """Return whether this part answers a request."""
        return (
            fnmatchcase(request.role, self.role)
            and fnmatchcase(request.task, self.task)
            and fnmatchcase(request.lane, self.lane)
            and (not self.attempts or request.attempt in self.attempts)
            and request.attempt >= self.from_attempt
            and self.when.holds(request)
        )


@value_class
class ModelScript:
    """A whole model script; the first matching part answers."""

    parts: tuple[ScriptedPart, ...]
    default: tuple[ScriptedTurn, ...] = ()
    """Turns of conversations that no part matches."""
    roles: Mapping[str, tuple[str, ...]] = field(default_factory=dict[str, tuple[str, ...]])
    """Texts by which a test server recognises a role in its system prompt."""
    name: str = "play"


@value_class
class ScriptRequest:
    """One request, as a model script sees it."""

    role: str
    task: str
    attempt: int
    lane: str = ""
    """Last name of the transcript: the role, or the role with a mark."""
    brief: str
    last: str
    turn: int
    """Number of earlier answers, discarded ones included: 0 for the first."""
    closing: bool = False

    def __str__(self) -> str:
        return (
            f"role {self.role!r}, task {self.task!r}, attempt {self.attempt}, turn {self.turn + 1}"
        )


def script_request(
    role: str, task: str, attempt: int, messages: Sequence[Message], *, lane: str, closing: bool
) -> ScriptRequest:
    """Describe a request; the turn is counted from its messages, so a restart continues."""
    answers = [at for at, message in enumerate(messages) if message.role == "assistant"]
    turn = len(answers) + _count_discarded(messages, closing=closing)
    brief = messages[: answers[0]] if answers else messages
    last = messages[answers[-1] + 1 :] if answers else messages
    return ScriptRequest(
        role=role,
        task=task,
        attempt=attempt,
        lane=lane,
        brief="\n".join(m.text for m in brief),
        last="\n".join(m.text for m in last),
        turn=turn,
        closing=closing,
    )


def _count_discarded(messages: Sequence[Message], *, closing: bool) -> int:
    """Count the answers that the engine discarded: each left a user message that asks again."""
    # Such a message follows another user message or a tool result; one of the latter may ask for the closing answer.
    pairs = [(before.role, after.role) for before, after in pairwise(messages)]
    after_results = pairs.count(("tool", "user")) - (1 if closing else 0)
    return pairs.count(("user", "user")) + max(0, after_results)


def choose_turn(script: ModelScript, request: ScriptRequest) -> ScriptedTurn:
    """Return the turn that answers a request; raise `ModelError` if there is none."""
    part = next((part for part in script.parts if part.matches(request)), None)
    if part is not None and request.closing and part.closing is not None:
        return _choose_option(script, request, part.closing)
    turns = script.default if part is None else part.turns
    number = request.turn
    for turn in turns:  # a turn with `repeat` counts as so many
        if number < turn.repeat:
            return _choose_option(script, request, turn)
        number -= turn.repeat
    reason = f"the part that matches has {len(turns)}" if part else "no part matches"
    raise _no_turn(script, request, reason)


def _choose_option(script: ModelScript, request: ScriptRequest, turn: ScriptedTurn) -> ScriptedTurn:
    if not turn.choose:
        return turn
    for option in turn.choose:
        if option.when.holds(request):
            return _choose_option(script, request, option)
    raise _no_turn(script, request, "no choice of the turn holds")


def _no_turn(script: ModelScript, request: ScriptRequest, reason: str) -> ModelError:
    return ModelError(
        f"The model script {script.name!r} has no turn for {request}: {reason}.",
        scope="run",
        next_step="Add a turn, a part or a default to the model script.",
    )
