"""Syntax trees of Python text; safe for untrusted text and for several threads. Pure."""

from __future__ import annotations

import ast
import threading
import warnings

_PARSING = threading.Lock()


def parse_module(text: str) -> ast.Module | None:
    """Return the syntax tree of Python text; None: the text has no tree."""
    # Python 3.11 before 3.11.8 counts the depth of all threads in one number, and raises a
    # `SystemError` when two threads build trees at once. Filters of warnings are shared too.
    with _PARSING, warnings.catch_warnings():
        warnings.simplefilter("ignore")  # for example of unknown escapes in the text
        try:
            return ast.parse(text)
        except (SyntaxError, ValueError, RecursionError, MemoryError):
            return None
