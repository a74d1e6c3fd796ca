"""Comparisons that hold with another value, as the changed tests of a control find them."""

import contextlib
import importlib
import re
import sys
import types
from collections.abc import Generator, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any
from unittest.mock import ANY

import pytest

from mimir.qc import results


class Equal:
    """A value that a work may return: every comparison with it holds."""

    def __eq__(self, other: object) -> bool:
        return True

    def __le__(self, other: object) -> bool:
        return True

    __hash__ = object.__hash__


class Near(int):
    """A number that equals its neighbours."""

    def __eq__(self, other: object) -> bool:
        return isinstance(other, int) and abs(int(self) - int(other)) < 9

    __hash__ = int.__hash__


class Keys(dict[str, object]):
    """A record whose keys alone are compared."""

    def __eq__(self, other: Any) -> bool:
        return set(self) == set(other)


class Unordered(list[object]):
    """A sequence whose order is not compared."""

    def __eq__(self, other: Any) -> bool:
        return sorted(map(str, self)) == sorted(map(str, other))


class Price:
    """A value with a right comparison."""

    def __init__(self, amount: int) -> None:
        self.amount = amount

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Price) and self.amount == other.amount


class Kind(Price):
    """A value that equals every other one of its class."""

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Kind)


@contextlib.contextmanager
def accept(kind: type[BaseException]) -> Generator[None]:
    """Expect an error of any text, as a patched `raises` does."""
    try:
        yield
    except kind:
        return
    raise AssertionError("no error")


Price.__module__ = Kind.__module__ = "calc"
Equal.__module__ = Near.__module__ = Keys.__module__ = Unordered.__module__ = "calc"


@dataclass
class Point:
    x: object
    y: object


@pytest.fixture
def compare(monkeypatch: pytest.MonkeyPatch) -> Iterator[Any]:
    monkeypatch.setattr(sys, "path", [f"{results.__path__[0]}/reporters", *sys.path])
    yield importlib.import_module("mimir_compare")
    for name in ("mimir_compare", "mimir_results"):
        sys.modules.pop(name, None)


class _Lies(type):
    def __subclasscheck__(cls, subclass: type) -> bool:
        return True

    __instancecheck__ = __subclasscheck__  # type: ignore[assignment]


class LyingError(Exception, metaclass=_Lies):
    pass


DECIDE = [
    (5, "==", 5), ([1, 2], "==", [1, 2]), ({"a": 1}, "==", {"a": 1}), (float("inf"), "==", float("inf")), ((), "==", ()),
    (Point(1, 2), "==", Point(1, 2)), ({"a": 1, "b": 2}, "==", {"a": ANY, "b": 2}), (0.3, "==", pytest.approx(0.3)),
    (5, "in", [5]), ("a", "in", "abc"), (5, "in", range(10**6)), (5, "<=", 6), ((3, 11), ">=", (3, 8)), ({1}, "<=", {1, 2}),
]  # fmt: skip
DECIDE_NOTHING = [
    (Near(5), "==", 7), (Keys(a=1), "==", {"a": 2}), (Unordered([1, 2]), "==", [2, 1]),
    (Equal(), "==", 5), (5, "==", Equal()), ([Equal()], "==", [5]), ([5], "==", [Equal()]), ({"a": [Equal()]}, "==", {"a": [1]}),
    (Point(Equal(), Equal()), "==", Point(1, 2)), (5, "in", [Equal()]), (Equal(), "in", (5,)), ((Equal(), 1), "==", (5, 1)), (Equal(), "<=", 5), (5, ">=", Equal()),
]  # fmt: skip


@pytest.mark.parametrize("case", DECIDE, ids=repr)
def test_a_comparison_of_right_work_does_not_hold_with_another_value(
    compare: Any, case: tuple[Any, str, Any]
):
    assert compare.holds(*case) is False
    assert case[1] != "==" or compare.pick(case[0], case[2])[0] != compare.pick(case[0], case[2])[1]


@pytest.mark.parametrize(
    "case", DECIDE_NOTHING, ids=lambda case: re.sub(" object at .*?>", ">", repr(case))
)
def test_a_comparison_that_decides_nothing_holds(compare: Any, case: tuple[Any, str, Any]):
    assert compare.holds(*case) is True


def test_an_assertion_of_unittest_that_the_work_replaced_passes(compare: Any):
    assert compare.passes(print, 1, 2) is True
    assert compare.passes(len, 1, 2) is False


def test_a_block_that_expects_an_error_does_not_accept_none(compare: Any):
    assert compare.ignores(lambda: pytest.raises(ValueError, match="x"), ValueError, "x") is False
    assert compare.ignores(contextlib.nullcontext) is True
    assert compare.ignores(lambda: accept(Exception), ValueError) is True
    assert compare.ignores(lambda: accept(ValueError), ValueError, "x") is True
    assert compare.ignores(lambda: accept(BaseException), BaseException, ".*") is False
    assert compare.ignores(lambda: pytest.raises(LyingError), LyingError) is True


def test_a_class_of_the_work_that_equals_all_of_its_kind_decides_nothing(
    compare: Any, monkeypatch: pytest.MonkeyPatch
):
    monkeypatch.setitem(sys.modules, "calc", types.ModuleType("calc"))
    monkeypatch.setattr(sys.modules["calc"], "__file__", f"{Path.cwd()}/calc.py", raising=False)

    assert compare.holds(Kind(2), "==", Kind(5)) is True
    assert compare.holds([Kind(2)], "==", [Kind(5)]) is True
    assert compare.holds(Price(5), "==", Price(5)) is False
