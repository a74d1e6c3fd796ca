"""Plugin of pytest that reports each test, imported before a project's `conftest.py`."""
# pyright: basic, reportMissingParameterType=false

import os

import pytest
from mimir_results import (
    Replacements,
    is_of_the_tests,
    is_skipped_by_work,
    open_report,
    path_in_workspace,
)

_report = open_report("pytest")
_configured = []
_failures = []
_replacements = Replacements(is_wide=True)
_replacements.watch_code()
_MOST_TRACEBACKS = 20
"""Further ones are short: in the control of a suite every test fails."""


@pytest.hookimpl(hookwrapper=True)
def pytest_runtest_makereport(item, call):
    """Mark what the work itself decided; also in the processes of pytest-xdist."""
    error = call.excinfo.value if call.excinfo is not None else None
    if error is not None:
        _failures.append(item.nodeid)
        if len(_failures) > _MOST_TRACEBACKS and item.config.option.tbstyle in ("auto", "long"):
            item.config.option.tbstyle = "line"
    report = (yield).get_result()
    # A test of unittest has its error only now.
    error = error if error is not None or call.excinfo is None else call.excinfo.value
    if error is not None and report.outcome == "skipped":
        # A mark of the test expects any failure; only a call of `xfail` may be the work's.
        is_marked = hasattr(report, "wasxfail") and not isinstance(error, pytest.xfail.Exception)
        report.mimir_by_work = not is_marked and is_skipped_by_work(error, str(item.fspath))
    elif report.when == "call" and report.outcome == "passed":
        message = _replacements.describe(getattr(item, "module", None))
        if message:
            report.outcome, report.longrepr = "failed", message


@pytest.hookimpl(tryfirst=True)
def pytest_collection(session):
    """Accept the replacements of a plugin under test."""
    _replacements.accept(session.config.pluginmanager.get_plugins())


@pytest.hookimpl(hookwrapper=True, tryfirst=True)
def pytest_terminal_summary(config):
    """Print the tracebacks of the first failures, which are complete."""
    if len(_failures) > _MOST_TRACEBACKS and config.option.tbstyle == "line":
        config.option.tbstyle = "auto"
    yield


def pytest_configure(config):
    """Report the first session of this process."""
    if _report is not None and not _configured:
        _configured.append(config)
        config.pluginmanager.register(_PytestReporter(_report, config), "mimir-results-of-session")


class _PytestReporter:
    def __init__(self, report, config):
        self._report = report
        self._root = str(getattr(config, "rootpath", None) or config.rootdir)

    def _write(self, kind, node):
        file, separator, test = node.partition("::")
        path = path_in_workspace(os.path.join(self._root, file))
        self._report.write(kind, path + separator + test)

    def pytest_collection_finish(self, session):
        _replacements.search()

    @pytest.hookimpl(tryfirst=True)
    def pytest_runtestloop(self, session):
        # Not at the end of the collection: settings may still refuse the options of the command.
        for item in session.items:
            self._write("planned", item.nodeid)

    @pytest.hookimpl(optionalhook=True)
    def pytest_xdist_node_collection_finished(self, node, ids):
        for test in ids:
            self._write("planned", test)

    def pytest_collectreport(self, report):
        if report.outcome != "passed" and report.nodeid:
            state = "skipped" if _is_skip_of_tests(report) else "errored"
            self._write(state, report.nodeid)

    def pytest_runtest_logreport(self, report):
        state = _state_in_pytest(report)
        if state:
            self._write(state, report.nodeid)

    @pytest.hookimpl(trylast=True)
    def pytest_sessionfinish(self, session, exitstatus):
        self._report.write("end", str(int(exitstatus)))


def _is_skip_of_tests(report):
    """Tell whether a file is skipped, and not by the work that it imports."""
    place = report.longrepr[0] if isinstance(report.longrepr, tuple) else ""
    return report.outcome == "skipped" and is_of_the_tests(str(place), str(place and report.fspath))


def _state_in_pytest(report):
    if report.outcome == "failed":
        return "failed" if report.when == "call" else "errored"
    if report.outcome == "skipped":
        if getattr(report, "mimir_by_work", False):
            return "errored"
        return "xfailed" if hasattr(report, "wasxfail") else "skipped"
    return "passed" if report.outcome == "passed" and report.when == "call" else ""
