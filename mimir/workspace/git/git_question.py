"""Questions to git about trees and commits, which never change: each has one answer.

`GitAnswers.ask` answers all of them, so recordings can note or replace the answers in one place.
"""

from __future__ import annotations

import functools
import inspect
from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from types import CoroutineType
from typing import Any, Concatenate, ParamSpec, TypeAlias, TypeVar

from mimir.domain.json_value import is_array

P = ParamSpec("P")
R = TypeVar("R")
A = TypeVar("A", bound="GitAnswers")


@dataclass(frozen=True, slots=True)
class GitQuestion:
    """One question to git."""

    words: tuple[object, ...]
    """Name and arguments, as JSON values; a recording finds the answer by them."""
    kind: type[object]
    """Type of the answer."""


class GitAnswers:
    """Base class of a history whose questions pass `ask`."""

    async def ask(self, question: GitQuestion, compute: Callable[[], Awaitable[R]], /) -> R:
        """Answer a question to git; recordings override this method."""
        return await compute()


# As text: the type of coroutines takes no arguments at run time.
Method: TypeAlias = "Callable[Concatenate[A, P], CoroutineType[Any, Any, R]]"


def git_question(
    name: str, kind: type[object], *, without: str = ""
) -> Callable[[Method[A, P, R]], Method[A, P, R]]:
    """Make a method pass its question to `ask`.

    Args:
        name: Name in recordings.
        kind: Type of the answer.
        without: Parameter that is no part of the question.
    """

    def decorate(method: Method[A, P, R]) -> Method[A, P, R]:
        signature = inspect.signature(method)

        @functools.wraps(method)
        async def ask(self: A, *args: P.args, **kwargs: P.kwargs) -> R:
            bound = signature.bind(self, *args, **kwargs)
            bound.apply_defaults()
            values = [v for p, v in bound.arguments.items() if p not in ("self", without)]
            words = (list(v) if is_array(v) else v for v in values)
            question = GitQuestion((name, *words), kind)
            return await self.ask(question, lambda: method(self, *args, **kwargs))

        return ask

    return decorate
