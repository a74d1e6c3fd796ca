"""Report of a Python test runner: one line of JSON for each result.

Each process writes its own file.
The module reports only in the first process that runs tests: it removes the folder's name from the environment, so tests that start test
runners themselves report nothing. Any Python from 3.6 on may import it.
"""
# pyright: basic, reportMissingParameterType=false

import json
import os

_VARIABLE = "MIMIR_RESULTS"
_TOP = os.environ.get("MIMIR_WORKSPACE") or os.getcwd()


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
