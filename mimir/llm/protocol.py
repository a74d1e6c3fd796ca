"""Protocols of model access: `ChatModel` and `Endpoint`."""

from typing import Protocol

from mimir.domain.message import Answer, ModelRequest


class ChatModel(Protocol):
    """A model that answers one request at a time and keeps nothing between calls."""

    async def ask(self, request: ModelRequest) -> Answer:
        """Send one request; concurrent calls are allowed.

        Raises:
            ModelError: The provider did not answer; `scope` names the scope of the failure.
            AnswerError: The provider's reply cannot be read as an answer.
            Paused: A failure outlasted the retries, or a budget is used up (from wrappers).
        """
        ...


class Endpoint(Protocol):
    """One HTTP client or model script, shared by all transcripts of a process."""

    def for_lane(self, lane: str) -> ChatModel:
        """Return the model for one transcript; the settings decide if its name is sent."""
        ...

    async def aclose(self) -> None:
        """Close the connections; no request is allowed afterwards."""
        ...
