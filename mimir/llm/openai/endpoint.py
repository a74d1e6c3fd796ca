"""Endpoint of OpenAI's protocol: its connections and one model for each transcript."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from urllib.parse import quote

from mimir.domain.clock import Clock
from mimir.domain.message import Answer, ModelRequest
from mimir.llm.config import EndpointConfig, split_provider
from mimir.llm.openai.capabilities import CapabilityChange
from mimir.llm.openai.client import ChatClient
from mimir.llm.openai.transport import LANE_HEADER, ConnectionPool
from mimir.llm.protocol import ChatModel


class OpenAIEndpoint:
    """An `Endpoint` of OpenAI's protocol."""

    def __init__(
        self,
        config: EndpointConfig,
        clock: Clock,
        on_adapt: Callable[[CapabilityChange], None] | None = None,
    ) -> None:
        """Require the key; `on_adapt` gets each parameter that the endpoint does not know, once."""
        config.require_key()  # now, so that no run starts without it
        # The models of a named endpoint have names of their own.
        own = config.model if config.name else split_provider(config.model)[1]
        self._config = replace(config, model=own)
        self._connections = ConnectionPool(config)
        self._client = ChatClient(self._connections, self._config, clock, on_adapt)

    def for_lane(self, lane: str) -> ChatModel:
        """Return the model of one transcript; `llm.lane_header` decides if its name is sent."""
        headers = {LANE_HEADER: quote(lane, safe="/#-_.~")} if self._config.lane_header else {}
        return TranscriptModel(self._client, headers)

    async def aclose(self) -> None:
        """Close the connections."""
        await self._connections.aclose()


@dataclass(frozen=True, slots=True)
class TranscriptModel:
    """A `ChatModel` whose requests carry the headers of one transcript."""

    client: ChatClient
    headers: Mapping[str, str]

    async def ask(self, request: ModelRequest) -> Answer:
        """Send one request."""
        return await self.client.ask(request, self.headers)
