"""Sizes of the batteries of tests/trust, defined here alone, and the record of each battery's cases.

`small` is part of `make test`, `ci` is `make trust`, `full` is `make trust FULL=1`.
"""

import contextlib
import os
from collections.abc import Generator
from typing import Literal, TypeVar, cast, get_args

import pytest

from tests.support.environment import TRUST_SIZE

Size = Literal["small", "ci", "full"]
T = TypeVar("T")


def size() -> Size:
    """Return how hard to try; set as MIMIR_TEST_TRUST."""
    given = os.environ.get(TRUST_SIZE, "small")
    assert given in get_args(Size), f"MIMIR_TEST_TRUST is {given!r}; it is small, ci or full"
    return cast("Size", given)


def sized(*, small: int, ci: int, full: int) -> int:
    """Return the number for the size in force."""
    return {"small": small, "ci": ci, "full": full}[size()]


def sample(cases: list[T], small: int) -> list[T]:
    """Return all cases; at the small size so many of them, spread evenly, always the same."""
    if size() != "small" or len(cases) <= small:
        return cases
    return [cases[number * len(cases) // small] for number in range(small)]


class Cases:
    """The cases of one test, and their failures: a case that fails does not stop the others."""

    SHOWN = 20

    def __init__(self) -> None:
        self.passed = 0
        self.failures: list[str] = []

    @property
    def tried(self) -> int:
        """All cases so far."""
        return self.passed + len(self.failures)

    def count(self, number: int = 1) -> None:
        """Count cases that passed."""
        self.passed += number

    @contextlib.contextmanager
    def case(self, name: object) -> Generator[None]:
        """Try one case; an assertion or an error in it is written down under its name."""
        try:
            yield
        except (Exception, pytest.fail.Exception) as error:  # noqa: BLE001  each is told, then all fail
            self.failures.append(f"{name}: {type(error).__name__}: {error}"[:2000])
        else:
            self.passed += 1

    def describe(self) -> str:
        """Return the failures as readable text."""
        more = len(self.failures) - self.SHOWN
        shown = [*self.failures[: self.SHOWN], *([f"… and {more} more"] if more > 0 else [])]
        return f"{len(self.failures)} of {self.tried} cases failed:\n" + "\n".join(shown)
