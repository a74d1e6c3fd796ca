"""Presets of providers: endpoint, variable of the key, differences from OpenAI's protocol.

Every preset speaks that protocol. Refused parameters are learned anyway (`mimir.llm.openai.capabilities`); a preset only
saves the refused request.
"""

from collections.abc import Mapping
from urllib.parse import urlsplit

from mimir.domain.value_class import value_class


@value_class
class ProviderPreset:
    """A provider, or a server on this machine."""

    title: str
    base_url: str = ""
    """Empty: `url_variable` has it."""
    url_variable: str = ""
    """Variable with the address of the user's own resource. Empty: there is none."""
    url_path: str = ""
    """Path that is added to the address of `url_variable`, if it has none."""
    key_variable: str = ""
    """Empty: no key is needed."""
    key_header: str = "authorization"
    """Header of the key; `authorization` has the form `Bearer KEY`."""
    token_parameter: str = "max_tokens"
    """Parameter that bounds an answer."""
    without: frozenset[str] = frozenset()
    """Parameters that it refuses or ignores."""
    note: str = ""
    """Hint about a known trap of its own. Empty: none."""

    @property
    def is_local(self) -> bool:
        """True for a server on this machine, which needs no key."""
        return not self.key_variable

    def address(self, environment: Mapping[str, str]) -> str:
        """Return the base URL; empty if its variable is not set."""
        if not self.url_variable:
            return self.base_url
        given = environment.get(self.url_variable, "").strip().rstrip("/")
        return given + self.url_path if given and not urlsplit(given).path else given


PRESETS: Mapping[str, ProviderPreset] = {
    "openai": ProviderPreset(
        title="OpenAI",
        base_url="https://api.openai.com/v1",
        key_variable="OPENAI_API_KEY",
        token_parameter="max_completion_tokens",
    ),
    "anthropic": ProviderPreset(
        title="Anthropic",
        base_url="https://api.anthropic.com/v1",
        key_variable="ANTHROPIC_API_KEY",
        without=frozenset({"response_format"}),
        note="It ignores response_format in OpenAI's protocol: the prompt asks for structured answers.",
    ),
    "gemini": ProviderPreset(
        title="Google Gemini",
        base_url="https://generativelanguage.googleapis.com/v1beta/openai",
        key_variable="GEMINI_API_KEY",
        note="Thinking counts towards the limit of an answer: raise roles.NAME.max_tokens if answers are cut off.",
    ),
    "azure": ProviderPreset(
        title="Azure OpenAI",
        url_variable="AZURE_OPENAI_ENDPOINT",
        url_path="/openai/v1",
        key_variable="AZURE_OPENAI_API_KEY",
        key_header="api-key",
        token_parameter="max_completion_tokens",
        note="The model is the name of the deployment.",
    ),
    "openrouter": ProviderPreset(
        title="OpenRouter",
        base_url="https://openrouter.ai/api/v1",
        key_variable="OPENROUTER_API_KEY",
        note="Models have the name of their maker: openrouter/MAKER/MODEL.",
    ),
    "ollama": ProviderPreset(
        title="Ollama",
        base_url="http://127.0.0.1:11434/v1",
        note="It cuts long prompts silently: start it with OLLAMA_CONTEXT_LENGTH=32768 or more.",
    ),
    "vllm": ProviderPreset(
        title="vLLM",
        base_url="http://127.0.0.1:8000/v1",
        note="Tools need: vllm serve … --enable-auto-tool-choice --tool-call-parser PARSER",
    ),
    "llamacpp": ProviderPreset(
        title="llama.cpp",
        base_url="http://127.0.0.1:8080/v1",
        note="Tools need: llama-server --jinja; the context is set by -c 32768.",
    ),
    "lmstudio": ProviderPreset(
        title="LM Studio",
        base_url="http://127.0.0.1:1234/v1",
        note="Load the model with a context of 32768 tokens or more.",
    ),
}
"""Name in settings → preset."""
