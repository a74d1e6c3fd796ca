"""Settings of one endpoint: address, key, timeouts, size limits.

Made by `bootstrap` from the settings. Every value is checked here, so a wrong one is found before the first request.
"""

import base64
import json
import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import Literal
from urllib.parse import quote, unquote, urlsplit

from mimir.errors import ConfigurationError

OPENAI_URL = "https://api.openai.com/v1"
# A shorter key is a placeholder for a local server; hiding it would only garble messages.
_SHORTEST_KEY = 4
# Shorter header values are words, not secrets.
_SHORTEST_HEADER = 8
# Headers of the connection itself: another value would break the request.
_CONNECTION_HEADERS = frozenset(
    ("content-encoding", "content-length", "expect", "trailer", "transfer-encoding", "upgrade")
)
_RESERVED = frozenset({"messages", "model", "stream", "stream_options", "tools"})
_HEADER_NAME = re.compile(r"[A-Za-z0-9!#$%&'*+.^_`|~-]+")

Structured = Literal["auto", "json_schema", "text"]
TokenLimit = int | Mapping[str, int] | None
"""One limit for all models, or a limit for each model name; None: none."""


@dataclass(frozen=True, slots=True, kw_only=True)
class EndpointConfig:
    """Address and limits of one endpoint.

    Raises `ConfigurationError` for a value that can never work; the message never holds the key.
    """

    base_url: str = ""
    """Usually ends in `/v1`; empty: OpenAI."""
    api_key: str = field(default="", repr=False)
    """Empty: none is sent (local servers)."""
    model: str = ""
    """Default for requests without a model; `provider:model` for another LangChain chat model."""
    extra_body: Mapping[str, object] = field(default_factory=dict[str, object], repr=False)
    """Added to every request; overrides all but messages, model, tools and streaming."""
    headers: Mapping[str, str] = field(default_factory=dict[str, str], repr=False)
    """Added to every request; treated as secrets."""
    proxy: str = field(default="", repr=False)
    """URL of an HTTP proxy, which may hold a login; empty: a direct connection."""
    context_tokens: TokenLimit = None
    """Most tokens of prompt and answer together."""
    max_output_tokens: TokenLimit = None
    """Most tokens of an answer."""
    lane_header: bool = False
    """True: requests carry `X-Mimir-Lane`."""
    structured: Structured = "auto"
    """Whether a schema is sent. `auto`: only without tools, since many servers cannot do both."""
    connect_seconds: float = 10.0
    stall_seconds: float = 120.0
    """Longest wait for the first byte, and between two."""
    answer_seconds: float = 600.0
    """Longest wait for a whole answer."""
    max_answer_bytes: int = 2_000_000
    """Most UTF-8 bytes of text and arguments in one answer."""

    def __post_init__(self) -> None:
        # The class is frozen: normalised values can only be set around its own guard.
        object.__setattr__(self, "base_url", _normalise_url(self.base_url))
        object.__setattr__(self, "api_key", _normalise_key(self.api_key))
        for name, value in self.headers.items():
            _check_header(name, value)
        _check_extra(self.extra_body)

    @property
    def is_openai(self) -> bool:
        """True for OpenAI's own endpoint: it needs a key and knows the newest parameter names."""
        return urlsplit(self.base_url).hostname == "api.openai.com"

    @property
    def default_model(self) -> str:
        """The model of requests without one; empty for OpenAI, which needs a real name."""
        # Local servers serve one model under any name.
        return self.model or ("" if self.is_openai else "default")

    def context_limit(self, model: str) -> int | None:
        """Return the most tokens of prompt and answer of a model; None: not set."""
        return _limit_of(self.context_tokens, model)

    def output_limit(self, model: str) -> int | None:
        """Return the most tokens of an answer of a model; None: not set."""
        return _limit_of(self.max_output_tokens, model)

    def require_key(self) -> None:
        """Raise `ConfigurationError` for OpenAI's own endpoint without a key."""
        has_header = any(name.lower() == "authorization" for name in self.headers)
        if self.is_openai and not self.api_key and not has_header:
            raise ConfigurationError(
                "No key for OpenAI's endpoint: llm.api_key is not set.",
                next_step="Set OPENAI_API_KEY, or llm.base_url to a server that needs none; `mimir demo` needs no key.",
            )

    def veil(self, text: str) -> str:
        """Replace the key and the header values in a text, encoded forms included."""
        for secret in self._secrets():
            if secret in text:
                text = text.replace(secret, "[secret]")
        return text

    def _secrets(self) -> Iterator[str]:
        password = unquote(urlsplit(self.proxy).password or "")
        keys = [key for key in (self.api_key, password) if len(key) >= _SHORTEST_KEY]
        others = [v for v in self.headers.values() if len(v) >= _SHORTEST_HEADER]
        for value in (*keys, *others):
            raw = value.encode()  # an endpoint may echo a key in another form
            yield value
            yield from (quote(value, safe=""), base64.b64encode(raw).decode(), raw.hex())


def _limit_of(limit: TokenLimit, model: str) -> int | None:
    return limit.get(model) if isinstance(limit, Mapping) else limit


def _normalise_url(url: str) -> str:
    url = url.strip().rstrip("/") or OPENAI_URL
    try:
        parts = urlsplit(url)
        host = (parts.hostname or "").encode("idna")  # raises for an impossible name
        is_http = parts.scheme in ("http", "https") and bool(host) and parts.port != 0
    except ValueError:
        is_http, parts = False, urlsplit("")
    if parts.username or parts.password:
        raise ConfigurationError(
            "llm.base_url holds a user name or a password; addresses are shown and stored.",
            next_step="Take it out; put the key into llm.api_key or the header into llm.headers.",
        )
    if not is_http or parts.query or parts.fragment or not url.isprintable() or " " in url:
        raise ConfigurationError(
            f"llm.base_url {url[:200]!r} is not an endpoint URL.",
            next_step="Write it like http://localhost:11434/v1: http or https, host, path; no query.",
        )
    return url


def _normalise_key(key: str) -> str:
    key = key.strip()
    if not key.isascii() or not key.isprintable() or " " in key:
        raise ConfigurationError(
            "llm.api_key is not a key: it holds spaces, control or non-ASCII characters.",
            next_step="Set the key again, without quotes and line ends.",
        )
    return key


def _check_extra(extra: Mapping[str, object]) -> None:
    if clash := sorted(_RESERVED & set(extra)):
        raise ConfigurationError(
            f"llm.extra_body may not hold {clash[0]!r}: mimir sets it.",
            next_step=f"Remove {clash[0]!r} from llm.extra_body.",
        )
    try:
        json.dumps(dict(extra), allow_nan=False)
    except (TypeError, ValueError):
        raise ConfigurationError(
            "llm.extra_body holds a value that is not JSON (a date, NaN).",
            next_step="Use texts, numbers, true and false, lists and tables only.",
        ) from None


def _check_header(name: str, value: str) -> None:
    if name.lower() in _CONNECTION_HEADERS:
        raise ConfigurationError(
            f"llm.headers may not hold {name!r}: mimir sets the headers of the connection.",
            next_step=f"Remove {name!r} from llm.headers.",
        )
    if not _HEADER_NAME.fullmatch(name) or not value.isascii() or not value.isprintable():
        raise ConfigurationError(
            f"The header {name!r} of llm.headers cannot be sent.",
            next_step="Use an ASCII name without spaces and a printable ASCII value.",
        )


# Providers that LangChain opens by name. `openai` is absent: it has its own client.
_NAMESAKES = """
    anthropic azure_ai baseten cohere deepseek fireworks groq huggingface ibm litellm mistralai ollama openrouter
    perplexity together upstage xai
"""
PROVIDERS: Mapping[str, str] = {
    **{name: f"langchain-{name.replace('_', '-')}" for name in _NAMESAKES.split()},
    **dict.fromkeys(("anthropic_bedrock", "bedrock", "bedrock_converse"), "langchain-aws"),
    **dict.fromkeys(("google_anthropic_vertex", "google_vertexai"), "langchain-google-vertexai"),
    "azure_openai": "langchain-openai",
    "google_genai": "langchain-google-genai",
    "nvidia": "langchain-nvidia-ai-endpoints",
}
"""Provider → the package of its models."""


def split_provider(model: str) -> tuple[str, str]:
    """Split `provider:model`; the provider is empty for OpenAI's protocol.

    Other names with a colon, such as `llama3.1:8b`, have no provider.
    """
    provider, colon, name = model.partition(":")
    if colon and (provider == "openai" or provider in PROVIDERS):
        return "" if provider == "openai" else provider, name
    return "", model
