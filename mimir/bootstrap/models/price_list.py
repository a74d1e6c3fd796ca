"""Prices of models from a maintained list, written into the user's own settings file."""

from collections.abc import Mapping, Sequence
from datetime import datetime
from decimal import ROUND_CEILING, Decimal
from importlib.metadata import version
from typing import TYPE_CHECKING, Literal, cast

from mimir.bootstrap.models.endpoints import locate_model, models_of_roles
from mimir.bootstrap.settings_files import SettingChange, change_lines, own_file
from mimir.domain.value_class import value_class
from mimir.errors import ConfigurationError
from mimir.settings.layers import LoadedSettings
from mimir.settings.model import PriceSettings

if TYPE_CHECKING:
    from genai_prices.types import ModelInfo, Tier

LIST = "genai-prices"
_FINEST = Decimal("0.000001")


@value_class
class PriceUpdate:
    """Result of an update for one model."""

    model: str
    state: Literal["written", "unchanged", "kept", "unknown"]
    """kept: the user has set the price; unknown: the list does not have the model."""
    price: Mapping[str, object]


def update_prices(
    loaded: LoadedSettings, named: Sequence[str], now: datetime
) -> Sequence[PriceUpdate]:
    """Write the list's prices of these models, or of all models of the settings.

    Raises:
        ConfigurationError: The list is not installed, or the file cannot be changed.
    """
    known = loaded.settings.llm.prices
    models = [*named] or [*models_of_roles(loaded.settings), *(m for m in known if known[m].as_of)]
    updates: list[PriceUpdate] = []
    for model in dict.fromkeys(name for name in models if name):
        given, found = known.get(model), find_price(loaded, model, now)
        if given is not None and not given.as_of:
            state, price = "kept", given.model_dump(exclude_none=True, exclude_defaults=True)
        elif not found:
            state, price = "unknown", {}
        else:
            state, price = ("written" if _write(model, found) else "unchanged"), found
        updates.append(PriceUpdate(model=model, state=state, price=price))
    return updates


def find_price(loaded: LoadedSettings, model: str, now: datetime) -> Mapping[str, object]:
    """Return the settings of a model's price; empty if the list does not have it.

    Raises:
        ConfigurationError: The list is not installed.
    """
    own, base_url = locate_model(loaded.settings, model)
    if not base_url:
        return {}
    try:
        from genai_prices.data_snapshot import get_snapshot
    except ImportError:
        raise ConfigurationError(
            f"The list of prices is not installed: {LIST}.",
            next_step="Install it: pip install 'mimir[prices]'. Or set llm.prices yourself.",
        ) from None
    try:
        # The provider is found by its address: another host has other prices.
        found = get_snapshot().find_provider_model(own, None, None, base_url)[1]
    except LookupError:
        return {}
    return _settings_of(found, now)


def _settings_of(found: "ModelInfo", now: datetime) -> Mapping[str, object]:
    listed = found.get_prices(now)
    short = [_amount(one, is_long=False) for one in _kinds(listed)]
    if short[0] is None or short[1] is None:
        return {}
    names = ("input", "output", "cached_input")
    price: dict[str, object] = dict(zip(names, short, strict=True))
    starts = [start for one in _kinds(listed) if (start := _start(one))]
    if starts:
        # One tier is enough: it begins with the first and has the price of the last.
        long = [_amount(one, is_long=True) for one in _kinds(listed)]
        price |= {"long_from": min(starts)}
        price |= {f"long_{name}": one for name, one in zip(names, long, strict=True)}
    price |= {"as_of": now.date().isoformat(), "source": f"{LIST} {version(LIST)}"}
    return {name: one for name, one in price.items() if one is not None}


def _kinds(listed: object) -> Sequence[object]:
    """Return the listed prices of prompts, answers, and prompts from the cache."""
    names = ("input_mtok", "output_mtok", "cache_read_mtok")
    return [getattr(listed, name, None) for name in names]


def _start(listed: object) -> int | None:
    """Return the tokens of the first tier; None: there is one price for all prompts."""
    tiers = cast("Sequence[Tier]", getattr(listed, "tiers", ()))
    return tiers[0].start if tiers else None


def _amount(listed: object, *, is_long: bool) -> float | None:
    """Return a price per million tokens, rounded up to six decimals; None: it is not listed."""
    tiers = cast("Sequence[Tier]", getattr(listed, "tiers", ()))
    amount: object = tiers[-1].price if tiers and is_long else getattr(listed, "base", listed)
    if not isinstance(amount, Decimal):
        return None
    return float(amount.quantize(_FINEST, ROUND_CEILING))


def _write(model: str, price: Mapping[str, object]) -> bool:
    table = f'llm.prices."{model}"'
    return change_lines(
        own_file(),
        [
            # New lines go to the top of a table: the last one first.
            SettingChange(table=table, key=key, value=price.get(key))
            for key in reversed(PriceSettings.model_fields)
        ],
        is_private=True,
    )
