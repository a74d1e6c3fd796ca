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


class Endpoint(Protocol):
    """Where a model lives: one HTTP client, shared by all lanes of a process; made once, closed at the end."""

    def for_lane(self, lane: str) -> ChatModel:
        """Return the model as one lane sees it: `lane` is told to the endpoint where the settings want that."""
        ...

    async def aclose(self) -> None:
        """Close the connections; nothing may be asked afterwards."""
        ...
