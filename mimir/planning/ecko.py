"""Ecko: the optional agent that turns a request into a specification, without tools."""

from mimir.agents.agent_loop import LoopServices, converse
from mimir.domain.message import Message


async def specify(request: str, system: str, services: LoopServices) -> str:
    """Return the specification of a request: goal, assumptions, context, ambiguities.

    Raises:
        AnswerError: The model gave no readable answer after one re-ask.
    """
    talk = await converse(
        (
            Message(role="system", text=system),
            # The head has the form of every brief, so that a recording finds the conversation.
            Message(role="user", text=f"Task: plan\nAttempt 1 of 1\n\nThe request:\n\n{request}"),
        ),
        services,
    )
    return talk.answer.text.strip()
