"""Each battery counts its cases; `make trust` prints one line a battery."""

from collections import Counter
from collections.abc import Generator

import pytest

from tests.support.trust_sizes import Cases, size

HERE = "tests/trust/test_"
TRIED, FAILED = "trust_tried", "trust_failed"


@pytest.fixture
def cases() -> Cases:
    """The book of one test."""
    return Cases()


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Give the larger sizes no time limit; the bounds of each case find one that hangs."""
    for item in items:
        if item.nodeid.startswith(HERE) and size() != "small":
            item.add_marker(pytest.mark.timeout(0))


@pytest.hookimpl(wrapper=True)
def pytest_pyfunc_call(pyfuncitem: pytest.Function) -> Generator[None, object, object]:
    """Fail a test whose book holds a failure, and hand its counts to the summary."""
    book = pyfuncitem.funcargs.get("cases")
    broken = True
    try:
        done = yield
        broken = False
    finally:
        tried, failed = (book.tried, len(book.failures)) if isinstance(book, Cases) else (1, 0)
        lost = int(broken and not failed)
        counts = [(TRIED, max(tried, lost)), (FAILED, failed + lost)]
        pyfuncitem.user_properties.extend(counts)
    if isinstance(book, Cases) and book.failures:
        pytest.fail(book.describe(), pytrace=False)
    return done


def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter) -> None:
    """Print one line a battery: tried, passed, failed."""
    tried: Counter[str] = Counter()
    failed: Counter[str] = Counter()
    seconds: Counter[str] = Counter()
    for report in terminalreporter.getreports("passed") + terminalreporter.getreports("failed"):
        if not report.nodeid.startswith(HERE) or report.when != "call":
            continue
        battery = report.nodeid.removeprefix(HERE).split(".py")[0].replace("_", " ")
        counts = dict(report.user_properties)
        tried[battery] += counts.get(TRIED, 1)
        failed[battery] += counts.get(FAILED, int(report.failed))
        seconds[battery] += report.duration
    terminalreporter.section(f"trust ({size()})")
    for battery in sorted(tried):
        bad = failed[battery]
        terminalreporter.line(
            f"{battery:<24} tried {tried[battery]:>9,}  passed {tried[battery] - bad:>9,}"
            f"  failed {bad:>3,}  {seconds[battery]:>7.1f} s"
        )
