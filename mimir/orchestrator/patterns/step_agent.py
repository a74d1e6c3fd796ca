"""Agent of one planning step: one conversation, which continues with each request."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field

from mimir.agents.agent_loop import LoopServices, converse
from mimir.agents.replies import strip_fence
from mimir.domain.agent import ASK_TOOL, RoleLimits
from mimir.domain.invocation import PlanningStep
from mimir.domain.json_value import as_object, as_text, as_texts
from mimir.domain.message import Message
from mimir.tools.wrappers.quota import CallQuota

SDD = "sdd"
"""Name of the skill whose definitions do the steps."""
STEPS_TEXT = "steps"
"""Name of the stored text with the pinned definitions of the steps."""
STEP_AGENTS = ("interviewer", "spec-writer", "oracle", "planner")
TASK_AGENTS = (f"{SDD}/executor", f"{SDD}/validator")
"""Definitions that the tasks of an approved plan may name."""
STEP_LIMITS = RoleLimits(answer_tokens=8000, working_tokens=8000, tools=())
HEAD = "Task: plan\nAttempt 1 of 1"
"""As in every brief, so that a recording finds the conversation."""


@dataclass(slots=True)
class StepAgent:
    """One agent with its transcript."""

    system: str
    loop: Callable[[], LoopServices]
    """Returns the services of the next conversation turn."""
    quota: CallQuota
    _messages: tuple[Message, ...] = field(default=())

    async def ask(self, text: str) -> str:
        """Return the closing answer to a request; the conversation before it is known.

        Raises:
            AnswerError: The model gave no readable answer after one re-ask.
            Waiting: The agent asked the user.
        """
        # The rounds are those of one request: a rejection may need new questions.
        self.quota.refill()
        before = self._messages or (Message(role="system", text=self.system),)
        head = text if self._messages else f"{HEAD}\n\n{text}"
        talk = await converse((*before, Message(role="user", text=head)), self.loop())
        self._messages = talk.messages
        return strip_fence(talk.answer.text).strip()


def read_steps(stored: Mapping[str, object]) -> Mapping[str, PlanningStep]:
    """Return the pinned definitions of the steps; runs of older versions pinned prompts alone."""
    return {name: _read_step(value) for name, value in stored.items()}


def _read_step(value: object) -> PlanningStep:
    if isinstance(value, str):
        return PlanningStep(prompt=value)
    given = as_object(value)
    return PlanningStep(
        prompt=as_text(given.get("prompt")),
        model=as_text(given.get("model")),
        tools=tuple(as_texts(given.get("tools"))),
    )


def ask_quota(rounds: int) -> CallQuota:
    """Return the quota of an agent that asks the user in `rounds` rounds; 0: never."""
    return CallQuota({ASK_TOOL: rounds})
