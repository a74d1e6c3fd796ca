"""Decorator of values: frozen, slotted, keyword-only dataclasses. Pure.

`dataclass` compiles six methods of each class at import, and a process uses few of its classes. Here `__init__` is compiled at its
first use, and all classes share the other methods.
"""

from collections.abc import Callable
from dataclasses import MISSING, Field, FrozenInstanceError, dataclass, field, fields
from functools import cache
from operator import attrgetter
from reprlib import recursive_repr
from typing import Any, TypeVar, cast, dataclass_transform

T = TypeVar("T")


@dataclass_transform(frozen_default=True, kw_only_default=True, field_specifiers=(field,))
def value_class(cls: type[T], /) -> type[T]:
    """Make a class a frozen, slotted, keyword-only dataclass."""
    cls.__doc__ = cls.__doc__ or cls.__name__  # else dataclass takes time to compose one
    for name, method in vars(_Shared).items():
        if callable(method) and cls.__dict__.get(name) is None:
            setattr(cls, name, method)
    kind: Any = cls
    if "__init__" not in vars(cls):
        kind.__init__ = _FirstInit()
    return dataclass(slots=True, kw_only=True, init=False, repr=False, eq=False)(cls)


class _FirstInit:
    """`__init__` of a class without objects: it is compiled when it is read."""

    def __get__(self, value: object, kind: Any) -> Callable[..., None]:
        # Two threads may compile it: both results are equal.
        kind.__init__ = _compile_init(kind)
        return kind.__init__ if value is None else kind.__init__.__get__(value)


class _Shared:
    """Methods of each value class."""

    @recursive_repr()
    def __repr__(self) -> str:
        shown = (f"{f.name}={getattr(self, f.name)!r}" for f in _fields(self) if f.repr)
        return f"{type(self).__qualname__}({', '.join(shown)})"

    def __eq__(self, other: object) -> bool:
        if other.__class__ is not self.__class__:
            return NotImplemented
        read = _compared_reader(self.__class__)
        return read(self) == read(other)

    def __hash__(self) -> int:
        return hash(_compared_reader(self.__class__)(self))

    def __setattr__(self, name: str, value: object) -> None:
        raise FrozenInstanceError(f"cannot assign to field {name!r}")

    def __delattr__(self, name: str) -> None:
        raise FrozenInstanceError(f"cannot delete field {name!r}")

    def __getstate__(self) -> list[object]:
        return [getattr(self, f.name) for f in _fields(self)]

    def __setstate__(self, state: list[object]) -> None:
        for one, value in zip(_fields(self), state, strict=True):
            object.__setattr__(self, one.name, value)


def _fields(value: Any) -> tuple[Field[Any], ...]:
    return fields(value)


@cache
def _compared_reader(kind: Any) -> Callable[[object], object]:
    """Return a function that returns the compared values of an object."""
    names = [f.name for f in fields(kind) if f.compare]
    return attrgetter(*names) if names else lambda _: ()


def _compile_init(kind: Any) -> Callable[..., None]:
    known: dict[str, Any] = {"_set": object.__setattr__}
    parameters, lines = ["self", "*"], list[str]()
    for one in fields(kind):
        name, value, default = one.name, one.name, f"={one.name}_"
        if one.default_factory is not MISSING:
            known[f"{name}_"] = one.default_factory
            value, default = f"{name}_() if {name} is _set else {name}", "=_set"
        elif one.default is not MISSING:
            known[f"{name}_"] = one.default
        else:
            default = ""
        parameters.append(name + default)
        lines.append(f"_set(self, {name!r}, {value})")
    if hasattr(kind, "__post_init__"):
        lines.append("self.__post_init__()")
    head = ", ".join(parameters if lines else ["self"])
    exec(f"def __init__({head}):\n " + "\n ".join(lines or ["pass"]), known)
    return cast("Callable[..., None]", known["__init__"])
