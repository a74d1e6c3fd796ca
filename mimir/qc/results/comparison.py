"""Comparison of the results of single tests: what a green run does not prove. Pure."""

from collections import Counter
from collections.abc import Collection, Iterable, Sequence
from dataclasses import replace

from mimir.domain.evidence import CheckRun
from mimir.domain.globs import matches
from mimir.domain.test_results import TestResults, TestState, file_of, sort_results

_SHOWN = 5


def confirm_results(
    run: CheckRun, then: TestResults | None, files: Sequence[str], *, is_flip: bool = False
) -> CheckRun:
    """Return a green run, with a problem if its tests contradict those of `then`.

    `then` are the results of an earlier run. `files` are the globs whose tests may go: the task owns them. `is_flip`: a test must have become green.
    """
    if not run.green or then is None or then.fallback:
        return run
    problem = _contradiction(then, run.results, files, is_flip=is_flip)
    if not problem:
        return run
    now = run.results or TestResults(runner=then.runner)
    return replace(run, results=replace(now, problem=problem, fallback=""))


def adds_failures(run: CheckRun, then: TestResults | None) -> bool | None:
    """Tell whether a run has red tests that `then` lacks, or lost green ones; None: unknown.

    A red run without them is red for another reason: without its tests, new code may miss a threshold of coverage.
    """
    now = run.results
    if now is None or then is None or now.fallback or then.fallback:
        return None
    red = {*now.failed, *now.errored}.difference(then.failed, then.errored)
    is_cut = bool(now.problem) and not then.problem
    return is_cut or bool(red or _find_lost(then.passed, frozenset(now.passed)))


def complete_results(
    results: TestResults, base: TestResults, files: Collection[str], passed: Collection[str]
) -> TestResults:
    """Return results with the states that unexecuted tests have in those of the base.

    Tests of the changed `files` remain unexecuted if all of them are `passed` now: the work may rename what they import.
    """
    own = {test for test in base.passed if _is_named(test, files)}
    kept = own if own.issubset(passed) else ()
    known: dict[str, TestState] = {
        test: state for test, state in base.states.items() if test not in kept
    }
    states: dict[str, TestState] = {
        test: known.get(test, state) if state == "errored" else state
        for test, state in results.states.items()
    }
    # A run that ended early may not have listed all tests.
    for test, state in known.items():
        states.setdefault(test, state)
    return sort_results(results.runner, states, results.problem)


def _contradiction(
    then: TestResults, now: TestResults | None, files: Sequence[str], *, is_flip: bool
) -> str:
    # An id without a file is a whole file that could not be loaded.
    ran = [one for one in (*then.passed, *then.failed, *then.errored) if file_of(one)]
    wanted = [test for test in ran if not _is_named(test, files)]
    if now is None or now.fallback:
        text = f"The run before reported {len(ran):,} tests, and this one reported none."
        return text if wanted else ""
    green = frozenset(now.passed)
    lost = _find_lost(wanted, green)
    if lost:
        return describe_lost(lost, frozenset(now.skipped), frozenset(now.xfailed))
    # Without a failed test, the run was red for another reason, and the exit code decides.
    was_red_by_tests = bool(then.failed or then.errored or then.problem)
    if is_flip and was_red_by_tests and green <= frozenset(then.passed):
        return "No test that failed or was absent before the work is reported as passed after it."
    return ""


def _find_lost(wanted: Sequence[str], green: Collection[str]) -> list[str]:
    """Return tests that are not green now; parameters may change, but not become fewer."""
    lost = [test for test in wanted if test not in green]
    if not any("[" in test for test in lost):
        return lost
    before = Counter(test.partition("[")[0] for test in wanted if "[" in test)
    now = Counter(test.partition("[")[0] for test in green if "[" in test)
    fewer = {name for name, count in before.items() if now[name] < count}
    return [test for test in lost if "[" not in test or test.partition("[")[0] in fewer]


def describe_lost(lost: Sequence[str], skipped: Collection[str], xfailed: Collection[str]) -> str:
    """Describe tests that ran before and have not passed now."""
    parts = [
        f"{test} ({'skipped' if test in skipped else 'xfailed' if test in xfailed else 'missing'})"
        for test in lost[:_SHOWN]
    ]
    more = f" and {len(lost) - _SHOWN:,} more" if len(lost) > _SHOWN else ""
    return f"Tests that ran before have not passed: {', '.join(parts)}{more}."


def _is_named(test: str, files: Iterable[str]) -> bool:
    """True if `files` name the test's file; a package of Go is named by a test file in it."""
    file = file_of(test)
    globs = list(files)
    if matches(file, globs):
        return True
    folders = [glob.rpartition("/")[0] for glob in globs if glob.endswith("_test.go")]
    return any(f"/{file}".endswith(f"/{folder}") if folder else True for folder in folders)
