"""Command lines of `mimir` in messages and documents, and their parsing without execution."""

import ast
import re
import shlex
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from typer.main import get_command

from mimir.cli.main import app

_WORD = r"--?[a-zA-Z][\w-]*(?:=\S+)?|\"?[A-Z]{2,}[A-Z|/\[\]]*\"?|-|\{\}(?:/\{\})*|trust|show|set|get|path"
_COMMAND = re.compile(rf"mimir ([a-z][a-z-]*)((?: (?:{_WORD})(?!\w))*)")
PLACEHOLDERS = {"{}": "run-1", "MINUTES": "30", "TIME": "2h"}


def commands_in(text: str) -> list[str]:
    """Return the command lines in a text, without the prose behind them."""
    return [found[0] for found in _COMMAND.finditer(text)]


def messages(folder: Path) -> Iterator[tuple[str, str, bool]]:
    """Yield (place, text, whether it is a next step) of the strings of a package."""
    for path in sorted(folder.rglob("*.py")):
        tree = ast.parse(path.read_text(encoding="utf-8"))
        steps = {
            id(inner)
            for node in ast.walk(tree)
            if isinstance(node, ast.keyword) and node.arg == "next_step"
            for inner in ast.walk(node.value)
        }
        pieces = {
            id(value)
            for node in ast.walk(tree)
            if isinstance(node, ast.JoinedStr)
            for value in node.values
        }
        # A docstring is no message; one of a command is its help, which is short of them.
        documents = {
            id(node.value)
            for node in ast.walk(tree)
            if isinstance(node, ast.Expr) and isinstance(node.value, ast.Constant)
        }
        for node in ast.walk(tree):
            text = _text(node)
            if text and id(node) not in {*pieces, *documents}:
                is_step = id(node) in steps or text.startswith("next: ")
                yield f"{path}:{getattr(node, 'lineno', 0)}", text, is_step


def _text(node: ast.AST) -> str:
    if isinstance(node, ast.Constant) and isinstance(node.value, str):
        return node.value
    if isinstance(node, ast.JoinedStr):
        return "".join(_text(one) if isinstance(one, ast.Constant) else "{}" for one in node.values)
    return ""


def is_command(word: str) -> bool:
    """Return whether `mimir WORD` exists."""
    return word in group().commands


def group() -> Any:
    """Return the whole command."""
    return get_command(app)


def parse(line: str) -> None:
    """Parse a command line as the program does; raise its error."""
    words = shlex.split(line)[1:]
    for name, value in PLACEHOLDERS.items():
        words = [word.replace(name, value) for word in words]
    command, path = group(), "mimir"
    context = command.make_context("mimir", [], resilient_parsing=True)
    while words and hasattr(command, "commands") and not words[0].startswith("-"):
        command, path = command.commands[words[0]], f"{path} {words[0]}"
        words = words[1:]
    command.make_context(path, words, parent=context)
