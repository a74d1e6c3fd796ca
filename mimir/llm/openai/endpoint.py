"""An endpoint of OpenAI's protocol: its connections, one exchange, a model for each lane."""

import json
from collections.abc import Callable, Mapping
from dataclasses import replace
from urllib.parse import quote

import orjson

from mimir.domain.clock import Clock
from mimir.domain.message import Answer, ModelRequest
from mimir.llm.config import EndpointConfig, split_provider
from mimir.llm.openai.capabilities import CapabilityChange
from mimir.llm.openai.client import ChatClient
from mimir.llm.openai.transport import LANE_HEADER, ConnectionPool, HttpReply
from mimir.llm.protocol import ChatModel

_WRITER = json.JSONEncoder(ensure_ascii=False, separators=(",", ":"), allow_nan=False)


class OpenAIEndpoint:
    """Any endpoint of OpenAI's protocol."""

    def __init__(
        self,
        config: EndpointConfig,
        clock: Clock,
        on_adapt: Callable[[CapabilityChange], None] | None = None,
    ) -> None:
        """Open it; nothing is sent yet.

        Args:
            config: Where it is, and how long to wait.
            clock: For a Retry-After that is a date.
            on_adapt: Told once of each parameter that the endpoint does not know.

        Raises:
            ConfigurationError: The key is missing.
        """
        config.require_key()
        self._config = replace(config, model=split_provider(config.model)[1])
        self._connections = ConnectionPool(config)
        self._exchange = ChatClient(self._post, self._config, clock, on_adapt)

    def for_lane(self, lane: str) -> ChatModel:
        """Return the model as one lane sees it."""
        headers = {LANE_HEADER: quote(lane, safe="/#-_.~")} if self._config.lane_header else {}
        return _Bound(self._exchange, headers)

    async def aclose(self) -> None:
        """Close the connections."""
        await self._connections.aclose()

    async def _post(self, body: Mapping[str, object], headers: Mapping[str, str]) -> HttpReply:
        try:
            data = orjson.dumps(body)
        except orjson.JSONEncodeError:
            # A number of the person's own settings may be larger than it writes.
            data = _WRITER.encode(body).encode()
        return await self._connections.post(data, headers)


class _Bound:
    def __init__(self, exchange: ChatClient, headers: Mapping[str, str]) -> None:
        self._exchange = exchange
        self._headers = headers

    async def ask(self, request: ModelRequest) -> Answer:
        return await self._exchange.ask(request, self._headers)
