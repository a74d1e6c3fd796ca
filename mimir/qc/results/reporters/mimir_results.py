"""Report of a Python test runner: one line of JSON for each result.

Each process writes its own file.
The module reports only in the first process that runs tests: it removes the folder's name from the environment, so tests that start test
runners themselves report nothing. Any Python from 3.6 on may import it.
"""
# pyright: basic, reportMissingParameterType=false

import builtins
import functools
import io
import json
import operator
import os
import re
import symtable
import sys
import types

_VARIABLE = "MIMIR_RESULTS"
# Tests may put other dictionaries in their places, and the work other functions.
_MODULES, _BUILTINS = sys.modules, vars(builtins)
_ALL, _MAP = all, map
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
_PLUGINS = []
"""Folders of plugins of pytest that are under test."""
_CODE = ("__code__", "__defaults__", "__kwdefaults__")
_DEFINED = re.compile(r"(?m)^(?!.*@)(.*)\n[ \t]*(?:async[ \t]+)?def[ \t]+(\w+)")
_ASSIGNED = re.compile(r"(?m)^(\w+)[ \t]*=")


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
    """Return a path relative to the workspace, for any folder that the runner starts in."""
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
    """Names of test libraries, of tests, and of what compares, that lead to code of the work."""

    def __init__(self, is_wide=False):
        """Note the names that modules have for functions and classes of others."""
        self._aliases = {}
        self._found = set()
        self._seen = {}
        # The work may be a package that the runner itself imports.
        self._accepted = self._find() | self._find(is_wide)

    def watch_code(self):
        """Note functions of tests and of their libraries that get other code from now on."""
        if hasattr(sys, "addaudithook"):
            sys.addaudithook(self._note_other_code)

    def accept(self, plugins):
        """Accept replacements by the packages of plugins that are under test: it is their work."""
        for path in filter(None, [getattr(one, "__file__", None) for one in plugins]):
            # The name of a plugin often holds that of pytest, but no test does its work.
            name = path_in_workspace(path).lower().replace("pytest", "")
            if _is_of_work(os.path.join(_TOP, name)):
                _PLUGINS.append(os.path.dirname(path) + os.sep)
        _is_of_work.cache_clear()
        self._seen.clear()

    def search(self):
        """Search whole test libraries, which takes longer."""
        self._found |= self._find(is_wide=True)

    def describe(self, tests=None):
        """Describe what was replaced; `tests` is a module, whose functions count too."""
        found = self._found | self._find()
        for module in [*_list_helpers(len(_MODULES)), tests]:
            for home in [module, *_list_classes(module)] if module is not None else ():
                find = functools.partial(_find_in_tests, module, home)
                found |= self._find_again(home, find)
        found -= self._accepted
        names = ", ".join(sorted(found)[:5])
        return "The work replaced %s, by which tests run or compare." % names if found else ""

    def _note_other_code(self, event, values):
        if event != "object.__setattr__" or values[1] not in _CODE:
            return
        one = values[0]
        if sys._getframe(1).f_code.co_filename.startswith(tuple(_PLUGINS)):
            return
        # The copies of `mock.create_autospec` are local functions.
        if type(one) is types.FunctionType and "<locals>" not in one.__qualname__:
            home = str(one.__globals__.get("__name__"))
            if _is_compared_by(home) or _is_test_module(one.__code__.co_filename):
                self._found.add("%s.%s" % (home, one.__name__))

    def _find(self, is_wide=False):
        found = set()
        for home in _list_homes(is_wide):
            found |= self._find_again(home, functools.partial(self._find_in_library, home))
        return found

    def _find_again(self, home, find):
        """Return the names that `find` returns; a module or class without changes is known."""
        keys, values = list(vars(home)), list(vars(home).values())
        known = self._seen.get(id(home))
        if known and known[0] == keys and _ALL(_MAP(operator.is_, known[1], values)):
            return known[2]
        found = find()
        # Only an audit hook notices another code of a known function. The reference to the home keeps its id.
        if hasattr(sys, "addaudithook"):
            self._seen[id(home)] = keys, values, found, home
        return found

    def _find_in_library(self, home):
        found, others, unset = set(), set(), set()
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
        return found | {"%s.%s" % (home.__name__, key) for key in new}


def _list_classes(module):
    """Return the classes that a module of tests defines."""
    classes = [one for one in list(vars(module).values()) if isinstance(one, type)]
    return [one for one in classes if one.__module__ == module.__name__]


def _find_in_tests(module, home):
    """Return the names in a test module, or its class, whose code is not that of the text."""
    found = set()
    text = getattr(module, "__file__", None) or ""
    for key, value in list(vars(home).items()):
        place, other = _origin_of(value)
        is_of_work = _is_of_work(place)
        if home is module and (is_of_work or not place) and _hides_builtin(key, value, text):
            found.add(key)
        if type(value) is types.FunctionType and (is_of_work or (other and home is module)):
            is_own = is_of_work and value.__globals__ is vars(module)
            if is_own or key in _defined_in(text):
                found.add(key)
    return found


@functools.lru_cache(maxsize=1)
def _list_helpers(_count):
    """Return the loaded helpers of tests; `_count` is the number of all modules."""
    modules = [(one, getattr(one, "__file__", None) or "") for one in list(_MODULES.values())]
    return [
        one
        for one, path in modules
        if _is_test_module(path) and not re.search(r"(^|/)test_[^/]*$|_test\.py$", path)
    ]


def _hides_builtin(key, value, path):
    """Return whether a global name replaces a built-in one without a binding in the text."""
    if key not in _BUILTINS or key.startswith("__") or value is _BUILTINS[key]:
        return False
    return key not in _bound_in(path) and "import *" not in _text_of(path)


@functools.lru_cache(maxsize=None)
def _bound_in(path, is_import=False):
    """Return the names that the text of a module binds, or only those that it imports."""
    symbols = symtable.symtable(_text_of(path), path, "exec").get_symbols()
    bound = [one for one in symbols if one.is_imported() or (one.is_assigned() and not is_import)]
    return {one.get_name() for one in bound}


@functools.lru_cache(maxsize=None)
def _text_of(path):
    try:
        with io.open(path, encoding="utf-8", errors="replace") as file:
            return file.read()
    except (OSError, TypeError):
        return ""


@functools.lru_cache(maxsize=None)
def _defined_in(path):
    """Return the names of functions whose only definition has no decorator."""
    text = _text_of(path)
    names = {name for _, name in _DEFINED.findall("\n" + text)}
    return names - _bound_in(path, is_import=True) - set(_ASSIGNED.findall(text))


def _is_compared_by(module):
    return module in _COMPARING or module.partition(".")[0] in _LIBRARIES


@functools.lru_cache(maxsize=None)
def _is_test_module(path):
    inside = path_in_workspace(path) if os.path.isabs(path) else ".."
    return (
        not inside.startswith("..") and "site-packages" not in inside and is_of_the_tests(path, "")
    )


def _list_homes(is_wide):
    """Return modules, and those of their classes whose methods tests use."""
    names = [one for one in list(_MODULES) if one.partition(".")[0] in _LIBRARIES]
    modules = [_MODULES.get(one) for one in (names if is_wide else ()) or _COMPARING]
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
    """Return the file of a value's code, and the name of a class or function without one.

    Code that was compiled from a text has the name of that text for both.
    """
    kind = type(value)
    if kind in (staticmethod, classmethod):
        value = value.__func__
    elif kind is functools.partial:
        value = value.func
    if type(value) is types.FunctionType:
        place = value.__code__.co_filename
        return place, "" if os.path.isabs(place) else place
    if isinstance(value, (type, types.BuiltinFunctionType)):
        return "", value.__name__
    return _file_of(kind.__module__), ""


@functools.lru_cache(maxsize=None)
def _file_of(module):
    return getattr(_MODULES.get(module), "__file__", None) or ""


@functools.lru_cache(maxsize=None)
def _is_of_work(path):
    is_of_plugin = path.startswith(tuple(_PLUGINS))
    return os.path.isabs(path) and not is_of_plugin and not is_of_the_tests(path, "")
