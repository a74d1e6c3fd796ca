"""Repeated request for the response form: at most one in an attempt."""

from mimir.agents.agent_loop import Conversation, LoopServices, converse
from mimir.attempts.agent_answers.response_form import answer_schema, read_answer
from mimir.domain.invocation import PinnedDefinition
from mimir.domain.message import Message
from mimir.errors import AnswerError

_AGAIN = (
    "Your answer cannot be used. {fault}\nGive the whole answer again, in the form that your "
    "instructions ask for: exactly one JSON object."
)


async def require_form(
    agent: PinnedDefinition, conversation: Conversation, services: LoopServices
) -> Conversation:
    """Return the conversation, with one repeated request if its answer has another form.

    Without a schema the second answer counts in any form: its text is the analysis.

    Raises:
        AnswerError: The agent has a schema, and neither answer matches it.
    """
    schema = answer_schema(agent)
    try:
        read_answer(conversation.answer.text, schema)
    except AnswerError as error:
        # No tools any more: a repeated answer must not change the deliverable.
        request = Message(role="user", text=_AGAIN.format(fault=error), closing=True)
        try:
            again = await converse(
                (*conversation.messages, request), services, spent=conversation.usage
            )
            if schema is not None:
                read_answer(again.answer.text, schema)
        except AnswerError:
            if schema is not None:
                raise
            return conversation
        return again
    return conversation
