import copy
import inspect
import pickle
from collections.abc import Callable, Mapping
from dataclasses import FrozenInstanceError, asdict, dataclass, field, fields, replace
from pathlib import Path
from typing import Any

import pytest

import mimir
from mimir.domain.value_class import value_class


@value_class
class Size:
    """Two fields."""

    width: int
    height: int = 1


@value_class
class Box(Size):
    """Adds fields to those of its base class, and a check."""

    names: list[str] = field(default_factory=list[str])
    note: str = field(default="", compare=False, repr=False)

    def __post_init__(self) -> None:
        if self.width < 0:
            raise ValueError(self.width)


def declare(make: Callable[[type], type]) -> tuple[Any, Any, Any]:
    """Return three classes that `make` makes of equal declarations."""

    class Empty:
        pass

    class Base:
        a: int
        b: str = "x"

        def __hash__(self) -> int:
            return 7

    base: Any = make(Base)

    class Child(base):
        c: list[int] = field(default_factory=lambda: [1])
        d: int = field(default=2, compare=False, repr=False)

    return make(Empty), base, make(Child)


GIVEN: tuple[Mapping[str, Any], ...] = (
    {},
    {"a": 1},
    {"a": 1, "b": "y"},
    {"a": 1, "c": [2], "d": 3},
    {"z": 1},
)


def seen(kind: Any, given: Mapping[str, Any]) -> object:
    """Return all that can be observed of an object of a class, or the error."""
    try:
        one, other = kind(**given), kind(**given)
    except TypeError as error:
        return str(error).rpartition(".")[2]
    try:
        hashed: object = hash(one)
    except TypeError as error:
        hashed = str(error)
    kept = [(f.name, f.kw_only, f.compare, f.repr) for f in fields(kind)]
    return (repr(one), asdict(one), one == other, one == object(), hashed, kept, hasattr(one, "__dict__"))  # fmt: skip


def test_objects_are_as_those_of_dataclass():
    frozen = dataclass(frozen=True, slots=True, kw_only=True)
    for made, wanted in zip(declare(value_class), declare(frozen), strict=True):
        names = [list(inspect.signature(kind).parameters) for kind in (made, wanted)]
        assert names[0] == names[1]
        for given in GIVEN:
            assert seen(made, given) == seen(wanted, given)


def test_object_cannot_be_changed_and_can_be_copied():
    box = Box(width=1, names=["a"], note="n")
    for change in (lambda: setattr(box, "width", 2), lambda: delattr(box, "width")):
        with pytest.raises(FrozenInstanceError):
            change()
    assert box == replace(box, note="") != replace(box, height=2) != Size(width=1)
    assert box.names is not Box(width=1).names is not Box(width=1).names
    for same in (copy.copy(box), copy.deepcopy(box), pickle.loads(pickle.dumps(box))):
        assert (same, same.note) == (box, "n")
    with pytest.raises(ValueError, match="-1"):
        Box(width=-1)


def test_values_of_the_product_are_declared_by_it():
    slow = "@dataclass(frozen=True, slots=True, kw_only=True)\n"
    root = Path(mimir.__path__[0])
    found = {p.relative_to(root) for p in root.rglob("*.py") if slow in p.read_text("utf-8")}
    assert found == {Path("errors.py")}  # it imports nothing of mimir
