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
    if session.json:
        entries = [{"model": name, **price} for name, price in found.items()]
        session.console.json({"schema": 1, "prices": entries})
        return 0
    _say_table(session, [(name, _describe(price) or "unknown") for name, price in found.items()])
    if not all(found.values()) or not found:
        session.console.say("next: mimir prices update")
    return 0


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
    if session.json:
        entries = [{"model": one.model, "state": one.state, **one.price} for one in updates]
        session.console.json({"schema": 1, "path": str(own_file()), "prices": entries})
        return 0
    words = {"kept": "kept, it is your own: ", "unknown": "unknown", "unchanged": "unchanged: "}
    rows = [(one.model, words.get(one.state, "") + _describe(one.price)) for one in updates]
    _say_table(session, rows)
    session.console.say(f"file: {own_file()}")
    return 0


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


def _say_table(session: CommandSession, rows: list[tuple[str, str]]) -> None:
    from mimir.cli.console import clean_line
    from mimir.cli.layout import table

    if not rows:
        session.console.say("No model has a price yet.")
        return
    cleaned = [(clean_line(name), clean_line(text)) for name, text in rows]
    lines = table([("model", "per million tokens"), *cleaned], session.console.width)
    session.console.say("\n".join(lines))
