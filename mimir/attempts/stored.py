"""How values of an attempt become text in the store and come back.

The rule: a name of a file may hold bytes that are no UTF-8; they go through as half surrogates, which strict JSON readers refuse.
"""

from typing import Generic, TypeVar

from pydantic import TypeAdapter, ValidationError

from mimir.errors import StoreError
from mimir.store.schema import pack, unpack

T = TypeVar("T")


class Stored(Generic[T]):
    """Writes and reads values of one type."""

    def __init__(self, type: type[T]) -> None:
        self._adapter = TypeAdapter(type)

    def write(self, value: T) -> str:
        """Return the JSON text of a value."""
        return pack(self._adapter.dump_python(value, mode="json"))

    def read(self, text: str) -> T:
        """Return the value that `write` wrote.

        Raises:
            StoreError: It is not of this type, or no JSON.
        """
        try:
            return self._adapter.validate_python(unpack(text))
        except ValidationError as error:
            raise StoreError(
                f"What is stored of an attempt cannot be read: {error.error_count()} problem(s).",
                next_step="See what was changed: mimir verify",
            ) from None
