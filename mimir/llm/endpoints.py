"""The models of one process: an endpoint a provider, opened when it is first needed; wrapped in limits and retries.

`play:FILE` as a model's name is a scripted model. Opening is the heavy part (the provider's library is imported then), so it waits.
"""

import asyncio
import threading
from collections.abc import Callable
from dataclasses import dataclass, replace
from importlib import import_module
from pathlib import Path

from mimir.domain.clock import Clock
from mimir.domain.message import Answer, ModelRequest
from mimir.llm.config import EndpointConfig, split_provider
from mimir.llm.protocol import ChatModel, Endpoint
from mimir.llm.wrappers.rate_limits import RateLimitedModel, RateLimiter
from mimir.llm.wrappers.redacting_model import RedactingModel, Veil
from mimir.llm.wrappers.retrying_model import RandomSource, RetryingModel, RetryPolicy

PLAY = "play:"
OVER_HTTP = "mimir.llm.openai.endpoint"
OVER_LANGCHAIN = "mimir.llm.langchain"


class EndpointRegistry:
    """Where models come from; shared by all lanes of a process."""

    def __init__(
        self,
        default: str,
        config: Callable[[str], EndpointConfig],
        *,
        limits: RateLimiter,
        policy: RetryPolicy,
        clock: Clock,
        chance: RandomSource,
        veil: Veil = str,
    ) -> None:
        """Open nothing yet.

        Args:
            default: Name of the model where none is asked for; empty: the endpoint's own default.
            config: The endpoint's settings for a model's name.
            limits: Of one endpoint, shared by all calls of the process to it; another endpoint gets the same ones anew.
            policy: Of retries.
            clock: For waiting.
            chance: For the spread of waits.
            veil: Takes known secrets out of what models say.
        """
        self._default = default
        self._config = config
        self._limits = limits
        self._policy = policy
        self._clock = clock
        self._chance = chance
        self._veil = veil
        self._open: dict[str, Endpoint] = {}
        self._limits_of: dict[str, RateLimiter] = {}
        self._notices: list[str] = []

    def for_lane(self, role: str, lane: str, model: str = "") -> ChatModel:
        """Return a role's model, bound to a lane.

        Raises:
            ConfigurationError: No key, or the provider's package is missing.
        """
        del role  # which model a role asks is decided by the settings, before this
        name = model or self._default
        inner = self._endpoint(name).for_lane(lane)
        limits = self._limits_of.setdefault(_key(name), self._limits.like())
        limited = RateLimitedModel(_Named(inner, split_provider(name)[1]), limits)
        retrying = RetryingModel(
            limited, self._policy, clock=self._clock, sleep=asyncio.sleep, chance=self._chance
        )
        return RedactingModel(retrying, self._veil)

    def notices(self) -> list[str]:
        """Return what was learned of endpoints since the last call; each once."""
        told, self._notices = self._notices, []
        return told

    def check(self) -> None:
        """Say at once that the key is missing; then begin the heavy import, so that it is done when the first model is asked.

        Raises:
            ConfigurationError: What is missing.
        """
        if self._default.startswith(PLAY):
            return
        needed = OVER_LANGCHAIN
        if not split_provider(self._default)[0]:
            self._config(self._default).require_key()
            needed = OVER_HTTP
        # Up to two seconds of processor time, beside git and the sandbox's probe, which mostly wait.
        threading.Thread(target=import_module, args=(needed,), daemon=True).start()

    async def close(self) -> None:
        """Close every connection."""
        for endpoint in self._open.values():
            await endpoint.aclose()

    def _endpoint(self, name: str) -> Endpoint:
        key = _key(name)
        if key not in self._open:
            self._open[key] = self._opened(name)
        return self._open[key]

    def _opened(self, name: str) -> Endpoint:
        if name.startswith(PLAY):
            from mimir.llm.scripted.loader import load_script
            from mimir.llm.scripted.scripted_model import ScriptedEndpoint

            return ScriptedEndpoint(load_script(Path(name.removeprefix(PLAY))))
        config = self._config(name)
        if split_provider(name)[0]:
            from mimir.llm.langchain import open_model

            return open_model(config, clock=self._clock)
        from mimir.llm.openai.endpoint import CapabilityChange, OpenAIEndpoint

        def adapted(what: CapabilityChange) -> None:
            self._notices.append(
                f"{what.endpoint} does not take {what.parameter!r} for {what.model!r}: {what.change}."
            )

        return OpenAIEndpoint(config, self._clock, adapted)


def _key(name: str) -> str:
    """Return what models of one endpoint have in common: the play, or the provider."""
    return name if name.startswith(PLAY) else split_provider(name)[0]


@dataclass(frozen=True, slots=True)
class _Named:
    """Asks for one model by its bare name: a provider's prefix is not part of it."""

    inner: ChatModel
    name: str

    async def ask(self, request: ModelRequest) -> Answer:
        if request.model != self.name:
            request = replace(request, model=self.name)
        return await self.inner.ask(request)
