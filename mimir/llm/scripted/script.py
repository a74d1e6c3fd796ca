"""A play: who says what, in which turn. Values, and the choice of the turn; pure. The format is described in docs/plays.md.

Nothing of a request is ever put into what is said, but for quotes that a scripted QC takes from its own prompt (`quoting`).
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from fnmatch import fnmatchcase
from itertools import pairwise
from typing import Literal

from mimir.domain.message import Finish, Message
from mimir.errors import ModelError

Json = None | bool | int | float | str | list["Json"] | dict[str, "Json"]
FOREVER = 10**9


@dataclass(frozen=True, slots=True, kw_only=True)
class ScriptCondition:
    """Texts that must, or must not, stand in what the model is shown; all of them."""

    brief_has: tuple[str, ...] = ()
    """In the messages before the model's first answer."""
    brief_lacks: tuple[str, ...] = ()
    last_has: tuple[str, ...] = ()
    """In the messages since the model's latest answer."""
    last_lacks: tuple[str, ...] = ()

    def holds(self, scene: "ScriptRequest") -> bool:
        """Tell whether all conditions are met."""
        return (
            all(text in scene.brief for text in self.brief_has)
            and not any(text in scene.brief for text in self.brief_lacks)
            and all(text in scene.last for text in self.last_has)
            and not any(text in scene.last for text in self.last_lacks)
        )


ALWAYS = ScriptCondition()


@dataclass(frozen=True, slots=True, kw_only=True)
class ScriptedCall:
    """A tool call that the model makes."""

    tool: str
    arguments: str
    """As sent: JSON text, or on purpose something else."""
    id: str = ""
    """Empty: made from the turn."""
    times: int = 1
    """So many equal calls in one message."""


@dataclass(frozen=True, slots=True, kw_only=True)
class TurnFault:
    """A fault of a turn."""

    name: str
    times: int = FOREVER
    """So many tries of this turn fail; then the turn's own answer is given."""
    while_file: str = ""
    """Fails as long as this file is there, however often; empty: not asked."""
    seconds: float = 1.0
    """Of a Retry-After."""
    parameter: str = ""
    """Of `unsupported_parameter`: refused only where the request has it."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ScriptedTurn:
    """One answer of the model."""

    text: str | None = None
    calls: tuple[ScriptedCall, ...] = ()
    verdict: Mapping[str, Json] | None = None
    """A scripted judgement: see `quoting`."""
    choose: tuple["ScriptedTurn", ...] = ()
    """The first of these whose `when` holds is said instead."""
    when: ScriptCondition = ALWAYS
    fault: TurnFault | None = None
    delay_seconds: float = 0.0
    finish: Finish | None = None
    """None: follows from the answer."""
    usage: tuple[int, int] | Literal["none"] | None = None
    """Tokens in and out; "none": not told; None: estimated."""
    repeat: int = 1
    """So many answers in a row."""

    @property
    def has_answer(self) -> bool:
        """False for a turn that is nothing but trouble."""
        return self.text is not None or bool(self.calls) or self.verdict is not None


@dataclass(frozen=True, slots=True, kw_only=True)
class ScriptedPart:
    """What one kind of conversation says."""

    role: str = "*"
    """A glob, as `task` and `lane`."""
    task: str = "*"
    lane: str = "*"
    """Matches the last name of the lane, where a role has more than one."""
    attempts: tuple[int, ...] = ()
    """Empty: any."""
    from_attempt: int = 0
    """This one and all later ones."""
    when: ScriptCondition = ALWAYS
    turns: tuple[ScriptedTurn, ...] = ()
    closing: ScriptedTurn | None = None
    """Said when the engine asks for a closing answer (`tool_choice: none`)."""

    def matches(self, scene: "ScriptRequest") -> bool:
        """Tell whether this part speaks in a scene."""
        return (
            fnmatchcase(scene.role, self.role)
            and fnmatchcase(scene.task, self.task)
            and fnmatchcase(scene.lane, self.lane)
            and (not self.attempts or scene.attempt in self.attempts)
            and scene.attempt >= self.from_attempt
            and self.when.holds(scene)
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class ModelScript:
    """All parts, in the order in which they are tried."""

    parts: tuple[ScriptedPart, ...]
    default: tuple[ScriptedTurn, ...] = ()
    """Turns of every conversation that no part matches."""
    roles: Mapping[str, tuple[str, ...]] = field(default_factory=dict[str, tuple[str, ...]])
    """Texts by which a test server knows a role from its system prompt."""
    name: str = "play"


@dataclass(frozen=True, slots=True, kw_only=True)
class ScriptRequest:
    """One request, as a play sees it."""

    role: str
    task: str
    attempt: int
    lane: str = ""
    """Last name of the lane: the role, or the role with a mark."""
    brief: str
    last: str
    turn: int
    """Answers of the model so far, those that were not kept included: 0 for its first one."""
    closing: bool = False

    def __str__(self) -> str:
        return (
            f"role {self.role!r}, task {self.task!r}, attempt {self.attempt}, turn {self.turn + 1}"
        )


def scene(
    role: str, task: str, attempt: int, messages: Sequence[Message], *, lane: str, closing: bool
) -> ScriptRequest:
    """See a request as a scene; the turn is counted from the messages, so that a restart goes on where it was."""
    answers = [at for at, message in enumerate(messages) if message.role == "assistant"]
    turn = len(answers) + _thrown_away(messages, closing=closing)
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


def _thrown_away(messages: Sequence[Message], *, closing: bool) -> int:
    """Count the answers that the engine did not keep (empty, far too long): each left a user message that asks again.

    Such a message follows another one of the user's, or a tool's result; there, one may be the request for a closing answer.
    """
    pairs = [(before.role, after.role) for before, after in pairwise(messages)]
    after_results = pairs.count(("tool", "user")) - (1 if closing else 0)
    return pairs.count(("user", "user")) + max(0, after_results)


def cue(play: ModelScript, at: ScriptRequest) -> ScriptedTurn:
    """Choose what is said.

    Raises:
        ModelError: The play has no line here (scope `run`: the play must be corrected).
    """
    part = next((part for part in play.parts if part.matches(at)), None)
    if part is not None and at.closing and part.closing is not None:
        return _chosen(play, at, part.closing)
    turns = play.default if part is None else part.turns
    number = at.turn
    for turn in turns:
        if number < turn.repeat:
            return _chosen(play, at, turn)
        number -= turn.repeat
    known = f"the part that matches has {len(turns)}" if part else "no part matches"
    raise _no_line(play, at, known)


def _chosen(play: ModelScript, at: ScriptRequest, turn: ScriptedTurn) -> ScriptedTurn:
    if not turn.choose:
        return turn
    for option in turn.choose:
        if option.when.holds(at):
            return _chosen(play, at, option)
    raise _no_line(play, at, "no choice of the turn holds")


def _no_line(play: ModelScript, at: ScriptRequest, why: str) -> ModelError:
    return ModelError(
        f"The play {play.name!r} has no line for {at}: {why}.",
        scope="run",
        next_step="Add a turn, a part or a default to the play.",
    )
