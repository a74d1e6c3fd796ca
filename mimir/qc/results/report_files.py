"""Report files of a check run, read within bounds and joined to results of tests."""

import os
import stat
from collections.abc import Callable, Iterable, Iterator
from itertools import islice
from pathlib import Path

from mimir.domain.test_results import TestResults, sort_results
from mimir.qc.results.report_parsers import MAX_TESTS, PARSERS, ReportError, StateCollector
from mimir.qc.results.request import ReportRequest

MAX_BYTES = 50_000_000
"""Most bytes of all reports of a run."""
MAX_FILES = 10_000
_OWN_REPORTS = ("**/target/surefire-reports/TEST-*.xml", "**/build/test-results/**/TEST-*.xml")
"""JUnit files that Maven and Gradle write into the checkout."""


def remove_own_reports(checkout: Path) -> None:
    """Remove reports that lie in a checkout before its command runs."""
    for path in _own_reports(checkout):
        path.unlink()


def read_results(
    folder: Path, request: ReportRequest, checkout: Path | None, redact: Callable[[str], str]
) -> TestResults | None:
    """Read the reports of one run; None: no known runner reported, and none had to.

    `checkout` is searched too; None: no runner writes reports there. `redact` sees all names.
    """
    found = StateCollector()
    own = () if checkout is None else _own_reports(checkout)
    problem = _read_all([*_list_files(folder), *own], found)
    runner = ", ".join(sorted(found.runners)) or ", ".join(request.expected)
    if not found.runners and not problem:
        if request.fallback or found.fallback:
            return TestResults(runner=runner, fallback=request.fallback or found.fallback)
        if not request.expected:
            return None
        problem = "it is missing"
    text = f"{runner or 'A test runner'} gave no complete report of its tests: {problem}."
    # A report with too many tests is not stored in part.
    states = found.states if len(found.states) < MAX_TESTS else {}
    results = sort_results(runner, states, text if problem else "")
    return _redact_names(results, redact)


def _own_reports(checkout: Path) -> Iterator[Path]:
    for pattern in _OWN_REPORTS:
        yield from (path for path in checkout.glob(pattern) if not path.is_dir())


def _list_files(folder: Path) -> Iterable[Path]:
    try:
        return sorted(islice(folder.iterdir(), MAX_FILES + 1))
    except OSError:
        return ()


def _read_all(paths: list[Path], found: StateCollector) -> str:
    """Read reports; return the first problem, empty: there is none."""
    if len(paths) > MAX_FILES:
        return f"it has more than {MAX_FILES:,} files"
    left = MAX_BYTES
    problem = ""
    for path in paths:
        parse = PARSERS.get(path.suffix)
        if parse is None:
            continue
        try:
            data = _read_file(path, left)
            left -= len(data)
            parse(data, found)
        except OSError:
            problem = problem or "it cannot be read"
        except ReportError as error:
            problem = problem or str(error)
    return problem


def _read_file(path: Path, limit: int) -> bytes:
    # The command may have put a link, a pipe or a device there.
    descriptor = os.open(path, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC)
    with os.fdopen(descriptor, "rb") as file:
        if not stat.S_ISREG(os.fstat(descriptor).st_mode):
            raise ReportError("it is no regular file")
        data = file.read(limit + 1)
    if len(data) > limit:
        raise ReportError(f"it is larger than {MAX_BYTES // 1_000_000} MB")
    return data


def _redact_names(results: TestResults, redact: Callable[[str], str]) -> TestResults:
    names = list(results.states)
    clean = redact("\n".join(names)).split("\n")
    if clean == names or not names:
        return results
    if len(clean) != len(names):
        return TestResults(runner=results.runner, problem="A report holds a secret in its names.")
    states = zip(clean, results.states.values(), strict=True)
    return sort_results(results.runner, dict(states), results.problem)
