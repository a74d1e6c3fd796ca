"""Report of a Python test runner: one line of JSON for each result.

Each process writes its own file.
The module reports only in the first process that runs tests: it removes the folder's name from the environment, so tests that start test
runners themselves report nothing. Any Python from 3.6 on may import it.
"""
# pyright: basic, reportMissingParameterType=false

import functools
import json
import os
import sys
import types

_VARIABLE = "MIMIR_RESULTS"
_TOP = os.environ.get("MIMIR_WORKSPACE") or os.getcwd()
_COMPARING = (
    "builtins",
    "math",
    "pytest",
    "unittest.case",
    "unittest.mock",
    "numpy",
    "numpy.testing",
)
"""Modules by whose names tests compare."""
_LIBRARIES = ("pytest", "_pytest", "unittest")
"""Packages of test runners."""
_FREE = ("print", "open", "input", "__import__", "__build_class__")
"""Names of them that work may replace."""


class Report:
    """Report of one process; each line is written at once, because the process may be killed."""

    def __init__(self, folder, runner):
        """Open a new file in `folder`."""
        name = os.path.join(folder, "%s-%d.jsonl" % (runner, os.getpid()))
        self._file = os.open(name, os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o666)
        self.write("runner", runner)

    def write(self, kind, text):
        """Write one line; `kind` is a state, or `runner`, `planned` or `end`."""
        os.write(self._file, (json.dumps([kind, text]) + "\n").encode())


def open_report(runner):
    """Return the report of this process. None: none is wanted, or another process writes it."""
    folder = os.environ.pop(_VARIABLE, "")
    return Report(folder, runner) if folder else None


def path_in_workspace(path):
    """Return a path relative to the workspace, whatever folder the runner starts in."""
    return os.path.relpath(path, _TOP)


def is_of_the_tests(path, test):
    """Tell whether code that skips a test belongs to the tests, not to the work under test."""
    inside = path_in_workspace(path)
    if inside.startswith("..") or os.path.isabs(inside) or "site-packages" in inside:
        return True
    return "test" in inside.lower() or os.path.realpath(path) == os.path.realpath(test)


def is_skipped_by_work(error, test):
    """Tell whether the work under test raised a skip, not the test in the file `test`."""
    # pytest raises a second skip for the one of unittest.
    first = getattr(error, "__context__", None)
    errors = [error, first] if type(first).__name__ in ("SkipTest", "Skipped") else [error]
    places = [_innermost_place(getattr(one, "__traceback__", None)) for one in errors]
    return any(place and not is_of_the_tests(place, test) for place in places)


def _innermost_place(trace):
    """Return the file of the project's last call; None: none of its files was executed."""
    last = None
    while trace is not None:
        path = trace.tb_frame.f_code.co_filename
        inside = path_in_workspace(path) if os.path.isabs(path) else ".."
        if not inside.startswith("..") and "site-packages" not in inside:
            last = path
        trace = trace.tb_next
    return last


class Replacements:
    """Names of test libraries, and of what compares, that lead to code of the work."""

    def __init__(self):
        """Note the names that modules have for functions and classes of others."""
        self._aliases = {}
        self._found = set()
        self._accepted = set()
        self._find()

    def accept(self):
        """Accept all that are replaced now."""
        self._accepted = self._find(is_wide=True)

    def search(self):
        """Search whole test libraries, which takes longer."""
        self._found = self._find(is_wide=True)

    def describe(self, tests=None):
        """Describe what was replaced; `tests` is a module, whose functions count too."""
        found = (self._found | self._find()) - self._accepted
        for key, value in list(getattr(tests, "__dict__", {}).items()):
            is_own = type(value) is types.FunctionType and value.__globals__ is tests.__dict__
            if is_own and _is_of_work(value.__code__.co_filename):
                found.add(key)
        names = ", ".join(sorted(found)[:5])
        return "The work replaced %s, by which tests run or compare." % names if found else ""

    def _find(self, is_wide=False):
        found = set()
        for home in _list_homes(is_wide):
            others, unset = set(), set()
            for key, value in list(vars(home).items()):
                place, other = _origin_of(value)
                if value is None:
                    unset.add(key)
                if place and _is_of_work(place) and key not in _FREE:
                    found.add("%s.%s" % (home.__name__, key))
                elif other not in ("", key):
                    others.add(key)
            known, late = self._aliases.setdefault(home, (others, unset))
            # pytest sets names of its doctests at their first use.
            new = others - known - {key for key in late if _is_own(home, key)}
            found |= {"%s.%s" % (home.__name__, key) for key in new}
        return found


def _list_homes(is_wide):
    """Return modules, and those of their classes whose methods tests use."""
    names = [one for one in list(sys.modules) if one.partition(".")[0] in _LIBRARIES]
    modules = [sys.modules.get(one) for one in (names if is_wide else ()) or _COMPARING]
    modules = [one for one in modules if isinstance(one, types.ModuleType)]
    classes = [
        value
        for one in modules
        if is_wide or one.__name__.startswith("unittest.")
        for value in list(vars(one).values())
        if isinstance(value, type)
    ]
    return modules + classes


def _is_own(home, key):
    """Tell whether a name of a module leads to a class of the same module."""
    value = getattr(home, key, None)
    return isinstance(value, type) and value.__module__ == home.__name__


def _origin_of(value):
    """Return the file of a value's code, or the name of a class or function without one."""
    kind = type(value)
    if kind in (staticmethod, classmethod):
        value = value.__func__
    elif kind is functools.partial:
        value = value.func
    if type(value) is types.FunctionType:
        return value.__code__.co_filename, ""
    if isinstance(value, (type, types.BuiltinFunctionType)):
        return "", value.__name__
    return _file_of(kind.__module__), ""


@functools.lru_cache(maxsize=None)
def _file_of(module):
    return getattr(sys.modules.get(module), "__file__", None) or ""


@functools.lru_cache(maxsize=None)
def _is_of_work(path):
    return os.path.isabs(path) and not is_of_the_tests(path, "")
