"""Trial of a check: what its run on the base says about the plan, before any work. Pure.

A red run is no fault: the work is to turn it green. A finding names a check that cannot decide its criteria for any work.
"""

import posixpath
import shlex
from collections.abc import Collection, Iterator, Sequence
from typing import Literal

from mimir.domain.command_causes import CAUSES, HIDDEN_PATH, missing_packages
from mimir.domain.evidence import CheckRun
from mimir.domain.globs import has_wildcard, matches
from mimir.domain.overlap import overlap
from mimir.domain.plan import Check, Task
from mimir.domain.value_class import value_class
from mimir.qc.integrity.check_files import find_check_files, is_work, says_it_tests
from mimir.qc.scope.check_surface import is_config

TrialCode = Literal[
    "check-program-missing",
    "check-timed-out",
    "check-needs-network",
    "check-module-missing",
    "check-path-hidden",
    "check-already-green",
    "check-green-before",
    "check-red-before",
    "check-tests-red",
    "check-without-tests",
]
_Fault = tuple[TrialCode, str, str]
"""Code, message, and what helps."""


@value_class
class TrialFinding:
    """One fault of a check that its trial shows."""

    task: str
    check: str
    is_required: bool
    code: TrialCode
    message: str
    suggestion: str


def judge_trial(
    check: Check, run: CheckRun, tasks: Sequence[Task], paths: Collection[str] = ()
) -> TrialFinding | None:
    """Judge the run of a check on the base; None: the check may decide its criteria.

    `tasks` are the task of the check, then all tasks that it depends on: their work is in the tree before the task begins. `paths` are those
    of the base.
    """
    found = next(_find_faults(check, run, tasks, paths), None)
    if found is None:
        return None
    code, message, suggestion = found
    return TrialFinding(
        task=tasks[0].id,
        check=check.id,
        is_required=check.required,
        code=code,
        message=f"Check {check.id!r} of {tasks[0].id} {message}: {shlex.join(run.argv)[:200]}",
        suggestion=suggestion,
    )


def _find_faults(
    check: Check, run: CheckRun, tasks: Sequence[Task], paths: Collection[str]
) -> Iterator[_Fault]:
    """Yield the faults; causes that are outside of the project's files come first."""
    if run.missing and not any(is_work(run.argv, task) for task in tasks):
        yield "check-program-missing", "names a program that commands cannot find", _MISSING
    if run.timed_out:
        message = f"does not end within its {check.timeout_seconds:g} seconds"
        yield "check-timed-out", message, _TIMED_OUT
    if not run.green:
        yield from _explain_red(run, tasks, paths)
    may_change = _may_change_tests(check, tasks, frozenset(paths))
    if check.kind == "flip" and run.green:
        if may_change:
            yield "check-green-before", "is a flip, but passes before the work", _GREEN
        yield "check-already-green", "is a flip, but passes before the work", _ALREADY_GREEN
    is_empty = run.results is not None and run.results.is_empty
    # The tests may be those that its task, or one before it, is to write.
    if is_empty and not may_change:
        yield "check-without-tests", "selects no test", _WITHOUT_TESTS
    if check.kind == "hold" and not run.green and len(tasks) == 1:
        message = f"is a hold, but fails before the work ({run.describe_end})"
        found = run.results
        if found and found.passed and (red := (*found.failed, *found.errored)):
            message = f"{message} by {', '.join(red[:5])}"
            yield "check-tests-red", message, _TESTS_RED
        yield "check-red-before", message, _RED


def _explain_red(run: CheckRun, tasks: Sequence[Task], paths: Collection[str]) -> Iterator[_Fault]:
    if _NO_NETWORK.pattern.search(run.output_tail):
        yield "check-needs-network", "fails because commands have no network", _NO_NETWORK.advice
    if HIDDEN_PATH in run.output_tail:
        yield "check-path-hidden", "reads a path that commands do not see", _HIDDEN
    files = [path for task in tasks for path in task.files]
    # Where tests ran, only some of them may need the module.
    is_partial = run.results is not None and bool(run.results.passed or run.results.failed)
    if is_partial or any(map(is_config, files)):
        return
    python, node = missing_packages(run.output_tail)
    for module in python:
        if any(path.endswith(".py") and module in _words(path) for path in paths):
            message = f"cannot import {module!r}, which the project has"
            yield "check-module-missing", message, _NOT_FOUND
    # A task without `files` may write any module.
    for module in (*python, *node) if all(task.files for task in tasks) else ():
        if not any(module in _words(path) or has_wildcard(path) for path in files):
            message = f"needs {module!r}, which is not installed"
            yield "check-module-missing", message, _NOT_INSTALLED


def _words(path: str) -> list[str]:
    folder, name = posixpath.split(path)
    return [*folder.split("/"), name.partition(".")[0]]


def _may_change_tests(check: Check, tasks: Sequence[Task], paths: frozenset[str]) -> bool:
    """True if one of the tasks may change the tests of a check, or add one."""
    found = find_check_files(check)
    tests = (*found.tests, *found.reached, *check.protect)
    if not tests and paths.isdisjoint(check.argv):
        # A compiler or checker of types may read any test that an earlier task writes.
        return any(says_it_tests(path) for task in tasks[1:] for path in task.files)
    # Without `files`, a task writes no existing test, but any new one.
    open_ones = [
        glob for glob in tests if has_wildcard(glob) or "." not in posixpath.basename(glob)[1:]
    ]
    return any(
        # Data beside tests belongs to the task that names it.
        any(
            matches(path, found.beside) or any(overlap(path, glob) for glob in tests)
            for path in task.files
        )
        if task.files
        else bool(open_ones)
        for task in tasks
    )


_NO_NETWORK = next(cause for cause in CAUSES if cause.name == "no network")
_MISSING = (
    "Name a program that exists in the sandbox, or install it: commands see /usr, the project's environments, and the paths of "
    "`sandbox.read_only`."
)
_HIDDEN = "Name the path of the output in `sandbox.share` of your own settings, or another command."
_NOT_FOUND = (
    "Start pytest as `python -m pytest`, set PYTHONPATH in the command, or install the project into its environment before the run: "
    "`python -m pip install --editable .`."
)
_NOT_INSTALLED = (
    "Install it into the project's environment (`.venv`, `node_modules`) before the run: commands have no network. If a task is to "
    "write it, name its path under Files."
)
_TIMED_OUT = "Raise timeout_seconds, or name a faster command. If the task is to end a hang, start the command with `timeout 10`."
_ALREADY_GREEN = (
    "Name a command that fails until the work is done, or write `kind: hold`. If the task is to change these tests, list them "
    "under Files."
)
_GREEN = "The task must write tests that fail before its work; otherwise write `kind: hold`."
_WITHOUT_TESTS = "Correct the selection, so that the command runs at least one test."
_RED = "If the base is broken, repair it first, or name only the tests that pass."
_TESTS_RED = (
    "It decides nothing as long as these tests fail. If no task is to repair them, leave them out of the command: "
    "`--deselect TEST` of pytest, `-skip` of go test, `-- --skip` of cargo test."
)
