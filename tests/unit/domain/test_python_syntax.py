"""Trees of Python text are built by one thread at a time, in one module."""

import ast
import threading
from pathlib import Path

import pytest

import mimir
from mimir.domain import python_syntax


def test_only_one_thread_builds_a_tree(monkeypatch: pytest.MonkeyPatch) -> None:
    building: list[int] = []
    most: list[int] = []
    parse = ast.parse

    def observed(text: str) -> ast.Module:
        building.append(1)
        most.append(len(building))
        for _ in range(100):
            parse("x = 1\n" * 50)  # gives other threads their turn
        building.pop()
        return parse(text)

    monkeypatch.setattr(python_syntax.ast, "parse", observed)
    threads = [threading.Thread(target=python_syntax.parse_module, args=("y",)) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert most == [1] * 4


@pytest.mark.parametrize("text", ["def", "x = '\0'", "(" * 5_000, "-" * 90_000 + "1"])
def test_text_without_a_tree_gives_none(text: str) -> None:
    assert python_syntax.parse_module(text) is None


def test_no_other_module_builds_trees() -> None:
    root = Path(mimir.__file__).parent
    users = {path.name for path in root.rglob("*.py") if "ast.parse(" in path.read_text()}
    assert users == {"python_syntax.py"}
