"""The door to every model."""

from typing import Protocol

from mimir.domain.message import Answer, ModelRequest


class ChatModel(Protocol):
    """One question, one answer."""

    async def ask(self, request: ModelRequest) -> Answer:
        """Ask once.

        Called by the loop, by planners and reporters, through the wrappers that `app` stacks; may be called concurrently.
        Nothing is kept between calls.

        Raises:
            ModelError: The provider did not answer; its `scope` says what that ends.
            AnswerError: The provider answered, but nothing that can be read as an answer.
            Paused: Trouble that outlasts the retries, or a budget at its end (from wrappers).
        """
        ...
