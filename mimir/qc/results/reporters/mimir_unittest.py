"""Reporter of unittest: observes its runner and its results; `sitecustomize` starts it."""
# pyright: basic, reportMissingParameterType=false

import sys

from mimir_results import Replacements, is_skipped_by_work, open_report, path_in_workspace


def report_unittest(runner, result):
    """Report the first run of a `TextTestRunner`; arguments are modules of unittest."""
    report = []
    replacements = Replacements()
    replacements.watch_code()
    run = runner.TextTestRunner.run

    def run_reported(self, test):
        opened = open_report("unittest")
        if opened is None:
            return run(self, test)
        report.append(opened)
        replacements.search()
        for one in _tests_of(test):
            opened.write("planned", _id_in_unittest(one))
        try:
            return run(self, test)
        finally:
            opened.write("end", "")

    def observed(name, state):
        method = getattr(result.TestResult, name)

        def add(self, test, *rest):
            if report:
                message = state == "passed" and replacements.describe(_module_of(test))
                now = "failed" if message else _state_in_unittest(state, test)
                report[0].write(now, _id_in_unittest(test))
                if message:
                    sys.stderr.write(message + "\n")
            return method(self, test, *rest)

        setattr(result.TestResult, name, add)

    runner.TextTestRunner.run = run_reported
    for name, state in (
        ("addSuccess", "passed"),
        ("addFailure", "failed"),
        ("addError", "errored"),
        ("addSkip", "skipped"),
        ("addExpectedFailure", "xfailed"),
        ("addUnexpectedSuccess", "failed"),
    ):
        observed(name, state)
    _observe_subtests(result.TestResult, report)


def _observe_subtests(kind, report):
    method = kind.addSubTest

    def add(self, test, subtest, error):
        if report and error is not None:
            is_failure = issubclass(error[0], test.failureException)
            report[0].write("failed" if is_failure else "errored", _id_in_unittest(test))
        return method(self, test, subtest, error)

    kind.addSubTest = add


def _state_in_unittest(state, test):
    if state == "errored" and hasattr(test, "_testMethodName") and not _is_unloaded(test):
        return "failed"  # the test itself raised; set-up of classes is no test
    by_work = state == "skipped" and is_skipped_by_work(sys.exc_info()[1], _file_in_unittest(test))
    return "errored" if by_work else state


def _is_unloaded(test):
    """Return whether a test is the placeholder of a module that cannot be imported."""
    return type(test).__module__ == "unittest.loader"


def _tests_of(suite):
    try:
        parts = list(suite)
    except TypeError:
        return [suite]
    return [test for part in parts for test in _tests_of(part)]


def _file_in_unittest(test):
    return getattr(_module_of(test), "__file__", None) or ""


def _module_of(test):
    return sys.modules.get(type(test).__module__)


def _id_in_unittest(test):
    """Return `FILE::CLASS.METHOD`; a module that cannot be imported has its name alone."""
    test = getattr(test, "test_case", test)
    name = test.id() if hasattr(test, "id") else str(test)
    if _is_unloaded(test):
        return name.rpartition("_FailedTest.")[2]
    file = _file_in_unittest(test)
    if not file or not hasattr(test, "_testMethodName"):
        return name
    return "%s::%s.%s" % (path_in_workspace(file), type(test).__qualname__, test._testMethodName)
