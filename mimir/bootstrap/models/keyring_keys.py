"""Keys in the system's keyring, which is optional and waited for with a limit."""

import threading
from collections.abc import Callable
from importlib import import_module
from typing import cast

from mimir.errors import ConfigurationError

SERVICE = "mimir"
MOST_SECONDS = 10.0
"""Longest wait for the keyring, which may ask the user to unlock it."""


def read_key(endpoint: str, *, seconds: float = MOST_SECONDS) -> str:
    """Return the key of an endpoint.

    Raises:
        ConfigurationError: There is no keyring, it does not answer in time, or it has no such key.
    """
    found = _ask("read from", "get_password", (SERVICE, endpoint), seconds)
    if not found:
        raise ConfigurationError(
            f"The keyring has no key for the endpoint {endpoint!r}.",
            next_step=_other_ways(endpoint),
        )
    return found


def write_key(endpoint: str, key: str) -> None:
    """Store the key of an endpoint; raise `ConfigurationError` as `read_key` does."""
    _ask("written to", "set_password", (SERVICE, endpoint, key), MOST_SECONDS)


def _ask(verb: str, name: str, values: tuple[str, ...], seconds: float) -> str | None:
    """Call a function of the library by its name, because the library is optional."""
    answers: list[str | None] = []
    faults: list[Exception] = []

    def ask() -> None:
        try:
            function = cast("Callable[..., str | None]", getattr(import_module("keyring"), name))
            answers.append(function(*values))
        except Exception as error:  # noqa: BLE001  every backend has its own errors
            faults.append(error)

    # A daemon: a backend that hangs delays neither the command nor the end of the process.
    thread = threading.Thread(target=ask, daemon=True)
    thread.start()
    thread.join(seconds)
    if answers:
        return answers[0]
    raise ConfigurationError(
        f"The key of the endpoint {values[1]!r} cannot be {verb} the keyring: {_explain(faults, seconds)}.",
        next_step=_other_ways(values[1]),
    )


def _explain(faults: list[Exception], seconds: float) -> str:
    if not faults:
        return f"the keyring did not answer within {seconds:g} s"
    # A module of a backend may be missing too.
    if isinstance(faults[0], ModuleNotFoundError) and faults[0].name == "keyring":
        return "the package keyring is not installed (pip install 'mimir[keyring]')"
    # The text of a backend may hold anything, so only its kind is shown.
    return f"the keyring does not work here ({type(faults[0]).__name__})"


def _other_ways(endpoint: str) -> str:
    return (
        f"Unlock the keyring, or set the variable of the key, or write it to your own file: "
        f"mimir config set llm.endpoints.{endpoint}.api_key -"
    )
