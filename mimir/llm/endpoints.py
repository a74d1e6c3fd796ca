"""Registry of endpoints: one for each provider, opened on first use.

Each model that it gives out is wrapped in rate limits, retries and redaction. The name `play:FILE` opens a scripted model.
"""

import asyncio
import threading
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from importlib import import_module
from pathlib import Path

from mimir.domain.clock import Clock
from mimir.domain.message import Answer, ModelRequest
from mimir.llm.config import EndpointConfig, split_provider
from mimir.llm.protocol import ChatModel, Endpoint
from mimir.llm.wrappers.rate_limits import RateLimitedModel, RateLimiter
from mimir.llm.wrappers.readable_model import ReadableModel
from mimir.llm.wrappers.redacting_model import RedactingModel, Veil
from mimir.llm.wrappers.retrying_model import RetryingModel, RetryPolicy

PLAY = "play:"


class EndpointRegistry:
    """The models of one process, shared by all its transcripts."""

    def __init__(
        self,
        default: str,
        config: Callable[[str], EndpointConfig],
        *,
        split: Callable[[str], tuple[str, str]] = lambda name: ("", name),
        models: Sequence[str] = (),
        limits: Callable[[], RateLimiter],
        policy: RetryPolicy,
        clock: Clock,
        chance: Callable[[], float],
        veil: Veil = str,
    ) -> None:
        """Open nothing yet; an empty `default` is the endpoint's own default model.

        `split` returns endpoint and own name of a model. `models` are those that a run may ask.
        """
        self._default = default
        self._config = config
        self._split = split
        self._models = tuple(models) or (default,)
        self._limits = limits
        self._policy = policy
        self._clock = clock
        self._chance = chance
        self._veil = veil
        self._open: dict[str, Endpoint] = {}
        self._limits_by_endpoint: dict[str, RateLimiter] = {}
        self._notices: list[str] = []

    def for_lane(self, role: str, lane: str, model: str = "") -> ChatModel:
        """Return the model of one transcript; raise `ConfigurationError` without key or package."""
        del role  # the settings have already chosen the model of the role
        name = model or self._default
        key = self._endpoint_key(name)
        if key not in self._open:
            self._open[key] = self._open_endpoint(name)
            self._limits_by_endpoint[key] = self._limits()
        bare = _NamedModel(self._open[key].for_lane(lane), self._locate(name)[2])
        limited = RateLimitedModel(bare, self._limits_by_endpoint[key])
        retrying = RetryingModel(
            limited, self._policy, clock=self._clock, sleep=asyncio.sleep, chance=self._chance
        )
        return RedactingModel(ReadableModel(retrying), self._veil)

    def notices(self) -> list[str]:
        """Return new facts about endpoints since the last call, each once."""
        notices, self._notices = self._notices, []
        return notices

    def check(self) -> None:
        """Require the keys of the models, then start the slow import in a thread."""
        adapters: set[str] = set()
        for name in self._models:
            if name.startswith(PLAY):
                continue
            if self._locate(name)[1]:
                adapters.add("mimir.llm.langchain")
            else:
                self._config(name).require_key()
                adapters.add("mimir.llm.openai.endpoint")
        # Up to two seconds of CPU time, while git and the sandbox probe mostly wait.
        # A daemon: it must not delay the exit of the process.
        for adapter in sorted(adapters):
            threading.Thread(target=import_module, args=(adapter,), daemon=True).start()

    async def close(self) -> None:
        """Close every connection."""
        for endpoint in self._open.values():
            await endpoint.aclose()

    def _open_endpoint(self, name: str) -> Endpoint:
        if name.startswith(PLAY):
            from mimir.llm.scripted.loader import load_script
            from mimir.llm.scripted.scripted_model import ScriptedEndpoint

            return ScriptedEndpoint(load_script(Path(name.removeprefix(PLAY))))
        config = self._config(name)
        if self._locate(name)[1]:
            from mimir.llm.langchain import open_model

            return open_model(config, clock=self._clock)
        from mimir.llm.openai.endpoint import CapabilityChange, OpenAIEndpoint

        def note_change(change: CapabilityChange) -> None:
            self._notices.append(change.notice)

        return OpenAIEndpoint(config, self._clock, note_change)

    def _endpoint_key(self, name: str) -> str:
        """Return the key that all models of one endpoint share."""
        endpoint, provider, _ = self._locate(name)
        return name if name.startswith(PLAY) else f"{endpoint}/{provider}"

    def _locate(self, name: str) -> tuple[str, str, str]:
        """Return endpoint, LangChain provider and own name of a model."""
        endpoint, own = self._split(name)
        return (endpoint, "", own) if endpoint else ("", *split_provider(own))


@dataclass(frozen=True, slots=True)
class _NamedModel:
    """A `ChatModel` that sets the model's name, without the provider, in every request."""

    inner: ChatModel
    name: str

    async def ask(self, request: ModelRequest) -> Answer:
        return await self.inner.ask(replace(request, model=self.name))
