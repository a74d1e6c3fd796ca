"""First settings of a user: the models of this machine, and the lines of a choice."""

import asyncio
import os
import re
from collections.abc import Sequence
from decimal import Decimal
from pathlib import Path
from typing import Literal
from urllib.parse import urlsplit

from mimir.bootstrap.models.endpoints import configure_endpoint
from mimir.bootstrap.models.keyring_keys import write_key
from mimir.bootstrap.settings_files import SettingChange, change_lines, own_file
from mimir.domain.value_class import value_class
from mimir.errors import ConfigurationError
from mimir.llm.config import EndpointConfig
from mimir.llm.openai.model_list import ModelList, list_models
from mimir.settings.layers import LoadedSettings
from mimir.settings.model import EndpointSettings
from mimir.settings.providers import PRESETS, ProviderPreset

LIST_SECONDS = 2.0
"""Longest wait for the list of an endpoint's models."""
_FIND_SECONDS = 0.7
"""Longest wait for a server on this machine."""

KeyPlace = Literal["", "variable", "file", "keyring"]
"""Place of a key; empty: none is needed."""


@value_class
class ProviderOffer:
    """A provider as this machine finds it."""

    name: str
    title: str
    found: str = ""
    """Sign of it on this machine: a variable, or an answering server. Empty: none."""


@value_class
class SetupChoice:
    """Answers to the questions of `mimir init`."""

    provider: str
    base_url: str = ""
    """Empty: the provider's."""
    model: str
    key_place: KeyPlace = ""
    key: str = ""
    """Key to store; empty for a variable."""
    max_calls: int | None = None
    max_cost: Decimal | None = None


async def find_providers() -> Sequence[ProviderOffer]:
    """Return all providers: those with a key or a running server first."""

    async def look(name: str, preset: ProviderPreset) -> ProviderOffer:
        found = f"{preset.key_variable} is set" if os.environ.get(preset.key_variable) else ""
        if preset.is_local:
            config = EndpointConfig(name=name, base_url=preset.base_url)
            listed = await list_models(config, seconds=_FIND_SECONDS)
            found = f"answers at {preset.base_url}" if listed.models else ""
        return ProviderOffer(name=name, title=preset.title, found=found)

    offers = await asyncio.gather(*(look(name, one) for name, one in PRESETS.items()))
    return sorted(offers, key=lambda offer: not offer.found)


def endpoint_of(loaded: LoadedSettings, choice: SetupChoice) -> EndpointConfig:
    """Return the endpoint of a choice, as a run would use it.

    Raises:
        ConfigurationError: The address or the key can never work, or there is no address.
    """
    settings = loaded.settings
    given = {"base_url": choice.base_url, "api_key": choice.key}
    kept = settings.llm.endpoints.get(choice.provider, EndpointSettings()).model_dump()
    kept["api_key_in_keyring"] = False  # the question is where the key will be
    section = EndpointSettings.model_validate({**kept, **{k: v for k, v in given.items() if v}})
    endpoints = {**settings.llm.endpoints, choice.provider: section}
    trial = settings.model_copy(
        update={"llm": settings.llm.model_copy(update={"endpoints": endpoints})}
    )
    return configure_endpoint(trial, f"{choice.provider}/{choice.model or 'model'}")


async def ask_models(config: EndpointConfig) -> ModelList:
    """Return the models of an endpoint, if it lists them in time."""
    return await list_models(config, seconds=LIST_SECONDS)


def find_key(choice: SetupChoice, loaded: LoadedSettings) -> tuple[str, str]:
    """Return the variable that may hold the key of a provider, and its value; empty: none."""
    section = loaded.settings.llm.endpoints.get(choice.provider, EndpointSettings())
    preset = PRESETS.get(choice.provider)
    variable = section.api_key_env or (preset.key_variable if preset else "")
    return variable, os.environ.get(variable, "")


def write_choice(choice: SetupChoice, config: EndpointConfig) -> tuple[Path, bool]:
    """Write a choice to the user's own file; return its path, and whether it changed.

    Raises:
        ConfigurationError: The file or the keyring cannot be written; then no setting is changed.
    """
    path = own_file()
    table = f"llm.endpoints.{choice.provider}"
    if choice.key_place == "keyring":
        write_key(choice.provider, choice.key)
    limits = (("max_calls", choice.max_calls), ("max_cost", choice.max_cost))
    changes = [
        SettingChange(table="llm", key="model", value=f"{choice.provider}/{choice.model}"),
        SettingChange(
            table=table,
            key="api_key",
            value=choice.key if choice.key_place == "file" else None,
        ),
        SettingChange(
            table=table,
            key="api_key_in_keyring",
            value=True if choice.key_place == "keyring" else None,
        ),
        SettingChange(table=table, key="base_url", value=config.base_url),
        *(SettingChange(table="run", key=key, value=_number(value)) for key, value in limits),
    ]
    return path, change_lines(path, changes, is_private=True)


def _number(value: Decimal | int | None) -> float | int | None:
    return float(value) if isinstance(value, Decimal) else value


def name_address(url: str) -> str:
    """Return the name of the endpoint at a user's own address; empty: it has no host."""
    try:
        address = urlsplit(url)
        port = address.port
    except ValueError:  # no port, no IPv6 address
        return ""
    host = re.sub(r"[^a-z0-9]+", "-", (address.hostname or "").lower()).strip("-")
    # The port is a part of it: a machine may serve several.
    name = f"{host}-{port}" if host and port else host
    return f"{name}-own" if name in PRESETS else name


def require_provider(name: str, base_url: str) -> None:
    """Require that a provider is known or has an address; raise `ConfigurationError`."""
    if name not in PRESETS and not base_url:
        raise ConfigurationError(
            f"{name!r} is no provider that mimir knows.",
            next_step=f"Use one of {', '.join(PRESETS)}, or give the address: --base-url URL",
        )
