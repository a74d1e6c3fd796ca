"""One endpoint's settings: where it is, how long to wait, how much to take. Built by `app` from the settings; holds the key."""

import base64
import json
import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import Literal
from urllib.parse import quote, urlsplit

from mimir.errors import ConfigurationError

OPENAI_URL = "https://api.openai.com/v1"
ANY_MODEL = "default"
_SHORTEST_KEY = 4
"""A shorter key is a placeholder for a local server; hiding it would only garble what is said."""
_SHORTEST_HEADER = 8
"""Header values shorter than this are words, not secrets."""
_OF_THE_CONNECTION = frozenset(
    ("content-encoding", "content-length", "expect", "trailer", "transfer-encoding", "upgrade")
)
"""Headers that say how a request is sent: another value would break it."""
_RESERVED = frozenset({"messages", "model", "stream", "stream_options", "tools"})
_HEADER_NAME = re.compile(r"[A-Za-z0-9!#$%&'*+.^_`|~-]+")

Structured = Literal["auto", "json_schema", "text"]


@dataclass(frozen=True, slots=True, kw_only=True)
class EndpointConfig:
    """How to reach one endpoint, and what to accept of it.

    Raises:
        ConfigurationError: A value that can never work; the message names the setting and never holds the key.
    """

    base_url: str = ""
    """Ends in `/v1` as a rule; empty: OpenAI's own."""
    api_key: str = field(default="", repr=False)
    """Empty: none is sent (local servers)."""
    model: str = ""
    """Default for requests that name none; `provider:model` for any other LangChain chat model."""
    extra_body: Mapping[str, object] = field(default_factory=dict[str, object], repr=False)
    """Added to every request; wins over what mimir sends, but for messages, model, tools and streaming."""
    headers: Mapping[str, str] = field(default_factory=dict[str, str], repr=False)
    """Added to every request; treated as secrets."""
    lane_header: bool = False
    """True: requests carry `X-Mimir-Lane`."""
    structured: Structured = "auto"
    """Whether a wanted schema is sent. `auto`: only when no tool may be called, since many servers cannot do both."""
    connect_seconds: float = 10.0
    stall_seconds: float = 120.0
    """Longest wait for the first byte, and between two."""
    answer_seconds: float = 600.0
    """Longest wait for a whole answer."""
    max_answer_bytes: int = 2_000_000
    """Most UTF-8 bytes of text and arguments in one answer."""

    def __post_init__(self) -> None:
        object.__setattr__(self, "base_url", _address(self.base_url))
        object.__setattr__(self, "api_key", _key(self.api_key))
        for name, value in self.headers.items():
            _check_header(name, value)
        _check_extra(self.extra_body)

    @property
    def is_openai(self) -> bool:
        """True for OpenAI's own endpoint, which needs a key and knows the newest parameter names."""
        return urlsplit(self.base_url).hostname == "api.openai.com"

    @property
    def default_model(self) -> str:
        """Name sent where none is set: local servers serve one model under any name; OpenAI wants a real one (empty)."""
        return self.model or ("" if self.is_openai else ANY_MODEL)

    def require_key(self) -> None:
        """Refuse OpenAI's own endpoint without a key; any other may need none.

        Raises:
            ConfigurationError: The key is missing.
        """
        if self.is_openai and not self.api_key and not self._names_authorization():
            raise ConfigurationError(
                "No key for OpenAI's endpoint: llm.api_key is not set.",
                next_step="Set OPENAI_API_KEY, or llm.base_url to a server that needs none; `mimir demo` needs no key.",
            )

    def _names_authorization(self) -> bool:
        return any(name.lower() == "authorization" for name in self.headers)

    def veil(self, text: str) -> str:
        """Return `text` with the key and the headers' values replaced, also where they stand encoded."""
        for secret in self._secrets():
            if secret in text:
                text = text.replace(secret, "[secret]")
        return text

    def _secrets(self) -> Iterator[str]:
        keys = [self.api_key] if len(self.api_key) >= _SHORTEST_KEY else []
        others = [v for v in self.headers.values() if len(v) >= _SHORTEST_HEADER]
        for value in (*keys, *others):
            raw = value.encode()
            yield value
            yield from (quote(value, safe=""), base64.b64encode(raw).decode(), raw.hex())


def _address(url: str) -> str:
    url = url.strip().rstrip("/") or OPENAI_URL
    try:
        parts = urlsplit(url)
        host = (parts.hostname or "").encode("idna")
        known = parts.scheme in ("http", "https") and bool(host) and parts.port != 0
    except ValueError:
        known, parts = False, urlsplit("")
    if parts.username or parts.password:
        raise ConfigurationError(
            "llm.base_url holds a user name or a password; addresses are shown and stored.",
            next_step="Take it out; put the key into llm.api_key or the header into llm.headers.",
        )
    if not known or parts.query or parts.fragment or not url.isprintable() or " " in url:
        raise ConfigurationError(
            f"llm.base_url {url[:200]!r} is no address of a model endpoint.",
            next_step="Write it like http://localhost:11434/v1: http or https, host, path; no query.",
        )
    return url


def _key(key: str) -> str:
    key = key.strip()
    if not key.isascii() or not key.isprintable() or " " in key:
        raise ConfigurationError(
            "llm.api_key holds characters that no key has (spaces, control or non-ASCII ones).",
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
            "llm.extra_body holds a value that JSON cannot say (a date, NaN).",
            next_step="Use texts, numbers, true and false, lists and tables only.",
        ) from None


def _check_header(name: str, value: str) -> None:
    if name.lower() in _OF_THE_CONNECTION:
        raise ConfigurationError(
            f"llm.headers may not hold {name!r}: it says how a request is sent, which mimir does.",
            next_step=f"Remove {name!r} from llm.headers.",
        )
    if not _HEADER_NAME.fullmatch(name) or not value.isascii() or not value.isprintable():
        raise ConfigurationError(
            f"The header {name!r} of llm.headers cannot be sent.",
            next_step="Use an ASCII name without spaces and a printable ASCII value.",
        )


PROVIDERS: Mapping[str, str] = {
    "anthropic": "langchain-anthropic",
    "anthropic_bedrock": "langchain-aws",
    "azure_ai": "langchain-azure-ai",
    "azure_openai": "langchain-openai",
    "baseten": "langchain-baseten",
    "bedrock": "langchain-aws",
    "bedrock_converse": "langchain-aws",
    "cohere": "langchain-cohere",
    "deepseek": "langchain-deepseek",
    "fireworks": "langchain-fireworks",
    "google_anthropic_vertex": "langchain-google-vertexai",
    "google_genai": "langchain-google-genai",
    "google_vertexai": "langchain-google-vertexai",
    "groq": "langchain-groq",
    "huggingface": "langchain-huggingface",
    "ibm": "langchain-ibm",
    "litellm": "langchain-litellm",
    "mistralai": "langchain-mistralai",
    "nvidia": "langchain-nvidia-ai-endpoints",
    "ollama": "langchain-ollama",
    "openrouter": "langchain-openrouter",
    "perplexity": "langchain-perplexity",
    "together": "langchain-together",
    "upstage": "langchain-upstage",
    "xai": "langchain-xai",
}
"""Providers that LangChain opens by name, and the package that each needs. Not `openai`: that is the default path."""


def split_provider(model: str) -> tuple[str, str]:
    """Split `provider:model`; the provider is empty for OpenAI's protocol, also for names such as `llama3.1:8b`."""
    provider, colon, name = model.partition(":")
    if colon and provider == "openai":
        return "", name
    if colon and provider in PROVIDERS:
        return provider, name
    return "", model
