"""Test counts in the summaries of test runners. Pure.

Output is untrusted, so every pattern is bound to single lines.
"""

import re
from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

_COLOUR = re.compile(r"\x1b\[[0-9;]*m")


@dataclass(frozen=True, slots=True, kw_only=True)
class CountedTests:
    """Tests that a runner reported at its end."""

    passed: int = 0
    failed: int = 0
    skipped: int = 0
    """Skipped, or expected to fail: tests that decided nothing."""

    def __add__(self, other: "CountedTests") -> "CountedTests":
        """Return the sum of both."""
        return CountedTests(
            passed=self.passed + other.passed,
            failed=self.failed + other.failed,
            skipped=self.skipped + other.skipped,
        )


def parse_counts(output: str) -> Sequence[CountedTests]:
    """Return the counts of every known summary in an output; empty: it has none."""
    text = strip_colour_codes(output)
    special = (*parse_pytest(text), *parse_unittest(text), *_parse_node(text))
    return (*special, *(one for form in (RUST, *_FORMS) for one in parse_pattern(form, text)))


def strip_colour_codes(output: str) -> str:
    """Remove the colour codes of an output."""
    return _COLOUR.sub("", output)


_SUMMARY = re.compile(
    r"^(?:=+ )?(?:no tests ran|(\d+ \w[\w ]*(?:, \d+ \w[\w ]*)*)) in \d+\.\d+s", re.MULTILINE
)
_COUNTED = re.compile(r"(\d+) (passed|failed|errors?|skipped|xfailed|xpassed)\b")


def parse_pytest(output: str) -> Sequence[CountedTests]:
    """Parse summaries of pytest: `1 failed, 2 passed in 0.04s`."""
    return [_count_words(_COUNTED.findall(found[1] or "")) for found in _SUMMARY.finditer(output)]


def _count_words(counted: Iterable[tuple[str, str]]) -> CountedTests:
    numbers = {word.removesuffix("s"): int(number) for number, word in counted}
    return CountedTests(
        # xpassed: the test ran and its assertions held.
        passed=numbers.get("passed", 0) + numbers.get("xpassed", 0),
        failed=numbers.get("failed", 0) + numbers.get("error", 0),
        skipped=numbers.get("skipped", 0) + numbers.get("xfailed", 0),
    )


_END_OF_UNITTEST = re.compile(
    r"^Ran (\d+) tests? in [^\n]*(?:\n+(?:OK|FAILED|NO TESTS RAN)(?: \(([^)\n]*)\))?)?",
    re.MULTILINE,
)
_NAMED = re.compile(r"(failures|errors|skipped|expected|successes)(?: failures)?=(\d+)")


def parse_unittest(output: str) -> Sequence[CountedTests]:
    """Parse summaries of unittest: `Ran 3 tests in 0.001s`, `FAILED (failures=1)`."""
    found: list[CountedTests] = []
    for end in _END_OF_UNITTEST.finditer(output):
        numbers = {word: int(number) for word, number in _NAMED.findall(end[2] or "")}
        failed = sum(numbers.get(word, 0) for word in ("failures", "errors", "successes"))
        skipped = sum(numbers.get(word, 0) for word in ("skipped", "expected"))
        passed = max(0, int(end[1]) - failed - skipped)  # subtests fail separately
        found.append(CountedTests(passed=passed, failed=failed, skipped=skipped))
    return found


_COUNTED_IN_NODE = re.compile(r"^(?:#|ℹ) (pass|fail|skipped|todo) (\d+)$", re.MULTILINE)
_FILE_IN_NODE = re.compile(
    r"^(?:(not )?ok \d+ - |✔ |(✖) )\S+\.[cm]?[jt]sx?(?: \([\d.]+ms\))?$", re.MULTILINE
)


def _parse_node(output: str) -> Sequence[CountedTests]:
    """Parse summaries of node."""
    # A file that passes as a whole may have ended before its first test, so it is not a passed test.
    numbers = Counter[str]()
    for word, number in _COUNTED_IN_NODE.findall(output):
        numbers[word] += int(number)
    if not numbers:
        return ()
    files = [failed or cross for failed, cross in _FILE_IN_NODE.findall(output)]
    passed = numbers["pass"] - sum(not failed for failed in files)
    skipped = numbers["skipped"] + numbers["todo"] + len(files)
    return [CountedTests(passed=max(0, passed), failed=numbers["fail"], skipped=skipped)]


def _pattern(pattern: str) -> re.Pattern[str]:
    return re.compile(pattern, re.MULTILINE)


RUST = _pattern(
    r"^test result: (?:\w+\. (?P<passed>\d+) passed; (?P<failed>\d+) failed; (?P<skipped>\d+) ignored)?"
)
_FORMS = (
    # jest; vitest
    _pattern(
        r"^Tests: +(?:(?P<failed>\d+) failed, )?(?:(?P<skipped>\d+) skipped, )?(?:\d+ todo, )?(?:(?P<passed>\d+) passed, )?\d+ total$"
    ),
    _pattern(
        r"^ +Tests  (?:(?P<failed>\d+) failed(?: \| )?)?(?:(?P<passed>\d+) passed(?: \| )?)?(?:(?P<skipped>\d+) skipped)? ?\(\d+\)$"
    ),
    # mocha, one line each
    _pattern(r"^ +(?P<passed>\d+) passing\b"),
    _pattern(r"^ +(?P<failed>\d+) failing$"),
    _pattern(r"^ +(?P<skipped>\d+) pending$"),
    # rspec; minitest; ExUnit
    _pattern(r"^(?P<all>\d+) examples?, (?P<failed>\d+) failures?(?:, (?P<skipped>\d+) pending)?"),
    _pattern(
        r"^(?P<all>\d+) (?:runs|tests), \d+ assertions, (?P<failed>\d+) failures, (?P<errors>\d+) errors(?:, (?P<skipped>\d+) skips)?"
    ),
    _pattern(
        r"^(?:\d+ doctests?, )?(?P<all>\d+) tests?, (?P<failed>\d+) failures?(?:, (?P<skipped>\d+) skipped)?$"
    ),
    # PHPUnit
    _pattern(r"^OK \((?P<passed>\d+) tests?, \d+ assertions?\)"),
    _pattern(
        r"^Tests: (?P<all>\d+), Assertions: \d+(?:, Errors: (?P<errors>\d+))?(?:, Failures: (?P<failed>\d+))?"
    ),
)


def parse_pattern(form: re.Pattern[str], output: str) -> Sequence[CountedTests]:
    """Parse a pattern's groups: `passed`, `failed`, `errors`, `skipped`, or `all`."""
    found: list[CountedTests] = []
    for end in form.finditer(output):
        numbers = {name: int(number or 0) for name, number in end.groupdict().items()}
        failed = numbers.get("failed", 0) + numbers.get("errors", 0)
        skipped = numbers.get("skipped", 0)
        passed = numbers.get("passed", max(0, numbers.get("all", 0) - failed - skipped))
        found.append(CountedTests(passed=passed, failed=failed, skipped=skipped))
    return found
