"""Settings of one endpoint: address, key, timeouts, size limits.

Made by `bootstrap` from the settings. Every value is checked here, so a wrong one is found before the first request.
"""

import base64
import json
import re
from collections.abc import Iterator, Mapping
from dataclasses import field
from typing import Literal
from urllib.parse import quote, unquote, urlsplit

from mimir.domain.value_class import value_class
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


@value_class
class EndpointConfig:
    """Address and limits of one endpoint.

    Raises `ConfigurationError` for a value that can never work; the message never contains the key.
    """

    name: str = ""
    """Name in the settings; empty: the endpoint of `llm.base_url`."""
    base_url: str = ""
    """Usually ends in `/v1`; empty: OpenAI."""
    api_key: str = field(default="", repr=False)
    """Empty: none is sent (local servers)."""
    key_source: str = "llm.api_key"
    """Origin of the key, for messages."""
    key_variable: str = "OPENAI_API_KEY"
    """Variable that may hold the key, for messages. Empty: there is none."""
    key_header: str = "authorization"
    """Header of the key; `authorization` has the form `Bearer KEY`."""
    needs_key: bool = False
    """True: a request without a key is refused. OpenAI's own endpoint always needs one."""
    token_parameter: str = ""
    """Parameter that bounds an answer; empty: by the endpoint."""
    without: frozenset[str] = frozenset()
    """Parameters that the endpoint refuses or ignores."""
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
        object.__setattr__(self, "base_url", _normalise_url(self.base_url, self.section))
        object.__setattr__(self, "api_key", _normalise_key(self.api_key, self.key_source))
        for name, value in self.headers.items():
            _check_header(name, value, self.section)
        _check_extra(self.extra_body, self.section)

    @property
    def section(self) -> str:
        """Name of the settings' section, for messages."""
        return f"llm.endpoints.{self.name}" if self.name else "llm"

    @property
    def label(self) -> str:
        """Name and address of the endpoint, for messages."""
        return f"{self.name} ({self.base_url})" if self.name else self.base_url

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
        """Raise `ConfigurationError` for an endpoint that needs a key and has none."""
        has_header = any(
            name.lower() in ("authorization", self.key_header) for name in self.headers
        )
        if self.api_key or has_header or not (self.is_openai or self.needs_key):
            return
        if not self.name:
            raise ConfigurationError(
                "No key for OpenAI's endpoint: llm.api_key is not set.",
                next_step="Choose a provider: mimir init. Or set OPENAI_API_KEY; `mimir demo` needs no key.",
            )
        raise ConfigurationError(
            f"No key for the endpoint {self.label}: the variable {self.key_variable} is not set.",
            next_step=f"Set {self.key_variable}, or write the key to your own file: mimir config set {self.section}.api_key -",
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


def _normalise_url(url: str, section: str) -> str:
    url = url.strip().rstrip("/") or OPENAI_URL
    try:
        parts = urlsplit(url)
        host = (parts.hostname or "").encode("idna")  # raises for an impossible name
        is_http = parts.scheme in ("http", "https") and bool(host) and parts.port != 0
    except ValueError:
        is_http, parts = False, urlsplit("")
    if parts.username or parts.password:
        raise ConfigurationError(
            f"{section}.base_url holds a user name or a password; addresses are shown and stored.",
            next_step=f"Take it out; put the key into {section}.api_key or the header into {section}.headers.",
        )
    if not is_http or parts.query or parts.fragment or not url.isprintable() or " " in url:
        raise ConfigurationError(
            f"{section}.base_url {url[:200]!r} is not an endpoint URL.",
            next_step="Write it like http://localhost:11434/v1: http or https, host, path; no query.",
        )
    return url


def _normalise_key(key: str, source: str) -> str:
    step = "Set the key again, without quotes and line ends."
    if "\n" in key or "\r" in key:
        raise ConfigurationError(f"The key of {source} holds a line break.", next_step=step)
    key = key.strip()
    if not key.isascii() or not key.isprintable() or " " in key:
        raise ConfigurationError(
            f"The key of {source} is no key: it holds spaces, control or non-ASCII characters.",
            next_step=step,
        )
    return key


def _check_extra(extra: Mapping[str, object], section: str) -> None:
    if clash := sorted(_RESERVED & set(extra)):
        raise ConfigurationError(
            f"{section}.extra_body may not hold {clash[0]!r}: mimir sets it.",
            next_step=f"Remove {clash[0]!r} from {section}.extra_body.",
        )
    try:
        json.dumps(dict(extra), allow_nan=False)
    except (TypeError, ValueError):
        raise ConfigurationError(
            f"{section}.extra_body holds a value that is not JSON (a date, NaN).",
            next_step="Use texts, numbers, true and false, lists and tables only.",
        ) from None


def _check_header(name: str, value: str, section: str) -> None:
    if name.lower() in _CONNECTION_HEADERS:
        raise ConfigurationError(
            f"{section}.headers may not hold {name!r}: mimir sets the headers of the connection.",
            next_step=f"Remove {name!r} from {section}.headers.",
        )
    if not _HEADER_NAME.fullmatch(name) or not value.isascii() or not value.isprintable():
        raise ConfigurationError(
            f"The header {name!r} of {section}.headers cannot be sent.",
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
