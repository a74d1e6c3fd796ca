"""Endpoint of each model that the settings name: address, key and form of requests."""

import os
from collections.abc import Callable, Mapping, Sequence

from mimir.bootstrap.models.keyring_keys import read_key
from mimir.domain.agent import ROLES
from mimir.domain.value_class import value_class
from mimir.errors import ConfigurationError
from mimir.llm.config import OPENAI_URL, EndpointConfig, TokenLimit, split_provider
from mimir.llm.proxies import choose_proxy
from mimir.settings.layers import LoadedSettings
from mimir.settings.model import EndpointSettings, Settings
from mimir.settings.providers import PRESETS, ProviderPreset

SCRIPTED = "play:"
_OPENAI = "openai"

ReadKey = Callable[[str], str]
"""Returns the key of an endpoint from the keyring."""


@value_class
class ModelUse:
    """One model of a run, and where it is asked."""

    model: str
    """Full name; empty: the endpoint's default."""
    roles: tuple[str, ...]
    provider: str
    """Title of the provider, or the name of the endpoint."""
    base_url: str
    """Empty: a library decides, or no server is asked."""
    key: str
    """Origin of the key; empty: none is sent."""
    note: str = ""
    """Hint about the provider. Empty: none."""

    @property
    def where(self) -> str:
        """Provider and address."""
        return f"{self.provider} ({self.base_url})" if self.base_url else self.provider


def configure_endpoint(
    settings: Settings, model: str, *, read: ReadKey = read_key
) -> EndpointConfig:
    """Return the endpoint of a model; the model's name in it is without the endpoint.

    Raises:
        ConfigurationError: The address or the key can never work, or the keyring does not answer.
    """
    llm = settings.llm
    name, own = settings.split_endpoint(model or llm.model)
    section, preset = _section(settings, name), _preset(settings, name)
    url = section.base_url or preset.address(os.environ)
    if name and not url:
        raise ConfigurationError(
            f"The endpoint {name!r} has no address: {preset.url_variable or f'llm.endpoints.{name}.base_url'} is not set.",
            next_step=f"Set it: mimir config set llm.endpoints.{name}.base_url URL",
        )
    key, origin = _key(settings, name)
    return EndpointConfig(
        name=name,
        base_url=url,
        api_key=key or (read(name) if section.api_key_in_keyring else ""),
        key_source=origin or f"llm.endpoints.{name}.api_key" if name else origin or "llm.api_key",
        key_variable=section.api_key_env or preset.key_variable,
        key_header=preset.key_header,
        needs_key=bool(name and (section.api_key_env or preset.key_variable)),
        token_parameter=preset.token_parameter,
        without=preset.without,
        model=own,
        extra_body=section.extra_body,
        headers=section.headers,
        lane_header=llm.lane_header,
        structured=section.structured or llm.structured,
        connect_seconds=llm.connect_seconds,
        stall_seconds=llm.stall_seconds,
        answer_seconds=llm.answer_seconds,
        max_answer_bytes=llm.max_answer_bytes,
        context_tokens=_own_limit(llm.context_tokens, name),
        max_output_tokens=_own_limit(llm.max_output_tokens, name),
        proxy=choose_proxy(url or OPENAI_URL, llm.proxy.get_secret_value(), os.environ),
    )


def locate_model(settings: Settings, model: str) -> tuple[str, str]:
    """Return own name and base URL of a model; the URL is empty for another protocol."""
    if model.startswith(SCRIPTED) or _package_provider(settings, model):
        return model, ""
    name, own = settings.split_endpoint(model)
    url = _section(settings, name).base_url or _preset(settings, name).address(os.environ)
    return own, url or ("" if name else OPENAI_URL)


def require_keys(settings: Settings, models: Sequence[str]) -> None:
    """Require a key for each model that needs one; raise `ConfigurationError`."""
    for model in models:
        if not model.startswith(SCRIPTED) and not _package_provider(settings, model):
            configure_endpoint(settings, model).require_key()


def models_of_roles(settings: Settings) -> Sequence[str]:
    """Return the full names of the models that a run asks, each once."""
    return tuple(dict.fromkeys(settings.model_of(role) for role in ROLES))


def describe_models(loaded: LoadedSettings) -> Sequence[ModelUse]:
    """Return the models of all roles with their endpoints; no key, and nothing is asked."""
    settings = loaded.settings
    roles: dict[str, list[str]] = {}
    for role in ROLES:
        roles.setdefault(settings.model_of(role), []).append(role)
    return [_describe(loaded, model, tuple(users)) for model, users in roles.items()]


def _describe(loaded: LoadedSettings, model: str, roles: tuple[str, ...]) -> ModelUse:
    settings = loaded.settings
    if model.startswith(SCRIPTED):
        return ModelUse(model=model, roles=roles, provider="scripted model", base_url="", key="")
    if package := _package_provider(settings, model):
        provider = f"{package} (LangChain)"
        return ModelUse(model=model, roles=roles, provider=provider, base_url="", key="")
    name = settings.split_endpoint(model)[0]
    section, preset = _section(settings, name), _preset(settings, name)
    url = locate_model(settings, model)[1]
    config = EndpointConfig(name=name, base_url=url) if url else None
    is_openai = not name and config is not None and config.is_openai
    origin = _key(settings, name)[1]
    if name and not origin and section.api_key_in_keyring:
        origin = "the keyring"
    return ModelUse(
        model=model,
        roles=roles,
        provider="OpenAI" if is_openai else preset.title or "llm.base_url",
        base_url=config.base_url if config else "",
        key=origin if name else loaded.origins.get("llm.api_key", ""),
        note=preset.note,
    )


def _package_provider(settings: Settings, model: str) -> str:
    """Return the LangChain provider of a model; empty for OpenAI's protocol."""
    return "" if settings.split_endpoint(model)[0] else split_provider(model)[0]


def _section(settings: Settings, name: str) -> EndpointSettings:
    llm = settings.llm
    if name:
        return llm.endpoints.get(name, EndpointSettings())
    return EndpointSettings(base_url=llm.base_url, extra_body=llm.extra_body, headers=llm.headers)


def _preset(settings: Settings, name: str) -> ProviderPreset:
    if name:
        return PRESETS.get(name, ProviderPreset(title=name))
    return ProviderPreset(title="", key_variable=settings.llm.api_key_env, token_parameter="")


def _key(settings: Settings, name: str) -> tuple[str, str]:
    """Return the key of an endpoint and its origin, without the keyring."""
    if not name:
        return settings.api_key, ""
    section = settings.llm.endpoints.get(name, EndpointSettings())
    if own := section.api_key.get_secret_value():
        return own, "your own settings file"
    variable = section.api_key_env or _preset(settings, name).key_variable
    if value := os.environ.get(variable, "") if variable else "":
        return value, f"the variable {variable}"
    # The key of `llm` goes to OpenAI alone, or to `llm.base_url`.
    is_openai = name == _OPENAI and not section.base_url and not settings.llm.base_url
    return (settings.api_key, "llm.api_key") if is_openai and settings.api_key else ("", "")


def _own_limit(limit: TokenLimit, name: str) -> TokenLimit:
    """Return a limit with the models' names without the endpoint."""
    if not name or not isinstance(limit, Mapping):
        return limit
    return {model.removeprefix(f"{name}/"): tokens for model, tokens in limit.items()}
