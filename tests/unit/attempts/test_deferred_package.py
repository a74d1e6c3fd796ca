import importlib
import sys
from pathlib import Path

import pytest

from mimir.attempts.deferred_package import defer_package

FILES = {
    "__init__.py": 'from made_package.part import A\n\nB = 2\n__all__ = ["A", "B"]\n',
    "part.py": "A = 1\n",
}


@pytest.fixture
def package(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> str:
    (tmp_path / "made_package").mkdir()
    for name, text in FILES.items():
        (tmp_path / "made_package" / name).write_text(text)
    monkeypatch.syspath_prepend(str(tmp_path))
    for name in ("made_package", "made_package.part"):
        monkeypatch.setitem(sys.modules, name, None)  # to be restored
        del sys.modules[name]
    return "made_package"


def test_a_part_is_imported_without_the_package_and_each_use_loads_it_once(package: str):
    defer_package(package)
    module = sys.modules[package]
    assert importlib.import_module("made_package.part").A == 1
    assert "B" not in vars(module)
    read: dict[str, int] = {}
    exec("from made_package import *", read)
    assert (read["A"], read["B"]) == (1, 2)
    defer_package(package)
    assert importlib.import_module(package) is module
    with pytest.raises(AttributeError, match="no attribute 'c'"):
        _ = module.c


def test_a_package_that_does_not_exist_is_no_error():
    defer_package("made_package_that_is_not_there")
    assert "made_package_that_is_not_there" not in sys.modules
