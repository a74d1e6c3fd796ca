"""Texts of generated projects: places filled in, and generated functions called, so that tests and work come from one definition."""

import textwrap
from collections.abc import Callable
from typing import cast

from mimir.bench.faults.case import Files


def fill(template: str, **values: object) -> str:
    """Put values into the places `@NAME@` of a template, which may be indented as its surroundings are.

    Raises:
        ValueError: A place is left open.
    """
    text = textwrap.dedent(template).lstrip("\n")
    for name, value in values.items():
        text = text.replace(f"@{name}@", str(value))
    return text


def changed(text: str, old: str, new: str) -> str:
    """Replace what stands exactly once.

    Raises:
        ValueError: It does not.
    """
    if text.count(old) != 1:
        raise ValueError(f"{old!r} stands {text.count(old)} times in a generated text.")
    return text.replace(old, new)


def function(source: str, name: str) -> Callable[..., object]:
    """Return a function of a generated module; the text is the benchmark's own, never a model's."""
    namespace: dict[str, object] = {"__name__": "generated"}
    exec(compile(source, "<generated>", "exec"), namespace)
    return cast("Callable[..., object]", namespace[name])


def emptied_tests(tests: Files) -> Files:
    """Return tests that say nothing, in place of these."""
    return {path: _UNIT if _is_unittest(text) else _PLAIN for path, text in tests.items()}


def skipped_tests(tests: Files) -> Files:
    """Return the same tests, put off until never."""
    first = {True: "import unittest\n\nraise unittest.SkipTest('not now')\n\n", False: _LEAVE}
    return {path: first[_is_unittest(text)] + text for path, text in tests.items()}


def leaving_tests(tests: Files) -> Files:
    """Return the same tests, in a process that has ended well before they begin."""
    return {path: "import os\n\nos._exit(0)\n\n" + text for path, text in tests.items()}


def _is_unittest(text: str) -> bool:
    return "import unittest" in text


_UNIT = "import unittest\n\n\nclass Test(unittest.TestCase):\n    def test_all(self):\n        self.assertTrue(True)\n"
_PLAIN = 'print("all checks passed")\n'
_LEAVE = "raise SystemExit(0)\n\n"
