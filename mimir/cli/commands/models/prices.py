"""`mimir prices`: prices of models, and an update from a maintained list."""

from typing import TYPE_CHECKING, Annotated

import typer

from mimir.cli.session import CommandSession
from mimir.errors import UsageError

if TYPE_CHECKING:
    from collections.abc import Mapping

Words = Annotated[list[str] | None, typer.Argument(metavar="[update [MODEL]...]")]


def prices(session: CommandSession, words: Words = None) -> int:
    """List the prices of models, or write them from a maintained list.

    `update` writes prices per million tokens, in US dollars, of the models that the settings name,
    or of each MODEL. A price without a date is your own and stays. A model that the list does not
    have stays without a price.
    """
    match words or []:
        case []:
            return _list(session)
        case ["update", *models]:
            return _update(session, models)
        case _:
            raise UsageError("Unexpected arguments.", next_step="Write: mimir prices update MODEL")


def _list(session: CommandSession) -> int:
    from mimir.bootstrap.models.endpoints import models_of_roles

    settings = session.load().settings
    known = settings.llm.prices
    models = dict.fromkeys([*known, *filter(None, models_of_roles(settings))])
    found = {
        name: known[name].model_dump(mode="json", exclude_none=True) if name in known else {}
        for name in models
    }
    entries = [{"model": name, **price} for name, price in found.items()]
    rows = [(name, _describe(price) or "unknown") for name, price in found.items()]
    is_whole = bool(found) and all(found.values())
    step = [] if is_whole else ["next: mimir prices update"]
    return session.show({"prices": entries}, *_table(session, rows), *step)


def _update(session: CommandSession, models: list[str]) -> int:
    from mimir.bootstrap.clock import SystemClock
    from mimir.bootstrap.models.price_list import update_prices
    from mimir.bootstrap.settings_files import own_file

    loaded = session.load()
    updates = update_prices(loaded, models, SystemClock().now())
    if not updates:
        raise UsageError(
            "The settings name no model.", next_step="Write: mimir prices update MODEL"
        )
    entries = [{"model": one.model, "state": one.state, **one.price} for one in updates]
    words = {"kept": "kept, it is your own: ", "unknown": "unknown", "unchanged": "unchanged: "}
    rows = [(one.model, words.get(one.state, "") + _describe(one.price)) for one in updates]
    shape = {"path": str(own_file()), "prices": entries}
    return session.show(shape, *_table(session, rows), f"file: {own_file()}")


def _describe(price: "Mapping[str, object]") -> str:
    if not price:
        return ""
    text = f"{price['input']} in, {price['output']} out"
    if "cached_input" in price:
        text += f", {price['cached_input']} cached"
    if "long_from" in price:
        text += f"; above {price['long_from']} tokens {price['long_input']} in, {price['long_output']} out"
    date = price.get("as_of")
    return f"{text} ({price.get('source')}, {date})" if date else text


def _table(session: CommandSession, rows: list[tuple[str, str]]) -> list[str]:
    from mimir.cli.console import clean_line
    from mimir.cli.layout import table

    if not rows:
        return ["No model has a price yet."]
    cleaned = [(clean_line(name), clean_line(text)) for name, text in rows]
    return table([("model", "per million tokens"), *cleaned], session.console.width)
